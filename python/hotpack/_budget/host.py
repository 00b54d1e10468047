"""Copies of whole storages in host memory, and back.

A storage is copied as bytes, so strides, gaps and what views share stay as they are. On a GPU a stream each way copies:

    compute   op  save s   op   op   op ...            node of s
    out           └─ wait ── copy s ─┐
    storage   ───────────────────────┘ let go: compute waits for the copy, so the memory's next user does too
    in                                       copy s ──┘ (fetched ahead)
"""

import contextlib
from collections import deque
from collections.abc import Iterator
from typing import Any, Optional

from .clock import UNKNOWN_RATE, Clock, Rates


class Copy:
    """The contents of a storage on the host. bytes: of the storage."""

    __slots__ = ("buffer", "bytes", "device", "last")

    def __init__(self, buffer: Any, size: int, device: Any) -> None:
        self.buffer = buffer
        self.bytes = size
        self.device = device
        self.last: Any = None  # the event after the last copy that reads or writes the buffer


class Arrival:
    """A storage that a copy back fills, made on the stream `user`."""

    __slots__ = ("_event", "_user", "storage")

    def __init__(self, storage: Any, event: Any = None, user: Any = None) -> None:
        self.storage = storage
        self._event = event
        self._user = user

    def wait(self, torch: Any) -> Any:
        """The storage, for work of the current stream, which waits for the copy."""
        if self._event is not None:
            current = torch.cuda.current_stream(self.storage.device)
            current.wait_event(self._event)
            if current != self._user:
                whole_of(torch, self.storage).record_stream(current)
        return self.storage

    def drop(self) -> None:
        """Without use: the memory's next user waits for the copy."""
        if self._event is not None:
            self._user.wait_event(self._event)
        self.storage = None


def whole_of(torch: Any, storage: Any) -> Any:
    """All bytes of the storage as a tensor."""
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage, 0, (storage.nbytes(),), (1,))


class Streams:
    """Of copies: one out and one back for each device."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pairs: dict[Any, tuple[Any, Any]] = {}

    def of(self, device: Any) -> "tuple[Any, Any]":
        if device not in self._pairs:
            self._pairs[device] = (self._torch.cuda.Stream(device), self._torch.cuda.Stream(device))
        return self._pairs[device]


class Copied:
    """What copies took while it was on: the last ones of each way."""

    _LAST = 256

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.on = False
        self._ways: dict[str, deque[tuple[int, Any, Any]]] = {way: deque(maxlen=self._LAST) for way in ("out", "back")}

    @contextlib.contextmanager
    def measure(self, way: str, size: int) -> "Iterator[None]":
        """A copy, on the current stream."""
        if not self.on:
            yield
            return
        begin = self._clock.now()
        yield
        self._ways[way].append((size, begin, self._clock.now()))

    def rates(self, overlaps: bool) -> Rates:
        """Waits for a GPU. A way without a copy: UNKNOWN_RATE."""
        return Rates(self._rate("out"), self._rate("back"), overlaps)

    def _rate(self, way: str) -> float:
        copies = self._ways[way]
        seconds = self._clock.sum([(begin, end) for _, begin, end in copies])
        return sum(size for size, _, _ in copies) / seconds if seconds > 0 else UNKNOWN_RATE


class PlainHost:
    """Without a GPU: copies within the host's memory."""

    ahead = False  # nothing is gained by an early copy

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._copied = Copied(Clock(torch, "cpu"))

    def out(self, storage: Any, until: "Optional[int]" = None) -> Copy:
        """Copies the storage. The caller may let it go."""
        with self._copied.measure("out", storage.nbytes()):
            return Copy(storage.clone(), storage.nbytes(), storage.device)

    def back(self, copy: Copy) -> Arrival:
        with self._copied.measure("back", copy.bytes):
            return Arrival(copy.buffer.clone())

    def measure(self, on: bool) -> None:
        """Copies are measured from now on, or not."""
        self._copied.on = on

    def rates(self) -> Rates:
        """As measured."""
        return self._copied.rates(False)

    def passed(self) -> None:
        """A storage is saved that does not leave."""

    def reach(self, position: int) -> None:
        """The pass is at this position."""

    def flush(self) -> None:
        """Lets go of storages whose copies are on their way."""

    def release(self, copy: Copy) -> None:
        """The copy is not needed any more."""

    def end_step(self) -> None:
        """Buffers that the last steps did not use are given back."""


class _Pool:
    """Pinned buffers, kept over steps: pinning takes longer than a copy. Not thread-safe; the interpreter's lock orders
    the calls."""

    _KEEP = 3  # steps that a buffer stays without use

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._free: dict[int, list[tuple[Any, Any, int]]] = {}  # by size: buffer, its last event, the step of its use
        self._step = 0

    @staticmethod
    def _rounded(size: int) -> int:
        """Up to an eighth more, so that steps of slightly other sizes use the same buffers."""
        grain = 1 << max(12, size.bit_length() - 4)
        return -(-size // grain) * grain

    def take(self, size: int) -> "tuple[Any, Any]":
        """A buffer of at least so many bytes, and the event that its next user waits for."""
        rounded = self._rounded(size)
        found = self._free.get(rounded)
        if found:
            buffer, event, _ = found.pop()
            return buffer, event
        return self._torch.empty(rounded, dtype=self._torch.uint8, pin_memory=True), None

    def give(self, buffer: Any, event: Any) -> None:
        self._free.setdefault(buffer.numel(), []).append((buffer, event, self._step))

    def end_step(self) -> None:
        self._step += 1
        for size, entries in list(self._free.items()):
            kept = [entry for entry in entries
                    if self._step - entry[2] <= self._KEEP or not (entry[1] is None or entry[1].query())]
            if kept:
                self._free[size] = kept
            else:
                del self._free[size]


class PinnedHost:
    """To pinned memory and back, by a stream each way. A storage waits for its copy out until two more are saved,
    moved or not: then the caller's stream waits for it, and it goes. So it goes no later than where everything is
    moved. A plan may give it longer, until a position of the pass."""

    ahead = True
    _WINDOW = 2

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._pool = _Pool(torch)
        self._copied = Copied(Clock(torch, "cuda"))
        self._streams = Streams(torch)
        # Storage, the stream of its last use, the copy's event; None: a storage that stays.
        self._leaving: deque[Optional[tuple[Any, Any, Any]]] = deque()
        self._planned: list[tuple[int, Any, Any, Any]] = []  # the position, and the same

    def out(self, storage: Any, until: "Optional[int]" = None) -> Copy:
        torch = self._torch
        size = storage.nbytes()
        buffer, busy = self._pool.take(size)
        copy = Copy(buffer, size, storage.device)
        user = torch.cuda.current_stream(storage.device)
        out, _ = self._streams.of(storage.device)
        out.wait_stream(user)
        if busy is not None:
            out.wait_event(busy)
        with torch.cuda.stream(out), self._copied.measure("out", size):
            buffer[:size].copy_(whole_of(torch, storage), non_blocking=True)
        copy.last = torch.cuda.Event()
        copy.last.record(out)
        if until is not None:
            self._planned.append((until, storage, user, copy.last))
        self._leave(None if until is not None else (storage, user, copy.last))
        return copy

    def reach(self, position: int) -> None:
        if self._planned:
            for until, _, user, event in self._planned:
                if until <= position:
                    user.wait_event(event)
            self._planned = [each for each in self._planned if each[0] > position]

    def passed(self) -> None:
        self._leave(None)

    def _leave(self, leaving: "Optional[tuple[Any, Any, Any]]") -> None:
        self._leaving.append(leaving)
        while len(self._leaving) > self._WINDOW:
            self._let_go()

    def _let_go(self) -> None:
        leaving = self._leaving.popleft()
        if leaving is not None:
            _, user, event = leaving
            user.wait_event(event)

    def flush(self) -> None:
        while self._leaving:
            self._let_go()
        for _, _, user, event in self._planned:
            user.wait_event(event)
        self._planned = []

    def back(self, copy: Copy) -> Arrival:
        torch = self._torch
        target = torch.empty(copy.bytes, dtype=torch.uint8, device=copy.device)
        user = torch.cuda.current_stream(copy.device)
        _, back = self._streams.of(copy.device)
        back.wait_stream(user)  # the memory's earlier use
        back.wait_event(copy.last)
        with torch.cuda.stream(back), self._copied.measure("back", copy.bytes):
            target.copy_(copy.buffer[:copy.bytes], non_blocking=True)
        copy.last = torch.cuda.Event()
        copy.last.record(back)
        return Arrival(target.untyped_storage(), copy.last, user)

    def measure(self, on: bool) -> None:
        self._copied.on = on

    def rates(self) -> Rates:
        return self._copied.rates(True)

    def release(self, copy: Copy) -> None:
        self._pool.give(copy.buffer, copy.last)
        copy.buffer = None

    def end_step(self) -> None:
        self._pool.end_step()


def host_for(torch: Any, device: str) -> Any:
    return PinnedHost(torch) if device == "cuda" else PlainHost(torch)


