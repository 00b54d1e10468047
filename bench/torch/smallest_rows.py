"""One model's comparison for `smallest`: the smallest device that `hotpack compare` predicts for an allocator, and the one
on which PyTorch runs, while a step less is too small."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from cells import Job, Machine, OutOfMemory

# train.py's allocator -> the row of `hotpack compare`
ALLOCATORS = {"hotpack": "hotpack", "expandable": "pytorch-expandable", "default": "pytorch"}
_TITLES = {"hotpack": "hotpack", "expandable": "expandable segments", "default": "PyTorch"}
_MIB = 1 << 20
STEP = 2 * _MIB


@dataclass
class Prediction:
    """Bytes, both multiples of a step."""

    smallest: int  # predicted
    real: int  # the nearest device on which the job ran, while it was out of memory on one of a step less


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


def _boundary(fits: Callable[[int], bool], predicted: int) -> int:
    """Returns a size in bytes that fits, while one step less does not: `predicted` if that is one, else one found from
    there. (Under memory pressure an allocator may fit a device and not a larger one, so there may be others.) Two calls,
    else twice the logarithm of the difference in steps."""
    if fits(predicted):
        large, step = predicted, STEP
        while large - step > 0 and fits(large - step):
            large, step = large - step, 2 * step
        small = max(0, large - step)
    else:
        small, step = predicted, STEP
        while not fits(small + step):
            small, step = small + step, 2 * step
        large = small + step
    while large - small > STEP:
        middle = small + (large - small) // (2 * STEP) * STEP
        small, large = (small, middle) if fits(middle) else (middle, large)
    return large


def take(machine: Machine, job: Job, folder: Path) -> Smallest:
    """Makes one run that records, and two or more for each allocator. `machine`: simulated, hotpack by "enable". Raises
    Failure."""
    trace = folder / "recording.trace"
    trace.unlink(missing_ok=True)  # hotpack writes over no other job's
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
        predicted = compared["rows"][row]["smallest_device"]
        predictions[allocator] = Prediction(predicted, _boundary(partial(fits, allocator), predicted))
    return Smallest(job.model, cell.settings["batch"], cell.settings["torch"], compared["live_peak"], predictions)


def _cell(prediction: Prediction) -> str:
    real = "" if prediction.real == prediction.smallest else f" ({prediction.real / _MIB:.0f})"
    return f"{prediction.smallest / _MIB:.0f}{real}"


def render(rows: list[Smallest]) -> str:
    lines = ["| job | batch | live | " + " | ".join(_TITLES[name] for name in ALLOCATORS) + " |",
             "|:---|---:|---:|" + "---:|" * len(ALLOCATORS)]
    for row in rows:
        cells = " | ".join(_cell(row.predictions[name]) for name in ALLOCATORS)
        lines.append(f"| {row.model} | {row.batch or ''} | {row.live / _MIB:.1f} | {cells} |")
    return "\n".join(lines) + "\n"


def missed(rows: list[Smallest]) -> list[str]:
    return [f"{row.model}, {_TITLES[name]}: {_cell(row.predictions[name])} MiB"
            for row in rows for name in ALLOCATORS if row.predictions[name].real != row.predictions[name].smallest]
