"""`compare`'s table as text: GitHub's form, which is readable as it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tables"))
from measures import HELD, LIVE, OURS, PLAN, SERVED, Column, refuse_mixed
from peers import ASYNC, EXACT, SIMULATED, TITLES
from rows import Row

_MIB = 1 << 20


def _mib(value: float) -> str:
    return f"{value / _MIB:.1f}"


def _columns(rows: list[Row], on_gpu: bool) -> list[Column]:
    columns = [
        Column("model", lambda row: row.job.name + ("" if row.static else " *")),
        Column("batch", lambda row: str(row.settings["batch"])),
        *_held_columns(),
        Column(f"hotpack, {SERVED}", lambda row: _mib(row.served) if row.served else "-", SERVED, OURS),
        Column("live peak", lambda row: _mib(row.stats["live_peak"]), LIVE),
        Column("hotpack / live", lambda row: f"{row.held / row.stats['live_peak']:.4f}", HELD, OURS, over=LIVE),
        Column("plan", lambda row: _mib(row.stats["plan_height"]), PLAN),
        Column("plan's bound", lambda row: _mib(row.stats["plan_lower_bound"]), PLAN),
        Column("by the plan", lambda row: f"{100 * row.planned_share:.2f} %"),
        Column("reports", lambda row: "-" if row.cells["hotpack"].reports is None else str(row.cells["hotpack"].reports)),
    ]
    if any(row.launches for row in rows):
        columns.append(Column("ranges known / not", lambda row: "{} / {}".format(*row.launches) if row.launches else "-"))
    if on_gpu:
        for allocator in ("default", "expandable", "hotpack"):
            columns.append(Column(f"ms a step, {allocator}",
                                  lambda row, allocator=allocator: f"{row.cells[allocator].figures['step_ms']:.2f}"))
    if any(row.losses for row in rows):
        columns.append(Column("losses", lambda row: row.losses))
    return columns


def _held_columns() -> list[Column]:
    return [
        Column("PyTorch", lambda row: _mib(row.torch_peak("default")), HELD, "PyTorch"),
        Column("expandable", lambda row: _mib(row.torch_peak("expandable")), HELD, "PyTorch, expandable"),
        Column("hotpack", lambda row: _mib(row.held), HELD, OURS),
    ]


def brief_columns() -> list[Column]:
    """The columns of the README, in whole MiB."""
    def whole(value: float) -> str:
        return f"{value / _MIB:.0f}"

    return [
        Column("model", lambda row: row.job.name + ("" if row.static else " *")),
        Column("batch", lambda row: str(row.settings["batch"])),
        Column("PyTorch", lambda row: whole(row.torch_peak("default")), HELD, "PyTorch"),
        Column("expandable segments", lambda row: whole(row.torch_peak("expandable")), HELD, "PyTorch, expandable"),
        Column("hotpack", lambda row: whole(row.held), HELD, OURS),
        Column(f"hotpack, {SERVED}", lambda row: whole(row.served) if row.served else "-", SERVED, OURS),
        Column("live peak", lambda row: whole(row.stats["live_peak"]), LIVE),
    ]


def who_holds_less(rows: list[Row]) -> str:
    """Says in words for which models hotpack holds less in the whole run than each of PyTorch's allocators, as much,
    and more."""
    sentences = []
    for allocator, called in (("default", "PyTorch's defaults"), ("expandable", "expandable segments")):
        less, same, more = [], [], []
        for row in rows:
            theirs = row.torch_peak(allocator)
            (less if row.held < theirs else same if row.held == theirs else more).append(row.job.name)
        named = [f"{word} for {len(names)} ({', '.join(names)})" for word, names in (("as much", same), ("more", more)) if names]
        sentences.append(", ".join([f"less than {called} for {len(less)} of {len(rows)} models", *named]))
    return f"By the most held in the whole run hotpack holds {'; '.join(sentences)}."


def _on_gpu(rows: list[Row]) -> bool:
    return bool(rows) and not rows[0].settings["simulated"]


def _peer_columns(rows: list[Row]) -> list[Column]:
    def peer(name: str) -> Callable[[Row], str]:
        return lambda row: "out of memory" if row.peers[name] is None else _mib(row.peers[name])

    columns = [
        Column("model", lambda row: row.job.name + ("" if row.static else " *")),
        Column("hotpack", lambda row: _mib(row.held), HELD, OURS),
        Column(TITLES[EXACT], peer(EXACT), HELD, EXACT),
        Column("hotpack / that", lambda row: f"{row.held / row.peers[EXACT]:.4f}", HELD, OURS, over=HELD),
        *_held_columns()[:2],
    ]
    others = [name for name in TITLES if name != EXACT and all(name in row.peers for row in rows)]
    columns += [Column(TITLES[name], peer(name), HELD, name) for name in others]
    if _on_gpu(rows):
        columns += [Column(f"ms a step, {TITLES[name]}",
                           lambda row, name=name: f"{row.cells[name].figures['step_ms']:.2f}" if name in row.cells else "-")
                    for name in others if name not in SIMULATED]
    return columns


def render_peers(rows: list[Row]) -> str:
    """For rows that have peers."""
    return _render(_peer_columns(rows), rows)


def peers_header(rows: list[Row]) -> str:
    """Explains the columns of render_peers."""
    lines = [
        f"The same requests under every policy: MiB {HELD}. hotpack: most physical memory. PyTorch, "
        f"expandable, {TITLES[ASYNC]}: torch.cuda.max_memory_reserved() of a run of its own, the last with "
        "backend:cudaMallocAsync. The others are simulated on the requests that the hotpack run recorded (docs/compare.md)."]
    if any(name.startswith("rmm") for row in rows for name in row.peers):
        lines.append("RMM pool, RMM arena: runs of their own; the most that they took from the driver. The pool began empty; the "
                     "arena takes half of the free memory at once.")
    if not _on_gpu(rows):
        lines.append(f"{TITLES[ASYNC]} here is the simulated device's own pool: its memory says nothing of NVIDIA's.")
    if any(not row.static for row in rows):
        lines.append("*: the shapes vary from step to step.")
    return "\n\n".join(lines) + "\n"


def render(rows: list[Row]) -> str:
    return _render(_columns(rows, _on_gpu(rows)), rows)


def _render(columns: list[Column], rows: list[Row]) -> str:
    refuse_mixed(columns)
    lines = [[column.title for column in columns]] + [[column.show(row) for column in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]

    def write(line: list[str]) -> str:
        first, *others = (text.ljust(width) if i == 0 else text.rjust(width)
                          for i, (text, width) in enumerate(zip(line, widths)))
        return "| " + " | ".join([first, *others]) + " |"

    rule = "|" + "|".join([":" + "-" * (widths[0] + 1)] + ["-" * (width + 1) + ":" for width in widths[1:]]) + "|"
    return "\n".join([write(lines[0]), rule, *map(write, lines[1:])]) + "\n"


def header(rows: list[Row], hotpack_by: str, steps: int, logical_time: bool = False) -> str:
    """The settings that all rows share, and the columns' meaning. `logical_time`: hotpack made its plans in it."""
    if not rows:
        return "No model could be run.\n"
    settings = rows[0].settings
    hotpack = ("hotpack run, PyTorch's caching off" if hotpack_by == "preload" else "hotpack.enable()")
    hotpack += ", plans in logical time" if logical_time else ""
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
        f"MiB {HELD}, for all allocators alike. PyTorch, expandable: torch.cuda.max_memory_reserved(), without and with "
        "expandable_segments:True. hotpack: most physical memory.",
        who_holds_less(rows),
        f"{SERVED.capitalize()}: most physical memory since the steady iteration began; not to be compared with the whole run of others.",
        "Live peak: largest sum of live requests, each rounded up to 512 bytes, weights included: what a perfect allocator "
        "would have needed. Plan, plan's bound: height and lower bound of what repeats, weights not included.",
    ]
    if any(row.launches for row in rows):
        lines.append("Ranges known / not: kernel launches and library calls of which the checker knew what they use, and others.")
    if any(not row.static for row in rows):
        lines.append("*: the shapes vary from step to step; no limit holds there.")
    return "\n\n".join(lines) + "\n"
