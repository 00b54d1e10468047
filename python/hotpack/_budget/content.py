"""What autograd keeps of a saved tensor, and how the tensor comes back.

Each kind checks the version: PyTorch itself does so only without hooks. What is moved leaves an empty tensor behind,
which shares the version counter, so that a later change in place raises although nothing holds the storage.
"""

from typing import Any, Optional

from .._saved_tensors import changed_in_place, version_of
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
        tensor = self.tensor
        if self.version is not None and tensor._version != self.version:
            raise changed_in_place(self.torch, tensor.type(), list(tensor.size()), tensor._version, self.version,
                                   self.made)
        return tensor


class Tracked:
    """Save `number` of a pass. use(tracked) is called when a node gets it."""

    __slots__ = ("number", "passing")

    def __init__(self, passing: Pass, number: int) -> None:
        self.passing = passing
        self.number = number
        passing.live.add(number)

    def __del__(self) -> None:
        self.passing.live.discard(self.number)


class Kept(Plain):
    """Stays on the device."""

    __slots__ = ("tracked", "use")

    def __init__(self, torch: Any, tensor: Any, tracked: Tracked, use: Any) -> None:
        super().__init__(torch, tensor, True)
        self.tracked = tracked
        self.use = use

    def unpack(self) -> Any:
        tensor = super().unpack()
        self.use(self.tracked)
        return tensor


class Moved:
    """A storage's contents on the host, for all saves of it. On the device again from its first unpack to its last."""

    __slots__ = ("_arrival", "_copy", "_entry", "_host", "_torch", "_waiting", "saves")

    def __init__(self, torch: Any, host: Any, entry: Saved, storage: Any) -> None:
        self._torch = torch
        self._host = host
        self._entry = entry
        self._copy: Copy = host.out(storage)
        self._arrival: Optional[Arrival] = None
        self.saves: set[int] = set()     # that autograd keeps
        self._waiting: set[int] = set()  # of them, not unpacked since the storage came back

    def add(self, number: int) -> None:
        self.saves.add(number)
        self._waiting.add(number)

    def original(self) -> Any:
        """The storage itself where the program has held it: then nothing comes back. None: it is gone."""
        storage = self._torch.UntypedStorage._new_with_weak_ptr(self._entry.weak.cdata)
        return storage if storage is not None and storage.nbytes() == self._copy.bytes else None

    def fetch(self) -> bool:
        """Begins to bring it back. Returns False if there is nothing to bring."""
        if self._arrival is not None or not self._waiting or self.original() is not None:
            return False
        self._arrival = self._host.back(self._copy)
        return True

    def arriving(self) -> bool:
        return self._arrival is not None

    def look(self) -> Any:
        """The storage for an inspection outside of backward."""
        original = self.original()
        if original is not None:
            return original
        return (self._arrival or self._host.back(self._copy)).wait(self._torch)

    def take(self, number: int) -> Any:
        """The storage for a node."""
        storage = self.original()
        if storage is None:
            if self._arrival is None:
                self._arrival = self._host.back(self._copy)
            storage = self._arrival.wait(self._torch)
        self._waiting.discard(number)
        if not self._waiting:  # with retain_graph it comes back again
            self._arrival = None
            self._waiting = set(self.saves)
        return storage

    def forget(self, number: int) -> None:
        self.saves.discard(number)
        self._waiting.discard(number)
        if self._arrival is not None and not self._waiting:
            self._arrival.drop()
            self._arrival = None
        if not self.saves:
            self._host.release(self._copy)


class Away:
    """A saved tensor whose storage is moved."""

    __slots__ = ("_made", "_meta", "_moved", "_torch", "_use", "_version", "_watch", "tracked")

    def __init__(self, torch: Any, tensor: Any, tracked: Tracked, moved: Moved, use: Any) -> None:
        self._torch = torch
        self._meta = (tensor.dtype, tensor.device, tensor.storage_offset(), tensor.size(), tensor.stride())
        self._made = operator_of(tensor)
        self._version = tensor._version
        self._watch = tensor.detach()
        self._watch.data = _nothing_like(torch, tensor)
        self._moved = moved
        self._use = use
        self.tracked = tracked
        moved.add(tracked.number)

    def __del__(self) -> None:
        self._moved.forget(self.tracked.number)

    def unpack(self) -> Any:
        dtype, device, offset, size, stride = self._meta
        if self._watch._version != self._version:
            raise changed_in_place(self._torch, self._watch.type(), list(size), self._watch._version, self._version,
                                   self._made)
        in_backward = self._use(self.tracked)
        storage = self._moved.take(self.tracked.number) if in_backward else self._moved.look()
        return self._torch.empty(0, dtype=dtype, device=device).set_(storage, offset, size, stride)


def _nothing_like(torch: Any, tensor: Any) -> Any:
    return torch.empty(0, dtype=tensor.dtype, device=tensor.device)
