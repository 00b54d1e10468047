"""The graph of a training step: hotpack.record_graph() (docs/graph_format.md)."""

import os
from typing import Optional

from .._errors import Error


def record_graph(path: "str | os.PathLike[str]", step: int = 3, *, gpu: "Optional[str]" = None) -> None:
    """Writes the graph of the program's `step`-th training step to `path`, for `hotpack plan` (docs/graph_format.md).

    Before the first optimizer step. A step ends with an optimizer's step, as iterations do, or with hotpack.step().
    The step runs on the GPU that is in use when it begins, else on the CPU; results are the same bits. step: from 2 on;
    the first step makes the optimizer's state. gpu: whose roofline costs are computed by on the simulated device and on
    a CPU ("H100 SXM" unless given); on a GPU they are measured. The file is written when the step has ended, and again
    at the program's end with the peaks of further steps. Does nothing where HOTPACK_GRAPH asks for a graph already.

    Raises Error, in one line: no PyTorch, a step below 2, an unknown GPU, a path that cannot be written.
    """
    from . import session

    if not os.environ.get("HOTPACK_GRAPH"):
        session.start(path, step, gpu)


def from_environment() -> None:
    """What HOTPACK_GRAPH, HOTPACK_GRAPH_STEP and HOTPACK_GRAPH_GPU ask for. Ranks but the first add .rankN to the name.
    A process that trains nothing, such as a DataLoader's worker, writes nothing. Raises Error."""
    path = os.environ.get("HOTPACK_GRAPH")
    if not path:
        return
    rank = os.environ.get("RANK", "0")
    if rank.isdigit() and int(rank) > 0:
        path += f".rank{rank}"
    wanted = os.environ.get("HOTPACK_GRAPH_STEP") or "3"
    if not wanted.isdigit():
        raise Error(f"HOTPACK_GRAPH_STEP={wanted} is no number")
    from . import session

    session.start(path, int(wanted), os.environ.get("HOTPACK_GRAPH_GPU"), silent_without_steps=True)
