"""Figures: hotpack's own, and those that torch.cuda.memory_stats shows."""

import ctypes
from collections.abc import Iterable
from typing import Any, Optional

from . import _budget
from ._errors import Error
from ._library import TorchStat, TorchStats, core, stats_type, torch_library

_POOLS = ("all", "small_pool", "large_pool")
_METRICS = ("current", "peak", "allocated", "freed")


def stats() -> "dict[str, Any]":
    """hotpack's figures of this process (docs/statistics.md).

    Before the first request all are zero, and no iteration is steady. With a budget, its figures are there too
    (docs/budget.md); alone, where hotpack is no allocator because there is no device and no library. All are integers
    but the budget's times.
    """
    budget = _budget.figures()
    try:
        kind = stats_type()
        library = core()
    except Error:
        if budget:
            return budget
        raise
    figures = kind(steady_iteration=-1)
    library.hotpack_get_stats(ctypes.byref(figures), ctypes.sizeof(figures))
    return {**budget, **{name: getattr(figures, name) for name, *_ in kind._fields_}}  # iterations: of the engine


def torch_stats(device: int) -> TorchStats:
    """The library's counts for a CUDA ordinal in [0, 64); ValueError for any other."""
    figures = TorchStats()
    if torch_library().hotpack_torch_get_stats(device, ctypes.byref(figures), ctypes.sizeof(figures)) != 0:
        raise ValueError(f"invalid device {device}")
    return figures


def _metrics(stat: "TorchStat | None") -> "dict[str, int]":
    return {metric: getattr(stat, metric) if stat is not None else 0 for metric in _METRICS}


def _group(stats_of_pools: "Iterable[Optional[TorchStat]]") -> "dict[str, dict[str, int]]":
    return {pool: _metrics(stat) for pool, stat in zip(_POOLS, stats_of_pools)}


def memory_stats(device: int) -> "dict[str, Any]":
    """What torch.cuda.memory.memory_stats_as_nested_dict(device) returns, of hotpack's memory.

    hotpack has no pools by size: small_pool and large_pool divide the requests at 1 MiB as PyTorch does, and reserved
    memory counts as the large pool's. Nothing is cached or split, so those figures are zero.
    """
    figures = torch_stats(device)
    nothing = (None, None, None)
    allocation = _group(figures.allocation)
    allocated_bytes = _group(figures.allocated_bytes)
    return {
        "allocation": allocation,
        "allocated": allocation,
        "active": allocation,
        "segment": _group((figures.segment, None, figures.segment)),
        "allocated_bytes": allocated_bytes,
        "active_bytes": allocated_bytes,
        "requested_bytes": _group(figures.requested_bytes),
        "reserved_bytes": _group((figures.reserved_bytes, None, figures.reserved_bytes)),
        "inactive_split": _group(nothing),
        "inactive_split_bytes": _group(nothing),
        "oversize_allocations": _metrics(None),
        "oversize_segments": _metrics(None),
        "num_alloc_retries": 0,
        "num_ooms": figures.num_ooms,
        "num_sync_all_streams": 0,
        "num_device_alloc": 0,
        "num_device_free": 0,
        "num_oom_rejections": 0,
        "max_split_size": -1,
    }


def memory_fraction(device: int) -> float:
    """Of the last set_per_process_memory_fraction; 1 at first."""
    return float(torch_stats(device).fraction)


def reset_peak_memory_stats(device: int) -> None:
    """Peaks begin again at what there is now: PyTorch's counts, reserved memory, private pools."""
    torch_library().hotpack_torch_reset_peak(device)


def reset_accumulated_memory_stats(device: int) -> None:
    """Counts of all that was allocated and freed begin again at zero."""
    torch_library().hotpack_torch_reset_accumulated(device)
