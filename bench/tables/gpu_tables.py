"""What documents of `tools/gpu_check` say in the pages: the times of a request, and where the driver differs."""

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


def timing(results: Results, _: str) -> str:
    """The median of the rounds with the first and the last decile: nanoseconds a request and its release, and ratios."""
    parts = []
    for written in _newest_of_each_device(results):
        rounds = next((step for step in written["steps"] if (step["group"], step["name"]) == ("timing", "rounds")), None)
        if rounds is None:
            continue
        lines = [_origin(written), "", "| a request and its release | median | low | high | |", "|:---|---:|---:|---:|:---|"]
        for figure in rounds["figures"]:
            form = "{:.2f}" if figure["unit"] == "ratio" else "{:.0f}"
            unit = "times" if figure["unit"] == "ratio" else "ns"
            lines.append(f"| {figure['name']} | " + " | ".join(form.format(figure[key]) for key in ("median", "low", "high"))
                         + f" | {unit} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) or f"GPU timing has not been measured yet: `{_COMMAND}` does, on a machine with a GPU."


def differences(results: Results, _: str) -> str:
    """The findings without hotpack where a driver does something else than the design takes for documented."""
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
