"""A line of `compare`'s table: the cells of one model together, and the limits that they must keep."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "tables"))
from cells import Cell, Failure, Job, Machine, OutOfMemory
from largest import ALLOCATORS, Largest
from measures import HELD
from peers import EXACT, TITLES, Peers, held_under, pooling, simulate

_OF_THE_ALLOCATOR = ("allocator", "alloc_conf")  # settings that may differ within a row
_MIB = 1 << 20
# Limits for jobs in which every step is the same: memory while served over the live peak, and in the whole run over one
# exact cudaMalloc per request. Other allocators are compared by the most held in the whole run.
MOST_OVER_LIVE_PEAK = 1.02
MOST_BESIDE = 4 * _MIB
LEAST_PLANNED = 0.99
LOSS_STEPS = 50


@dataclass
class Row:
    job: Job
    static: bool
    cells: dict[str, Cell]  # by allocator
    losses: str = ""  # "equal", "differ", "plain runs differ", or not asked
    largest_batch: list[Largest] | None = None  # by capacity, if asked for
    peers: Peers | None = None  # if asked for

    @property
    def settings(self) -> dict:
        return self.cells["default"].settings

    @property
    def stats(self) -> dict:
        return self.cells["hotpack"].hotpack

    @property
    def held(self) -> int:
        """The most that hotpack held in the whole run: the measure by which all allocators are compared."""
        return self.stats["reserved_peak"]

    @property
    def served(self) -> int:
        """The memory that hotpack held while it served by the plan; 0: no iteration was served entirely. Not comparable
        with other allocators."""
        return self.stats["reserved_steady"]

    @property
    def planned_share(self) -> float:
        return self.stats["planned_steady"] / max(1, self.stats["requests_steady"])

    @property
    def launches(self) -> tuple[int, int] | None:
        return self.cells["hotpack"].launches or self.cells["default"].launches

    def torch_peak(self, allocator: str) -> int:
        return self.cells[allocator].figures["torch_reserved_peak"]

    def as_json(self) -> dict:
        return {"job": self.job.name, "static": self.static, "settings": self.settings, "hotpack": self.stats,
                "reports": self.cells["hotpack"].reports, "launches_known_and_not": self.launches, "losses": self.losses,
                "largest_batch": self.largest_batch and [vars(largest) for largest in self.largest_batch],
                "peers": self.peers, "peers_measure": HELD if self.peers is not None else None,
                "train": {name: cell.figures for name, cell in self.cells.items()}}

    @classmethod
    def from_json(cls, written: dict) -> Row:
        """Reads the output of as_json, as far as tables need it."""
        cells = {name: Cell(written["settings"], figures) for name, figures in written["train"].items()}
        cells["hotpack"].hotpack, cells["hotpack"].reports = written["hotpack"], written["reports"]
        launches = written["launches_known_and_not"]
        cells["hotpack"].launches = tuple(launches) if launches else None
        largest = written["largest_batch"] and [Largest(**each) for each in written["largest_batch"]]
        return cls(Job(written["job"]), written["static"], cells, written["losses"], largest, written.get("peers"))


def take_row(machine: Machine, job: Job, others: tuple[str, ...] | None = None) -> Row:
    """Runs the row's cells one after the other. `others`: further allocators for `peers`; None: no peers. Raises
    Failure."""
    with tempfile.TemporaryDirectory(prefix="hotpack-compare-") as scratch:
        trace = Path(scratch, "job.trace") if others is not None else None
        cells = {allocator: machine.run(job, allocator, trace if allocator == "hotpack" else None) for allocator in ALLOCATORS}
        row = Row(job, bool(cells["default"].settings["static"]), cells)
        if trace is not None:
            row.peers = simulate(machine, trace)
    for allocator in others or ():
        try:
            cells[allocator] = machine.run(job, allocator)
            row.peers[allocator] = held_under(allocator, cells[allocator])
        except OutOfMemory:
            row.peers[allocator] = None
    first = _common(cells["default"])
    for allocator, cell in cells.items():
        if _common(cell) != first:
            raise Failure(f"{job.name}: the settings under {allocator} are not those under PyTorch's default")
    return row


def _common(cell: Cell) -> dict:
    return {name: value for name, value in cell.settings.items() if name not in _OF_THE_ALLOCATOR}


def missed(row: Row) -> list[str]:
    """Returns a line for each limit that the row exceeds. Reports of the checker count for every model."""
    name, stats, faults = row.job.name, row.stats, []
    if row.cells["hotpack"].reports:
        faults.append(f"{name}: {row.cells['hotpack'].reports} reports of the checker")
    if not row.static:
        return faults
    if row.served == 0:
        return [*faults, f"{name}: no steady iteration"]
    limit = MOST_OVER_LIVE_PEAK * stats["live_peak"] + MOST_BESIDE
    if row.served > limit:
        faults.append(f"{name}: {row.served / _MIB:.1f} MiB while served, limit {limit / _MIB:.1f}")
    for allocator in ("default", "expandable"):
        if row.held >= row.torch_peak(allocator):
            faults.append(f"{name}: {row.held / _MIB:.1f} MiB in the whole run, PyTorch {allocator} "
                          f"{row.torch_peak(allocator) / _MIB:.1f}")
    if row.peers is not None:
        faults += _missed_peers(row, row.peers)
    if row.planned_share < LEAST_PLANNED:
        faults.append(f"{name}: {100 * row.planned_share:.2f} % by the plan, limit {100 * LEAST_PLANNED:.0f}")
    return faults


def _missed_peers(row: Row, found: Peers) -> list[str]:
    said = f"{row.job.name}: {row.held / _MIB:.1f} MiB in the whole run"
    limit = MOST_OVER_LIVE_PEAK * found[EXACT] + MOST_BESIDE
    faults = [f"{said}, limit by {TITLES[EXACT]} {limit / _MIB:.1f}"] if row.held > limit else []
    return faults + [f"{said}, {TITLES[name]} {held / _MIB:.1f}"
                     for name, held in pooling(found, row.settings["simulated"]).items() if held is not None and row.held >= held]


def same_losses(machine: Machine, job: Job) -> str:
    """Returns whether each of LOSS_STEPS losses is the same under hotpack, bit for bit."""
    longer = replace(job, arguments=(*job.arguments, "--steps", str(LOSS_STEPS)))
    first, second = (machine.run(longer, "default").losses for _ in range(2))
    if first != second:
        return "plain runs differ"
    return "equal" if machine.run(longer, "hotpack").losses == first else "differ"
