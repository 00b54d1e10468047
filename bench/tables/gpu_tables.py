"""Tables of `tools/gpu_check` documents: times, PyTorch's models, and differences of the driver."""

from __future__ import annotations

from documents import GPU_CHECK, Results

_COMMAND = "tools/gpu_check --out bench/results/gpu_check-DEVICE-DATE.json"


def _newest_of_each_device(results: Results) -> list[dict]:
    found = {each.content["device"]["name"]: each.content for each in results.documents if each.schema == GPU_CHECK}
    return list(found.values())


def _origin(written: dict) -> str:
    device, host, summary = written["device"], written["host"], written["summary"]
    only = f" --only {' --only '.join(written['options']['only'])}" if written["options"]["only"] else ""
    mode = written["options"]["mode"]
    return (f"By `tools/gpu_check{'' if mode == 'full' else ' --' + mode}{only}`, {written['date'][:10]}: {device['name']}, driver "
            f"{written['versions']['driver']}; {host['cpu']}, {host['cores']} cores; hotpack {written['hotpack']['version']}, commit "
            f"`{written['hotpack']['commit'][:12]}`. Of its findings {summary['pass']} pass, {summary['fail']} fail, "
            f"{summary['skip']} were skipped.")


def _figures(written: dict, group: str, name: str) -> dict[str, dict]:
    """Returns the figures of a step by name; none if it was not run."""
    return {figure["name"]: figure for step in written["steps"] if (step["group"], step["name"]) == (group, name)
            for figure in step.get("figures", [])}


def _requests(written: dict) -> list[str]:
    rounds = _figures(written, "timing", "rounds").values()
    lines = ["", "| a request and its release | median | low | high | |", "|:---|---:|---:|---:|:---|"] if rounds else []
    for figure in rounds:
        form = "{:.2f}" if figure["unit"] == "ratio" else "{:.0f}"
        unit = "times" if figure["unit"] == "ratio" else "ns"
        lines.append(f"| {figure['name']} | " + " | ".join(form.format(figure[key]) for key in ("median", "low", "high"))
                     + f" | {unit} |")
    return lines


_SHOWN = {"serving_bench": ("OnScriptPair", "OffScriptPair/one_in:16", "ScriptThreads/threads:8", "MutexPair", "MallocPair", "BestFitMapPair"),
          "hook_bench/without": ("DriverPair", "DriverPairAsync"), "hook_bench/hotpack": ("DriverPair", "DriverPairAsync")}


def _benchmarks(written: dict) -> list[str]:
    """Those of requests; the document has all."""
    shown = [(step, name, _figures(written, "benchmarks", step)) for step, names in _SHOWN.items() for name in names]
    lines = [f"| {step}: {name} | " + " | ".join(f"{figures[name][key]:.1f}" for key in ("median", "low", "high")) + " | ns |"
             for step, name, figures in shown if name in figures]
    return ["", "| benchmark | median | low | high | |", "|:---|---:|---:|---:|:---|", *lines] if lines else []


_WAYS = {"preload": "preload", "hotpack": "`hotpack.enable()`"}  # train.py's names of allocators


def _pytorch(written: dict) -> list[str]:
    """hotpack's most memory in the whole run and its median step time, over those of PyTorch's allocator, by model."""
    lines = []
    for step in written["steps"]:
        model = step["name"].rpartition("/")[0]
        ratios = {figure["name"]: figure["median"] for figure in step.get("figures", [])}
        if (step["group"], step["name"]) != ("pytorch", f"{model}/ratios"):
            continue
        for way, called in _WAYS.items():
            names = [f"{what}, {way} / {other}" for what in ("memory", "step time") for other in ("default", "expandable")]
            if any(name in ratios for name in names):
                losses = {finding["result"] for other in written["steps"] if (other["group"], other["name"]) == ("pytorch", f"{model}/{way}")
                          for finding in other.get("findings", []) if finding["name"] == "losses"}
                cells = [f"{ratios[name]:.3f}" if name in ratios else "-" for name in names]
                equal = {"pass": "equal", "fail": "differ"}.get(next(iter(losses), ""), "-")
                lines.append(f"| {model} | {called} | {' | '.join(cells)} | {equal} |")
    head = ["", "| PyTorch model | hotpack by | held at most / PyTorch | / expandable | step time / PyTorch | / expandable | losses |",
            "|:---|:---|---:|---:|---:|---:|:---|"]
    return head + lines if lines else []


def timing(results: Results, _: str) -> str:
    """For each device: the time of a request by allocator, with the first and the last decile of the rounds;
    benchmarks; PyTorch's models."""
    parts = []
    for written in _newest_of_each_device(results):
        lines = [*_requests(written), *_benchmarks(written), *_pytorch(written)]
        if lines:
            parts.append("\n".join([_origin(written), *lines]))
    return "\n\n".join(parts) or f"GPU timing has not been measured yet: `{_COMMAND}` does, on a machine with a GPU."


def differences(results: Results, _: str) -> str:
    """The findings without hotpack in which a driver differs from the design's assumptions."""
    documents = _newest_of_each_device(results)
    lines = []
    for written in documents:
        for step in written["steps"]:
            if "stats" in step or step["name"].rpartition("/")[2].startswith("hotpack"):
                continue  # under hotpack: another answer than the driver's is hotpack's
            lines += ["| " + " | ".join(text.replace("|", "\\|") for text in (
                          written["device"]["name"], written["versions"]["driver"], *(finding[key] for key in ("name", "expected", "seen"))))
                      + " |" for finding in step.get("findings", []) if finding["result"] == "differs"]
    if not documents:
        return f"No run on a GPU is on file yet: `{_COMMAND}` makes one."
    if not lines:
        return "No finding differs in the documents on file."
    return "\n".join(["| device | driver | finding | expected | seen |", "|:---|:---|:---|:---|:---|", *lines])
