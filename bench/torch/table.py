"""`compare`'s table as text: GitHub's form, which is readable as it is."""

from __future__ import annotations

from collections.abc import Callable

from peers import ASYNC, EXACT, SIMULATED, TITLES
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


def _on_gpu(rows: list[Row]) -> bool:
    return bool(rows) and not rows[0].settings["simulated"]


def _peer_columns(rows: list[Row]) -> list[tuple[str, Callable[[Row], str]]]:
    def peer(name: str) -> Callable[[Row], str]:
        return lambda row: "out of memory" if row.peers[name] is None else _mib(row.peers[name])

    columns = [
        ("model", lambda row: row.job.name + ("" if row.static else " *")),
        ("hotpack", lambda row: _mib(row.held) if row.held else "-"),
        (TITLES[EXACT], peer(EXACT)),
        ("hotpack / that", lambda row: f"{row.held / row.peers[EXACT]:.4f}" if row.held else "-"),
        ("PyTorch", lambda row: _mib(row.torch_peak("default"))),
        ("expandable", lambda row: _mib(row.torch_peak("expandable"))),
    ]
    others = [name for name in TITLES if name != EXACT and all(name in row.peers for row in rows)]
    columns += [(TITLES[name], peer(name)) for name in others]
    if _on_gpu(rows):
        columns += [(f"ms a step, {TITLES[name]}",
                     lambda row, name=name: f"{row.cells[name].figures['step_ms']:.2f}" if name in row.cells else "-")
                    for name in others if name not in SIMULATED]
    return columns


def render_peers(rows: list[Row]) -> str:
    """Of rows that have peers."""
    return _render(_peer_columns(rows), rows)


def peers_header(rows: list[Row]) -> str:
    """What the columns of render_peers are."""
    lines = [
        "The same requests under every policy, MiB. hotpack: most physical memory held since the steady iteration began. PyTorch, "
        f"expandable, {TITLES[ASYNC]}: torch.cuda.max_memory_reserved() of a run of its own, the last with "
        "backend:cudaMallocAsync. The others are simulated on the requests that the hotpack run recorded: the most held while "
        "the last step runs (docs/peers.md)."]
    if any(name.startswith("rmm") for row in rows for name in row.peers):
        lines.append("RMM pool, RMM arena: runs of their own; the most that they took from the driver. The pool began empty; the "
                     "arena takes half of the free memory at once.")
    if not _on_gpu(rows):
        lines.append(f"{TITLES[ASYNC]} here is the simulated device's own pool: its memory says nothing of NVIDIA's.")
    if any(not row.static for row in rows):
        lines.append("*: of the whole run, because the steps differ.")
    return "\n\n".join(lines) + "\n"


def render(rows: list[Row]) -> str:
    return _render(_columns(rows, _on_gpu(rows)), rows)


def _render(columns: list[tuple[str, Callable[[Row], str]]], rows: list[Row]) -> str:
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
