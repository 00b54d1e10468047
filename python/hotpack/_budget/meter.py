"""The step's load on the device, request by request, where hotpack is PyTorch's allocator."""

from typing import Any, Optional

from .. import _snapshot
from .._graph.blocks import Blocks, Events


class Meter:
    """Without hotpack's allocator, or while the program records the allocator's events itself, nothing is measured."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._events: Optional[Events] = None

    def start(self) -> None:
        """Begins an iteration's recording."""
        from .. import _torch

        if not _torch.enabled() or not self._torch.cuda.is_initialized() or _snapshot.wanted_entries() > 0:
            self._events = None
            return
        device = self._torch.cuda.current_device()
        if self._events is None or self._events.device != device:
            self._events = Events(device)
        self._events.start()

    def count(self) -> int:
        """Requests and releases since the start."""
        return self._events.count() if self._events is not None else 0

    def loads(self) -> "Optional[list[int]]":
        """Bytes live after so many events, from the start on; None: not known."""
        if self._events is None:
            return None
        events = self._events.take(self._events.count())
        return None if events is None else Blocks(self._events.begun_with, events, []).loads

    def stop(self) -> None:
        if self._events is not None:
            self._events.stop()
            self._events = None


def by_position(loads: "list[int]", begin: int, until: "list[int]", end: int) -> "list[int]":
    """The highest load at each position of a pass: from the events at one save or unpack to those at the next."""
    edges = [begin, *until, max(end, until[-1] if until else begin)]
    return [max(loads[first:last + 1]) for first, last in zip(edges, edges[1:])]
