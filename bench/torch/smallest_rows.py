"""One model's comparison for `smallest`: the smallest device that `hotpack compare` predicts for an allocator, and runs of
PyTorch on devices of that size and of one step less."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from cells import Job, Machine, OutOfMemory

# train.py's allocator -> the row of `hotpack compare`
ALLOCATORS = {"hotpack": "hotpack", "expandable": "pytorch-expandable", "default": "pytorch"}
_TITLES = {"hotpack": "hotpack", "expandable": "expandable segments", "default": "PyTorch"}
_MIB = 1 << 20
STEP = 2 * _MIB


@dataclass
class Prediction:
    smallest: int  # bytes, predicted
    fits: bool  # a real run on a device of that size
    less_fits: bool  # ... of one step less

    @property
    def right(self) -> bool:
        return self.fits and not self.less_fits


@dataclass
class Smallest:
    model: str
    batch: int | None  # of a model
    torch: str | None  # its version; of a script unknown
    live: int  # bytes
    predictions: dict[str, Prediction]  # by allocator

    def as_json(self) -> dict:
        return asdict(self)

    @classmethod
    def from_json(cls, written: dict) -> Smallest:
        predictions = {name: Prediction(**each) for name, each in written["predictions"].items()}
        return cls(written["model"], written["batch"], written["torch"], written["live"], predictions)


@contextmanager
def _memory(bytes_: int) -> Iterator[None]:
    before = os.environ["SIMGPU_MEMORY"]
    os.environ["SIMGPU_MEMORY"] = str(bytes_)
    try:
        yield
    finally:
        os.environ["SIMGPU_MEMORY"] = before


def take(machine: Machine, job: Job, folder: Path) -> Smallest:
    """Makes one run that records, and two for each allocator. `machine`: simulated, hotpack by "enable". Raises Failure."""
    trace = folder / "recording.trace"
    cell = machine.run(job, "hotpack", trace)
    compared = machine.compare(trace, tuple(peer for peer in ALLOCATORS.values() if peer != "hotpack"), smallest=True)

    def fits(allocator: str, capacity: int) -> bool:
        with _memory(capacity):
            try:
                machine.run(job, allocator)
            except OutOfMemory:
                return False
        return True

    predictions = {}
    for allocator, row in ALLOCATORS.items():
        smallest = compared["rows"][row]["smallest_device"]
        predictions[allocator] = Prediction(smallest, fits(allocator, smallest), fits(allocator, smallest - STEP))
    return Smallest(job.model, cell.settings["batch"], cell.settings["torch"], compared["live_peak"], predictions)


def _cell(prediction: Prediction) -> str:
    if prediction.right:
        return f"{prediction.smallest / _MIB:.0f}"
    return f"{prediction.smallest / _MIB:.0f} ({'less fits' if prediction.fits else 'does not fit'})"


def render(rows: list[Smallest]) -> str:
    lines = ["| job | batch | live | " + " | ".join(_TITLES[name] for name in ALLOCATORS) + " |",
             "|:---|---:|---:|" + "---:|" * len(ALLOCATORS)]
    for row in rows:
        cells = " | ".join(_cell(row.predictions[name]) for name in ALLOCATORS)
        lines.append(f"| {row.model} | {row.batch or ''} | {row.live / _MIB:.1f} | {cells} |")
    return "\n".join(lines) + "\n"


def missed(rows: list[Smallest]) -> list[str]:
    return [f"{row.model}, {_TITLES[name]}: {_cell(row.predictions[name])} MiB"
            for row in rows for name in ALLOCATORS if not row.predictions[name].right]
