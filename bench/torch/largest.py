"""The largest number of rows per step that fits into a device's memory, by allocator: the bisection, and its table."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from cells import Cell, Job, Machine, OutOfMemory

ALLOCATORS = ("default", "expandable", "hotpack")
_MOST_ROWS = 1 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass
class Largest:
    capacity: int  # bytes
    rows: dict[str, int]  # by allocator; 0: not even one


def parse_size(text: str) -> int:
    """Parses bytes: a positive number with K, M, G or T behind it, or none. Raises ValueError."""
    number, unit = (text[:-1], _UNITS[text[-1].upper()]) if text[-1:].upper() in _UNITS else (text, 1)
    value = int(number) * unit
    if value < 1:
        raise ValueError(text)
    return value


def largest_batch(machine: Machine, job: Job, cells: dict[str, Cell], capacities: list[int]) -> list[Largest]:
    """Bisects. The result is exact if a batch fits whenever a larger one does. `cells`: the job's cells by allocator,
    whose rows per step are the start. `capacities`: of simulated devices, in bytes; of a GPU only its own one. Raises
    Failure."""
    start, found = cells["default"].settings["batch"], []
    for capacity in capacities:
        there = capacity == cells["default"].settings["device_memory"]  # the cells were runs on such a device
        known = {name: {start: _taken(cells[name], name)} if there else {} for name in ALLOCATORS}
        with _memory(machine, capacity):
            found.append(Largest(capacity, {name: _largest(machine, job, name, start, capacity, known[name]) for name in ALLOCATORS}))
    return found


@contextmanager
def _memory(machine: Machine, capacity: int) -> Iterator[None]:
    if not machine.simulate:
        yield
        return
    before = os.environ.get("SIMGPU_MEMORY")
    os.environ["SIMGPU_MEMORY"] = str(capacity)
    try:
        yield
    finally:
        os.environ.pop("SIMGPU_MEMORY")
        if before is not None:
            os.environ["SIMGPU_MEMORY"] = before


def _taken(cell: Cell, allocator: str) -> int:
    return cell.hotpack["reserved_peak"] if allocator == "hotpack" else cell.figures["torch_reserved_peak"]


def _largest(machine: Machine, job: Job, allocator: str, start: int, capacity: int, taken: dict[int, int]) -> int:
    """`taken`: bytes, by the rows that fitted."""

    def fits(rows: int) -> bool:
        try:
            if rows not in taken:
                taken[rows] = _taken(machine.run(replace(job, arguments=(*job.arguments, "--batch", str(rows))), allocator),
                                     allocator)
        except OutOfMemory:
            pass
        said = "fit" if rows in taken else "do not fit"
        print(f"compare: {job.name}, {capacity / (1 << 30):.4g} GiB, {allocator}: {rows} rows {said}", file=sys.stderr)
        return rows in taken

    low, high = 0, _MOST_ROWS  # `low` fits, or is 0; `high` does not, or is not to be tried
    rows, by_line = start, False
    while high - low > 1:
        low, high = (rows, high) if fits(rows) else (low, rows)
        # A run takes long. So every other one is where memory would run out if it grew with the rows as before. The
        # others halve the rest, since an allocator that frees its cache gets further than that.
        by_line = bool(taken) and not by_line
        rows = _guess(taken, capacity) if by_line else 0
        if high == _MOST_ROWS:
            rows = rows if rows > low else 2 * low
        elif not by_line:
            rows = (low + high) // 2
        rows = min(max(rows, low + 1), high - 1)
    return low


def _guess(taken: dict[int, int], capacity: int) -> int:
    """Returns where the line through the two largest batches that fitted reaches the capacity. `taken`: not empty."""
    *others, last = sorted(taken)
    before = others[-1] if others else 0
    grown = taken[last] - (taken[before] if others else 0)
    return last + (capacity - taken[last]) * (last - before) // grown if grown > 0 else last


def render(found: list[tuple[str, list[Largest]]]) -> str:
    """Returns GitHub's form, a line per model and capacity. `found`: by model, in the order of the lines."""
    lines = ["| model              | memory, GiB | PyTorch | expandable | hotpack | hotpack / expandable |",
             "|:-------------------|------------:|--------:|-----------:|--------:|---------------------:|"]
    for name, each in found:
        for largest in each:
            default, expandable, hotpack = (largest.rows[allocator] for allocator in ALLOCATORS)
            quotient = f"{hotpack / expandable:.3f}" if expandable else "-"
            lines.append(f"| {name:18} | {largest.capacity / (1 << 30):11.4g} | {default:7} | {expandable:10} "
                         f"| {hotpack:7} | {quotient:>20} |")
    return "\n".join(lines) + "\n"
