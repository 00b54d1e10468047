"""What hotpack's allocator did during a step: every request and release, between which operators."""

import ctypes
from typing import Any, Optional

from .. import _snapshot
from .._library import Extent, TorchEvent, TorchStats, core, fetch, torch_library
from .values import BEFORE, Value, rounded

_ALLOC, _FREE = 0, 1
_MOST_EVENTS = 1 << 21  # of 40 bytes


class Block:
    """born, released: indices of operators, as of values. first, last: events of its request and release."""

    __slots__ = ("address", "born", "bytes", "first", "last", "released", "value")

    def __init__(self, address: int, size: int, first: int, born: int) -> None:
        self.address = address
        self.bytes = size
        self.first = first
        self.born = born
        self.last: Optional[int] = None
        self.released: Optional[int] = None
        self.value: Optional[Value] = None


class Events:
    """The allocator's events of one device. The program's own recording of them (torch.cuda.memory) pauses
    meanwhile."""

    def __init__(self, device: int) -> None:
        self.device = device
        self._stats = TorchStats()
        self._base = 0
        self._start: list[tuple[int, int]] = []  # (address, bytes) of blocks
        self._begun = False

    def _counted(self) -> int:
        torch_library().hotpack_torch_get_stats(self.device, ctypes.byref(self._stats), ctypes.sizeof(self._stats))
        return int(self._stats.allocation[0].allocated + self._stats.allocation[0].freed)

    def start(self) -> None:
        """Begins a recording. Drops the events that take() did not return."""
        listed = [(extent.address, rounded(extent.bytes))
                  for extent in fetch(Extent, core().hotpack_list_blocks, self.device)]
        if self._begun and not listed:  # HOTPACK=record: the driver has the blocks
            events = self.take(self.count())
            listed = Blocks(self._start, events, []).left() if events is not None else []
        self._begun = True
        torch_library().hotpack_torch_record(_MOST_EVENTS, 1)
        self._base = self._counted()
        self._start = listed

    def count(self) -> int:
        """Events since the start."""
        return self._counted() - self._base

    def current(self) -> int:
        """Bytes of tensors and PyTorch's workspaces that are live now."""
        self._counted()
        return int(self._stats.allocated_bytes[0].current)

    def take(self, count: int) -> "Optional[list[Any]]":
        """The first `count` requests and releases since the start; None: there were too many, or the counts were
        reset."""
        events = [event for event in fetch(TorchEvent, torch_library().hotpack_torch_events)
                  if event.device == self.device and event.action in (_ALLOC, _FREE)]
        return events[:count] if 0 <= count <= len(events) < _MOST_EVENTS else None

    @property
    def begun_with(self) -> "list[tuple[int, int]]":
        """(address, bytes) of the blocks that were live at the start."""
        return self._start

    def summary(self, events: "list[Any]") -> "tuple[int, int]":
        """Bytes that were live at most, and that are live after these events."""
        loads = Blocks(self._start, events, []).loads
        return max(loads), loads[-1]

    def stop(self) -> None:
        torch_library().hotpack_torch_record(_snapshot.wanted_entries(), 0)

    def blocks(self, events: "list[Any]", operators: "list[Any]") -> "Blocks":
        return Blocks(self._start, events, operators)


class Blocks:
    """The blocks of a step, and what was live after each event.

        events      a a | f a a f | f f | a
        operators      op 0        op 1      until: (0, 2), (2, 6), ...
    """

    def __init__(self, start: "list[tuple[int, int]]", events: "list[Any]", operators: "list[Any]") -> None:
        self.all: list[Block] = []
        self._events = events
        current: dict[int, Block] = {}
        for address, size in start:
            block = Block(address, size, -1, BEFORE)
            current[block.address] = block
            self.all.append(block)
        live = sum(block.bytes for block in self.all)
        self.loads = [live]  # after so many events
        number = 0
        for index, event in enumerate(events):
            # Operators may begin between two events; the event belongs to the one that began last.
            while number < len(operators) and operators[number].until[0] <= index:
                number += 1
            place = number - 1
            size = rounded(event.bytes)
            if event.action == _ALLOC:
                block = Block(event.address, size, index, max(place, 0))
                current[event.address] = block
                self.all.append(block)
                live += size
            else:
                gone = current.pop(event.address, None)
                if gone is not None:
                    gone.last, gone.released = index, place
                live -= size
            self.loads.append(live)

    def left(self) -> "list[tuple[int, int]]":
        """(address, bytes) of the blocks that are live after all events."""
        return [(block.address, block.bytes) for block in self.all if block.last is None]

    def match(self, values: "list[Value]") -> None:
        """Each value of the device gets the block at its address, when it was seen first."""
        by_address: dict[int, list[Block]] = {}
        for block in self.all:
            by_address.setdefault(block.address, []).append(block)
        for value in values:
            for block in by_address.get(value.address, ()):
                seen = value.seen_at
                if block.first < max(seen, 1) and (block.last is None or block.last >= seen) and block.value is None:
                    block.value = value

    def peak_of(self, operators: "list[Any]", number: int) -> "tuple[int, int]":
        """(bytes, events before it) of the operator's highest load. Requests since the one before count as its own."""
        begin, end = operators[number].until
        before = operators[number - 1].until[1] if number > 0 else 0
        moments = [index + 1 for index in range(before, begin) if self._events[index].action == _ALLOC]
        moments.extend(range(begin, end + 1))
        highest = max(moments, key=lambda moment: (self.loads[moment], -moment))
        return self.loads[highest], highest

    def live_at(self, moment: int) -> "list[Block]":
        """Blocks live after so many events."""
        return [block for block in self.all
                if block.first < moment and (block.last is None or block.last >= moment)]
