"""hotpack: a planned CUDA memory allocator for training jobs.

    import hotpack
    hotpack.enable()          # before the first use of CUDA; PyTorch asks hotpack for every tensor from then on

It watches one iteration, packs all its allocations into one arena, and then answers each request with a fixed offset.
Iterations are marked by the optimizer's steps. Everything here is optional but enable().
"""

from typing import Any

from ._cupy import enable_cupy
from ._errors import Error
from ._figures import stats
from ._graph import record_graph
from ._ipython import load as _load
from ._library import version as _version
from ._marks import interrupted, save_plan, step, trim, wait_plan
from ._simulate import simulate, simulated
from ._torch import enable, enabled

__all__ = [
    "Error",
    "enable",
    "enable_cupy",
    "enabled",
    "interrupted",
    "record_graph",
    "save_plan",
    "simulate",
    "simulated",
    "stats",
    "step",
    "trim",
    "wait_plan",
]


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext hotpack` in Jupyter or IPython: enables hotpack. `%hotpack` then prints the figures."""
    _load(shell)


def __getattr__(name: str) -> str:
    if name == "__version__":  # of the library that is loaded
        return _version()
    raise AttributeError(f"module 'hotpack' has no attribute {name!r}")
