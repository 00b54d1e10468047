"""Memory of other allocators for the same requests: policies that `hotpack compare` plays on the hotpack run's
recording, and allocators under which the job runs."""

from __future__ import annotations

from pathlib import Path

from cells import Cell, Machine
from settings import RMM

EXACT = "cudamalloc"
SIMULATED = (EXACT, "chainer", "pytorch", "pytorch-expandable", "best-fit", "first-fit")  # hotpack compare's names
IDEAL = ("best-fit", "first-fit")  # arenas that grow by single bytes, in which all streams share every byte: no allocator is one
ASYNC = "async"
TITLES = {EXACT: "one cudaMalloc a request", "chainer": "paper's pool", "best-fit": "best fit", "first-fit": "first fit",
          ASYNC: "cudaMallocAsync", "rmm-pool": "RMM pool", "rmm-arena": "RMM arena"}  # by column

Peers = dict[str, "int | None"]  # bytes by name; None: out of memory


def others(machine: Machine) -> tuple[str, ...]:
    """The allocators of train.py under which a row runs, in addition to those of every table."""
    with_rmm = not machine.simulate and machine.imports("rmm.allocators.torch")
    return (ASYNC, *(RMM if with_rmm else ()))


def simulate(machine: Machine, trace: Path) -> Peers:
    """Returns the most held in the whole run. Raises Failure."""
    rows = machine.compare(trace, SIMULATED)["rows"]
    return {name: rows[name]["reserved_peak"] for name in SIMULATED}


def held_under(allocator: str, cell: Cell) -> int:
    """Returns the most that a run under one of `others` took from the driver."""
    return cell.figures["rmm"]["reserved_peak"] if allocator in RMM else cell.figures["torch_reserved_peak"]


def pooling(peers: Peers, simulated: bool) -> Peers:
    """The allocators that hotpack should be below, in addition to PyTorch's own, which every row has. `simulated`: on
    the simulated device, whose pool of cudaMallocAsync says nothing about NVIDIA's."""
    left_out = {EXACT, *IDEAL, *([ASYNC] if simulated else [])}
    return {name: peers[name] for name in TITLES if name in peers and name not in left_out}
