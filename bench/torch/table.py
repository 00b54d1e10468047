"""`compare`'s table as text: GitHub's form, which is readable as it is."""

from __future__ import annotations

from collections.abc import Callable

from rows import Row

_MIB = 1 << 20


def _mib(value: float) -> str:
    return f"{value / _MIB:.1f}"


def _columns(rows: list[Row], on_gpu: bool) -> list[tuple[str, Callable[[Row], str]]]:
    columns = [
        ("model", lambda row: row.job.name + ("" if row.static else " *")),
        ("batch", lambda row: str(row.settings["batch"])),
        ("PyTorch", lambda row: _mib(row.torch_peak("default"))),
        ("expandable", lambda row: _mib(row.torch_peak("expandable"))),
        ("hotpack, whole run", lambda row: _mib(row.stats["reserved_peak"])),
        ("hotpack, serving", lambda row: _mib(row.stats["reserved_steady"]) if row.stats["reserved_steady"] else "-"),
        ("live peak", lambda row: _mib(row.stats["live_peak"])),
        ("serving / live", lambda row: f"{row.stats['reserved_steady'] / row.stats['live_peak']:.4f}"
         if row.stats["reserved_steady"] else "-"),
        ("plan", lambda row: _mib(row.stats["plan_height"])),
        ("plan's bound", lambda row: _mib(row.stats["plan_lower_bound"])),
        ("by script", lambda row: f"{100 * row.planned_share:.2f} %"),
        ("reports", lambda row: "-" if row.cells["hotpack"].reports is None else str(row.cells["hotpack"].reports)),
    ]
    if any(row.launches for row in rows):
        columns.append(("ranges known / not", lambda row: "{} / {}".format(*row.launches) if row.launches else "-"))
    if on_gpu:
        for allocator in ("default", "expandable", "hotpack"):
            columns.append((f"ms a step, {allocator}",
                            lambda row, allocator=allocator: f"{row.cells[allocator].figures['step_ms']:.2f}"))
    if any(row.losses for row in rows):
        columns.append(("losses", lambda row: row.losses))
    return columns


def render(rows: list[Row]) -> str:
    columns = _columns(rows, on_gpu=bool(rows) and not rows[0].settings["simulated"])
    lines = [[title for title, _ in columns]] + [[show(row) for _, show in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]

    def write(line: list[str]) -> str:
        first, *others = (text.ljust(width) if i == 0 else text.rjust(width)
                          for i, (text, width) in enumerate(zip(line, widths)))
        return "| " + " | ".join([first, *others]) + " |"

    rule = "|" + "|".join([":" + "-" * (widths[0] + 1)] + ["-" * (width + 1) + ":" for width in widths[1:]]) + "|"
    return "\n".join([write(lines[0]), rule, *map(write, lines[1:])]) + "\n"


def header(rows: list[Row], hotpack_by: str, steps: int) -> str:
    """The settings that all rows share, and what the columns are."""
    if not rows:
        return "No model could be run.\n"
    settings = rows[0].settings
    hotpack = ("hotpack run, PyTorch's caching off" if hotpack_by == "preload" else "hotpack.enable()")
    device = settings["device"] + (f", {settings['device_memory'] / (1 << 30):.1f} GiB")
    lines = [
        f"Device: {device}" + ("; no values are computed, so times mean nothing" if settings["simulated"] else ""),
        f"PyTorch {settings['torch']}, CUDA {settings['cuda']}, cuDNN {settings['cudnn']} (benchmark "
        f"{settings['cudnn_benchmark']}, deterministic {settings['cudnn_deterministic']}), TF32 {settings['tf32']}; "
        f"workspaces: cuBLAS {settings['cublas_workspace']}, cuBLASLt {settings['cublaslt_workspace']}",
        f"{steps} steps, seed {settings['seed']}; hotpack by {hotpack}. Every figure from a process of its own, with the "
        "same settings within a line.",
        "Optimizers and precisions: " + "; ".join(
            f"{row.job.name} {row.settings['optimizer']} {row.settings['precision']}" for row in rows),
        "MiB. PyTorch, expandable: torch.cuda.max_memory_reserved(), without and with expandable_segments:True. hotpack: "
        "most physical memory held, in the whole run and since the steady iteration began.",
        "Live peak: largest sum of live requests, each rounded up to 512 bytes, weights included: what a perfect allocator "
        "would have needed. Plan, plan's bound: height and lower bound of what repeats, weights not included.",
    ]
    if any(row.launches for row in rows):
        lines.append("Ranges known / not: kernel launches and library calls of which the checker knew what they use, and others.")
    if any(not row.static for row in rows):
        lines.append("*: the shapes vary from step to step; no limit holds there.")
    return "\n\n".join(lines) + "\n"
