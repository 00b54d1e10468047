"""One model's comparison for `peers_agree`: the bytes that PyTorch reserved, and those of the simulations for the same
requests."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cells import Job, Machine, OutOfMemory

PEERS = {"default": "pytorch", "expandable": "pytorch-expandable"}  # train.py's allocator -> the simulation's name
LIMIT = 0.02
_MIB = 1 << 20
_PAGE = 2 * _MIB


def near(simulated: int, real: int) -> bool:
    return abs(simulated - real) <= LIMIT * real


@dataclass
class Tight:
    """On a device whose memory is between the live and the reserved bytes, so that cached memory must be freed."""

    capacity: int
    real: int | None  # bytes reserved at most; None: out of memory
    simulated: int | None

    @property
    def agrees(self) -> bool:
        if self.real is None or self.simulated is None:
            return self.real == self.simulated
        return near(self.simulated, self.real)


@dataclass
class Agreement:
    model: str
    batch: int
    torch: str  # its version
    real: dict[str, int]  # by allocator: bytes reserved at most
    simulated: dict[str, int]
    tight: dict[str, Tight] | None = None  # by allocator, if asked for

    def off(self, allocator: str) -> float:
        return self.simulated[allocator] / self.real[allocator] - 1

    def as_json(self) -> dict:
        return {"model": self.model, "batch": self.batch, "torch": self.torch, "real": self.real, "simulated": self.simulated,
                "off": {allocator: self.off(allocator) for allocator in PEERS},
                "tight": self.tight and {allocator: vars(tight) for allocator, tight in self.tight.items()}}

    @classmethod
    def from_json(cls, written: dict) -> Agreement:
        tight = written["tight"] and {allocator: Tight(**cell) for allocator, cell in written["tight"].items()}
        return cls(written["model"], written["batch"], written["torch"], written["real"], written["simulated"], tight)


def take_tight(machine: Machine, job: Job, trace: Path, allocator: str, live: int, reserved: int) -> Tight:
    tight = Tight((live + reserved) // 2 // _PAGE * _PAGE, None, None)
    before = os.environ["SIMGPU_MEMORY"]
    os.environ["SIMGPU_MEMORY"] = str(tight.capacity)
    try:
        tight.real = machine.run(job, allocator).figures["torch_reserved_peak"]
    except OutOfMemory:
        pass
    finally:
        os.environ["SIMGPU_MEMORY"] = before
    row = machine.compare(trace, (PEERS[allocator],), tight.capacity)["rows"][PEERS[allocator]]
    tight.simulated = row.get("reserved_peak")
    return tight


def take(machine: Machine, job: Job, folder: Path, tight: bool) -> Agreement:
    """Makes three runs and two simulations; with `tight` four more. Raises Failure."""
    cells = {allocator: machine.run(job, allocator) for allocator in PEERS}
    trace = folder / f"{job.model}.trace"
    machine.run(job, "hotpack", trace)
    compared = machine.compare(trace, tuple(PEERS.values()))
    settings = cells["default"].settings
    agreement = Agreement(job.model, settings["batch"], settings["torch"],
                          {allocator: cell.figures["torch_reserved_peak"] for allocator, cell in cells.items()},
                          {allocator: compared["rows"][peer]["reserved_peak"] for allocator, peer in PEERS.items()})
    if tight:
        agreement.tight = {allocator: take_tight(machine, job, trace, allocator, compared["live_peak"], agreement.real[allocator])
                           for allocator in PEERS}
    return agreement


def render(agreements: list[Agreement]) -> str:
    lines = ["| model              | batch | PyTorch | simulated |     off | expandable | simulated |     off |",
             "|:-------------------|------:|--------:|----------:|--------:|-----------:|----------:|--------:|"]
    for row in agreements:
        real, simulated = row.real, row.simulated
        lines.append(f"| {row.model:18} | {row.batch:5} | {real['default'] / _MIB:7.1f} | {simulated['default'] / _MIB:9.1f} "
                     f"| {row.off('default'):+7.2%} | {real['expandable'] / _MIB:10.1f} "
                     f"| {simulated['expandable'] / _MIB:9.1f} | {row.off('expandable'):+7.2%} |")
    return "\n".join(lines) + "\n"


def render_tight(agreements: list[Agreement]) -> str:
    def text(peak: int | None) -> str:
        return "out of memory" if peak is None else f"{peak / _MIB:.1f}"

    lines = ["| model              | memory | PyTorch       | simulated     | memory | expandable    | simulated     |",
             "|:-------------------|-------:|--------------:|--------------:|-------:|--------------:|--------------:|"]
    for row in agreements:
        cells = "".join(f"| {row.tight[allocator].capacity / _MIB:6.0f} | {text(row.tight[allocator].real):>13} "
                        f"| {text(row.tight[allocator].simulated):>13} " for allocator in PEERS)
        lines.append(f"| {row.model:18} {cells}|")
    return "\n".join(lines) + "\n"


def missed(agreements: list[Agreement]) -> list[str]:
    return [f"{row.model}, {allocator}: {row.off(allocator):+.2%}" for row in agreements for allocator in PEERS
            if not near(row.simulated[allocator], row.real[allocator])] + [
        f"{row.model}, {allocator}, with {row.tight[allocator].capacity / _MIB:.0f} MiB: they differ"
        for row in agreements if row.tight for allocator in PEERS if not row.tight[allocator].agrees]
