"""The comparable figures of a document: by name, each with the direction that is worse."""

from __future__ import annotations

from dataclasses import dataclass

from documents import AGREE, BENCHMARKS, GOOGLE, GPU_CHECK, PACKER, TORCH, Document
from measures import HELD

RATIO = "ratio"  # of memory, or a share: repeats
SPEED = "speed"  # a ratio of times from one run: comparable on any machine, but noisy
TIME = "time"  # comparable on one machine only
COUNT = "count"  # of faults: one more is worse


@dataclass
class Figure:
    value: float
    kind: str
    higher_is_better: bool = False


Figures = dict[str, Figure]


def _ratio(figures: Figures, name: str, dividend: float | None, divisor: float | None, kind: str = RATIO,
           higher_is_better: bool = False) -> None:
    if dividend and divisor:
        figures[name] = Figure(dividend / divisor, kind, higher_is_better)


def _torch(content: dict) -> Figures:
    figures: Figures = {}
    for row in content["rows"]:
        name, stats, train = f"{row['job']}, batch {row['settings']['batch']}", row["hotpack"], row["train"]
        _ratio(figures, f"{name}: held while served / live", stats["reserved_steady"], stats["live_peak"])
        _ratio(figures, f"{name}: whole run / live", stats["reserved_peak"], stats["live_peak"])
        _ratio(figures, f"{name}: plan / bound", stats["plan_height"], stats["plan_lower_bound"])
        for allocator in ("default", "expandable"):
            _ratio(figures, f"{name}: hotpack / PyTorch {allocator}", stats["reserved_peak"], train[allocator]["torch_reserved_peak"])
            if not row["settings"]["simulated"]:
                _ratio(figures, f"{name}: step time, hotpack / {allocator}", train["hotpack"]["step_ms"],
                       train[allocator]["step_ms"], SPEED)
        for peer, bytes_held in (row.get("peers") or {}).items():
            if row.get("peers_measure") != HELD:
                continue  # of the last step: another measure than hotpack's whole run
            if peer != "async" or not row["settings"]["simulated"]:  # the simulated device's own pool there
                _ratio(figures, f"{name}: hotpack / {peer}", stats["reserved_peak"], bytes_held)
        if row["static"]:
            share = stats["planned_steady"] / max(1, stats["requests_steady"])
            figures[f"{name}: by the plan"] = Figure(share, RATIO, higher_is_better=True)
        if row["reports"] is not None:
            figures[f"{name}: reports"] = Figure(row["reports"], COUNT)
        for found in row["largest_batch"] or []:
            gib = found["capacity"] / (1 << 30)
            for allocator in ("default", "expandable"):
                _ratio(figures, f"{row['job']}, {gib:.4g} GiB: largest batch, hotpack / {allocator}", found["rows"]["hotpack"],
                       found["rows"][allocator], higher_is_better=True)
    figures["cells that could not be run"] = Figure(len(content["failures"]), COUNT)
    return figures


def _agree(content: dict) -> Figures:
    figures = {f"{row['model']}: simulated {allocator}, off by": Figure(1 + abs(off), RATIO)
               for row in content["rows"] for allocator, off in row["off"].items()}
    return {**figures, "missed": Figure(len(content["missed"]), COUNT)}


def _packer(content: dict) -> Figures:
    figures: Figures = {}
    for section, written in content["sections"].items():
        for row in written.get("rows", []):
            name = f"{section} {row['instance']}"
            figures[f"{name}: height / bound"] = Figure(row["ratio"], RATIO)
            figures[f"{name}: not proved"] = Figure(int(not row["proven"]), COUNT)
            figures[f"{name}: user seconds"] = Figure(row["user"], TIME)
            _ratio(figures, f"{name}: peer / hotpack", row.get("peer_user"), row["user"], SPEED, higher_is_better=True)
    return figures


def _gpu_figure(name: str, figure: dict) -> Figure | None:
    """A figure of the step `name` ("group/step"); None if it is not about hotpack."""
    group, called, value = name.partition("/")[0], figure["name"], figure["median"]
    if name == "timing/rounds":
        if "hotpack" not in called and "preloaded" not in called:
            return None  # the driver's own
        ratio = figure["unit"] == "ratio"  # how many times longer the driver takes than hotpack
        return Figure(value, SPEED if ratio else TIME, higher_is_better=ratio)
    if called in ("reserved_over_live", "serving_over_live", "planned_share"):
        return Figure(value, RATIO, higher_is_better=called == "planned_share")
    if group == "pytorch" and " / " in called:  # hotpack's over PyTorch's
        return Figure(value, SPEED if called.startswith("step time") else RATIO)
    if group == "benchmarks":
        if " over " in called:  # how many times longer the other takes; how many times the rate of one thread
            return Figure(value, SPEED, higher_is_better=True)
        return Figure(value, RATIO if called.endswith(", ratio") else TIME)
    return None


def _gpu_check(content: dict) -> Figures:
    figures: Figures = {}
    for step in content["steps"]:
        name = f"{step['group']}/{step['name']}"
        figures[f"{name}: failed"] = Figure(
            sum(finding["result"] == "fail" for finding in step.get("findings", [])) + bool(step.get("timed_out")), COUNT)
        for figure in step.get("figures", []):
            taken = _gpu_figure(name, figure)
            if taken is not None:
                figures[f"{name}: {figure['name']}"] = taken
    return figures


def _google(content: dict, reference: str | None) -> Figures:
    """Times, and with a reference the factor to it; counters that are ratios."""
    # With repetitions the medians count, else there is one line a benchmark.
    lines = [each for each in content["benchmarks"] if each.get("aggregate_name") == "median"] or [
        each for each in content["benchmarks"] if each.get("run_type") != "aggregate"]
    times = {each.get("run_name", each["name"]): each for each in lines}
    figures: Figures = {}
    divisor = times.get(reference, {}).get("cpu_time") if reference else None
    for name, each in times.items():
        figures[f"{name}: processor time"] = Figure(each.get("cpu_time", 0.0), TIME)
        figures[f"{name}: failed"] = Figure(int(each.get("error_occurred", False)), COUNT)
        if divisor and name != reference:
            _ratio(figures, f"{name} / {reference}", each.get("cpu_time"), divisor, SPEED)
        for counter, value in each.items():
            if counter == "ratio" or counter.endswith("_ratio"):
                figures[f"{name}: {counter}"] = Figure(value, RATIO)
    return figures


_KEYS = ("batch", "blocks", "requests", "threads", "streams", "ranks", "capacity", "n")  # columns that tell rows apart


def _rows(content: dict) -> Figures:
    """The figures of a generic document: in each of its lists the columns named as ratios. A row is named by its words
    and its settings."""
    figures: Figures = {}
    for table, rows in content.items():
        for row in rows if isinstance(rows, list) else []:
            if not isinstance(row, dict):
                continue
            words = [value for value in row.values() if isinstance(value, str)]
            name = ", ".join([table, *words, *(f"{key} {row[key]}" for key in _KEYS if isinstance(row.get(key), int))])
            for column, value in row.items():
                number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if number and (column == "ratio" or column.endswith("_ratio") or " / " in column):
                    figures[f"{name}: {column}"] = Figure(value, RATIO)
    return figures


def figures_of(document: Document, reference: str | None = None) -> Figures:
    """`reference`: a benchmark of a Google Benchmark document by which the others are divided."""
    if document.schema in (GOOGLE, BENCHMARKS):
        return _google(document.content, reference)
    return {TORCH: _torch, AGREE: _agree, PACKER: _packer, GPU_CHECK: _gpu_check}.get(document.schema, _rows)(document.content)


def machine_of(document: Document) -> tuple:
    """Equal for documents whose times may be compared."""
    content = document.content
    if document.schema == GOOGLE:
        context = content["context"]
        return context.get("host_name"), context.get("num_cpus"), context.get("mhz_per_cpu")
    if document.schema == GPU_CHECK:
        return content["host"]["cpu"], content["host"]["cores"], (content["device"] or {}).get("name")
    machine = content.get("machine", {})
    return machine.get("processor"), machine.get("cores"), machine.get("gpu")
