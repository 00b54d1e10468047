"""What autograd keeps of a saved tensor, and how the tensor comes back.

Each kind checks the version: PyTorch itself does so only without hooks. What is moved leaves an empty tensor behind,
which shares the version counter, so that a later change in place raises although nothing holds the storage.
"""

from collections.abc import Callable
from typing import Any, Optional

from .._saved_tensors import changed_in_place, check_version, version_of
from .host import Arrival, Copy
from .passes import Pass, Saved
from .tensors import operator_of


class Plain:
    """The tensor itself, as autograd keeps it without hooks. A leaf stays the same object, whose data the program may
    replace. Others are detached, so that there is no cycle through the graph."""

    __slots__ = ("made", "tensor", "torch", "version")

    def __init__(self, torch: Any, tensor: Any, common: bool) -> None:
        self.torch = torch
        if common:
            self._keep(tensor)
        else:
            with torch._C.DisableTorchFunctionSubclass():
                self._keep(tensor)

    def _keep(self, tensor: Any) -> None:
        self.version = version_of(tensor)
        self.made = operator_of(tensor)
        self.tensor = tensor if tensor.is_leaf else tensor.detach()

    def unpack(self) -> Any:
        check_version(self.torch, self.tensor, self.version, self.made)
        return self.tensor


class Tracked:
    """Save `number` of a pass. idle(passing) is called when the pass's last one goes."""

    __slots__ = ("_idle", "number", "passing")

    def __init__(self, passing: Pass, number: int, idle: "Callable[[Pass], None]") -> None:
        self._idle = idle
        self.passing = passing
        self.number = number
        passing.live.add(number)

    def __del__(self) -> None:
        self.passing.forget(self.number)
        if not self.passing.live:
            self._idle(self.passing)


class Kept(Plain):
    """Stays on the device."""

    __slots__ = ("__weakref__", "tracked", "use")

    def __init__(self, torch: Any, tensor: Any, tracked: Tracked, use: Any) -> None:
        super().__init__(torch, tensor, True)
        self.tracked = tracked
        self.use = use

    def unpack(self) -> Any:
        tensor = super().unpack()
        self.use(self.tracked)
        return tensor


class Absent:
    """The contents of a storage that is not kept, for all saves of it. On the device again from its first unpack to its
    last. Subclasses say how."""

    def __init__(self, torch: Any, entry: Saved) -> None:
        self._torch = torch
        self._entry = entry
        self._arrival: Optional[Arrival] = None
        self.saves: set[int] = set()     # that autograd keeps
        self._waiting: set[int] = set()  # of them, not unpacked since the storage came back
        self.gone = False  # autograd keeps none any more

    def _bring(self) -> Arrival:
        raise NotImplementedError

    def _drop(self) -> None:
        """No save is left, and no recipe."""
        raise NotImplementedError

    def add(self, number: int) -> None:
        self.saves.add(number)
        self._waiting.add(number)

    def original(self) -> Any:
        """The storage itself where the program has held it: then nothing comes back. None: it is gone."""
        storage = self._torch.UntypedStorage._new_with_weak_ptr(self._entry.weak.cdata)
        return storage if storage is not None and storage.nbytes() == self._entry.bytes else None

    def fetch(self) -> bool:
        """Begins to bring it back. Returns False if there is nothing to bring."""
        if self._arrival is not None or not self._waiting or self.original() is not None:
            return False
        self._arrival = self._bring()
        return True

    def look(self, stay: bool) -> Any:
        """The storage for an inspection outside of backward; or for a recipe, then it stays for the saves of it."""
        original = self.original()
        if original is not None:
            return original
        arrival = self._arrival or self._bring()
        if stay and self._waiting:
            self._arrival = arrival
        return arrival.wait(self._torch)

    def take(self, number: int) -> Any:
        """The storage for a node."""
        storage = self.original()
        if storage is None:
            if self._arrival is None:
                self._arrival = self._bring()
            storage = self._arrival.wait(self._torch)
        self._waiting.discard(number)
        if not self._waiting:  # with retain_graph it comes back again
            if self._returns():
                self._arrival = None
            self._waiting = set(self.saves)
        return storage

    def _returns(self) -> bool:
        """True if it can be brought again."""
        return True

    def forget(self, number: int) -> None:
        self.saves.discard(number)
        self._waiting.discard(number)
        if self._arrival is not None and not self._waiting and (self._returns() or not self.saves):
            self._arrival.drop()
            self._arrival = None
        if not self.saves:
            self.gone = True
            self._drop()


class Moved(Absent):
    """On the host."""

    def __init__(self, torch: Any, host: Any, entry: Saved, storage: Any, until: "Optional[int]") -> None:
        super().__init__(torch, entry)
        self._host = host
        self._copy: Copy = host.out(storage, until)

    def _bring(self) -> Arrival:
        arrival: Arrival = self._host.back(self._copy)
        return arrival

    def _drop(self) -> None:
        self._host.release(self._copy)


class Away:
    """A saved tensor whose storage is not kept."""

    __slots__ = ("__weakref__", "_made", "_meta", "_torch", "_use", "_version", "_watch", "check", "content", "tracked")

    def __init__(self, torch: Any, tensor: Any, tracked: Tracked, content: Absent, use: Any) -> None:
        self._torch = torch
        self._meta = (tensor.dtype, tensor.device, tensor.storage_offset(), tensor.size(), tensor.stride())
        self._made = operator_of(tensor)
        self._version = tensor._version
        self._watch = tensor.detach()
        self._watch.data = _nothing_like(torch, tensor)
        self._use = use
        self.check: Optional[Callable[[Any], None]] = None  # called with the storage at the first unpack
        self.content = content
        self.tracked = tracked
        content.add(tracked.number)

    def __del__(self) -> None:
        self.content.forget(self.tracked.number)

    def unpack(self) -> Any:
        if self._watch._version != self._version:
            raise changed_in_place(self._torch, self._watch.type(), list(self._meta[3]), self._watch._version,
                                   self._version, self._made)
        if not self._use(self.tracked):
            return self._on(self.content.look(False))
        storage = self.content.take(self.tracked.number)
        if self.check is not None:
            check, self.check = self.check, None
            check(storage)
        return self._on(storage)

    def view(self) -> Any:
        """The tensor, for a recipe."""
        return self._on(self.content.look(True))

    def _on(self, storage: Any) -> Any:
        dtype, device, offset, size, stride = self._meta
        return self._torch.empty(0, dtype=dtype, device=device).set_(storage, offset, size, stride)


def _nothing_like(torch: Any, tensor: Any) -> Any:
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device)
