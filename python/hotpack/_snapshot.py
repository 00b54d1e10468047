"""torch.cuda.memory._snapshot and _record_memory_history, of hotpack's memory.

The same form as PyTorch's own, so that pytorch.org/memory_viz and torch.cuda._memory_viz open it. A run of the arena
that has memory is one expandable segment. Stacks (frames) are not recorded.
"""

import sys
from typing import Any, Optional

from ._library import Extent, TorchEvent, TorchSegment, core, fetch, torch_library

_ALLOC, _FREE, _OOM, _SNAPSHOT = range(4)
_MOST_EVENTS = 1 << 24  # of 40 bytes: what "no limit" means here

_wanted_entries = 0  # what the program has asked for


def wanted_entries() -> int:
    """How many events the program wants to have recorded."""
    return _wanted_entries


def _record(entries: int, clear: bool) -> None:
    global _wanted_entries
    _wanted_entries = entries
    torch_library().hotpack_torch_record(entries, 1 if clear else 0)


def record_memory_history(
    enabled: "str | None" = "all",
    context: object = None,
    stacks: object = "all",
    max_entries: int = sys.maxsize,
    clear_history: bool = False,
    *_ignored: object,
) -> None:
    """torch._C._cuda_record_memory_history: "state" and "all" keep the last `max_entries` events, None stops."""
    if enabled not in (None, "state", "all"):
        raise ValueError(f"enabled must be None, 'state' or 'all', not {enabled!r}")
    entries = 0 if enabled is None else max(1, min(int(max_entries), _MOST_EVENTS))
    _record(entries, clear_history)


def record_memory_history_legacy(
    enabled: bool,
    record_context: object = True,
    trace_alloc_max_entries: int = 1,
    trace_alloc_record_context: object = False,
    record_context_cpp: object = False,
    clear_history: bool = False,
    *_ignored: object,
) -> None:
    entries = max(1, min(int(trace_alloc_max_entries), _MOST_EVENTS)) if enabled else 0
    _record(entries, clear_history)


def _trace(device: int, events: "list[TorchEvent]") -> "list[dict[str, Any]]":
    trace: list[dict[str, Any]] = []

    def add(action: str, event: TorchEvent, **more: object) -> None:
        trace.append({"action": action, "size": event.bytes, "stream": event.stream, "time_us": event.time_us,
                      "device": device, "pool_id": (0, 0), "frames": [], **more})

    for event in events:
        if event.device != device:
            continue
        if event.action == _ALLOC:
            add("alloc", event, addr=event.address)
        elif event.action == _FREE:
            add("free_requested", event, addr=event.address)
            add("free_completed", event, addr=event.address)
        elif event.action == _OOM:
            add("oom", event, device_free=event.address)
        else:
            add("snapshot", event, addr=0)
    return trace


def _blocks_of(run: Extent, blocks: "list[Extent]", known: "dict[int, TorchEvent]") -> "list[dict[str, Any]]":
    """The run's blocks and what lies between them, as PyTorch's segments list them."""
    out = []
    at = run.address

    def add(address: int, size: int, state: str, requested: int) -> None:
        out.append({"address": address, "size": size, "requested_size": requested, "state": state, "frames": []})

    for block in blocks:
        if block.address > at:
            add(at, block.address - at, "inactive", 0)
        event = known.get(block.address)
        add(block.address, block.bytes, "active_allocated", event.bytes if event is not None else block.bytes)
        at = block.address + block.bytes
    if at < run.address + run.bytes:
        add(at, run.address + run.bytes - at, "inactive", 0)
    return out


def _segment(
    device: int,
    address: int,
    size: int,
    blocks: "list[dict[str, Any]]",
    stream: int,
    pool: "tuple[int, ...]" = (0, 0),
    expandable: bool = True,
) -> "dict[str, Any]":
    live = [block for block in blocks if block["state"] == "active_allocated"]
    allocated = sum(block["size"] for block in live)
    return {"device": device, "address": address, "total_size": size, "allocated_size": allocated,
            "active_size": allocated, "requested_size": sum(block["requested_size"] for block in live),
            "stream": stream, "segment_type": "large", "segment_pool_id": tuple(pool), "is_expandable": expandable,
            "frames": [], "blocks": blocks}


def _without(runs: "list[Extent]", pools: "list[TorchSegment]") -> "list[Extent]":
    """The runs, but for what pools hold of them: under the preload their segments lie in the arena."""
    out = []
    for run in runs:
        at, end = run.address, run.address + run.bytes
        for pool in sorted((p for p in pools if at <= p.address < end), key=lambda p: p.address):
            if pool.address > at:
                out.append(Extent(at, pool.address - at, 0, run.arena))
            at = pool.address + pool.bytes
        if at < end:
            out.append(Extent(at, end - at, 0, run.arena))
    return out


def _segments(device: int, known: "dict[int, TorchEvent]") -> "list[dict[str, Any]]":
    runs = fetch(Extent, core().hotpack_list_mapped, device)
    blocks = fetch(Extent, core().hotpack_list_blocks, device)
    segments = []
    pools = fetch(TorchSegment, torch_library().hotpack_torch_segments, device)
    for run in _without(runs, pools):
        inside = [b for b in blocks if run.address <= b.address < run.address + run.bytes]
        segments.append(_segment(device, run.address, run.bytes, _blocks_of(run, inside, known), 0))
    for pool in pools:
        parts = [(pool.live, "active_allocated"), (pool.bytes - pool.live, "inactive")]
        at, listed = pool.address, []
        for size, state in parts:  # how the parts lie is the pool's own affair
            if size:
                listed.append({"address": at, "size": size, "requested_size": size if state != "inactive" else 0,
                               "state": state, "frames": []})
            at += size
        segments.append(_segment(device, pool.address, pool.bytes, listed, 0, tuple(pool.pool), False))
    return segments


def snapshot(request: "Optional[tuple[Any, ...]]" = None) -> "dict[str, Any]":
    """torch._C._cuda_memorySnapshot: None, or (pool id, pool id, include traces)."""
    import torch

    with_traces = not (isinstance(request, tuple) and len(request) > 2 and not request[2])
    pool = tuple(request[:2]) if isinstance(request, tuple) else (0, 0)
    devices = range(torch.cuda.device_count())
    library = torch_library()
    known = {event.address: event for event in fetch(TorchEvent, library.hotpack_torch_live)}
    for device in devices:
        library.hotpack_torch_mark_snapshot(device)
    events = fetch(TorchEvent, library.hotpack_torch_events) if with_traces else []
    segments = [segment for device in devices for segment in _segments(device, known)]
    if pool != (0, 0):
        segments = [segment for segment in segments if segment["segment_pool_id"] == pool]
    return {"segments": segments, "device_traces": [_trace(device, events) for device in devices],
            "allocator_settings": {"backend": "hotpack"}, "external_annotations": []}
