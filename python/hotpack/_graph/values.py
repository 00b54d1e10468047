"""The values of a step: what each storage held, from its birth to its release.

A value is a storage while it has memory at one address. Views share their storage's value. The key is the address of
the StorageImpl. Another storage may get that address later. So a weak reference ends the value when its storage dies.

    storage s    empty()             resize_(0)   resize_(n)                    last tensor on it goes
    value 7      born 12 ──────────► released
    value 9                                       born 40 ────────────────────► released after operator 57
"""

import weakref
from collections.abc import Callable
from typing import Any, Optional

UNIT = 512  # bytes; PyTorch's and hotpack's allocators round requests up to it
BEFORE = -1  # the place of what was there before the first operator


def rounded(count: int) -> int:
    return -(-count // UNIT) * UNIT


class Value:
    """bytes: rounded up to UNIT. born, released: indices of operators, released None: lives on at the step's end."""

    __slots__ = ("address", "born", "bytes", "device", "held", "kind", "maker", "name", "number", "place", "released",
                 "saves", "seen_at", "touched")

    def __init__(self, number: int, size: int, device: Any, address: int, born: int, maker: Optional[int]) -> None:
        self.number = number
        self.bytes = rounded(size)
        self.device = device  # torch.device
        self.address = address
        self.born = born
        self.maker = maker  # the operator that made it; None: the program brought it
        self.released: Optional[int] = None
        self.kind: Optional[str] = None
        self.name: Optional[str] = None
        self.place: Any = None  # of its maker (places.Place)
        self.held: Optional[bool] = None  # None: not found out
        self.saves: list[Any] = []  # saves.Save
        self.touched = False  # by an operator of the step
        self.seen_at = 0  # the allocator's events until it was seen first (blocks.py)


class Values:
    """Finds the value of a tensor. `clock` returns the index of the operator that began last. Not thread-safe; the
    interpreter's lock orders a backward thread's calls."""

    def __init__(self, clock: "Callable[[], int]") -> None:
        self.all: list[Value] = []
        self._clock = clock
        self._current: dict[int, tuple[Any, Value]] = {}  # by StorageImpl

    def find(self, tensor: Any) -> "Optional[Value]":
        """The value that the tensor's storage has now, if it is known. None for tensors without memory of their own."""
        storage = storage_of(tensor)
        return None if storage is None else self._known(storage)

    def _known(self, storage: Any) -> "Optional[Value]":
        entry = self._current.get(storage._cdata)
        if entry is None:
            return None
        value = entry[1]
        if value.address == storage.data_ptr() and value.bytes == rounded(storage.nbytes()):
            return value
        if value.released is None:  # resized: other memory, so another value
            value.released = self._clock()
        del self._current[storage._cdata]
        return None

    def find_or_add(self, tensor: Any, born: int, maker: "Optional[int]") -> "tuple[Optional[Value], bool]":
        """The tensor's value, and whether it is new."""
        storage = storage_of(tensor)
        if storage is None:
            return None, False
        value = self._known(storage)
        if value is not None:
            return value, False
        value = Value(len(self.all), storage.nbytes(), tensor.device, storage.data_ptr(), born, maker)
        self.all.append(value)
        key = storage._cdata

        def died(reference: object) -> None:
            entry = self._current.get(key)
            if entry is not None and entry[0] is reference:
                del self._current[key]
                if entry[1].released is None:
                    entry[1].released = self._clock()

        self._current[key] = (weakref.ref(storage, died), value)
        return value, True

    def live_storages(self) -> "list[tuple[Any, Value]]":
        """(storage, value) of those that live."""
        alive = [(entry[0](), entry[1]) for entry in list(self._current.values())]
        return [(storage, value) for storage, value in alive if storage is not None]

    def close(self) -> None:
        """Releases from here on belong to later steps."""
        self._current.clear()


def storage_of(tensor: Any) -> Any:
    """The tensor's UntypedStorage, or None: sparse and other layouts, meta tensors, subclasses without memory."""
    if tensor.layout is not _strided() or tensor.device.type == "meta":
        return None
    try:
        storage = tensor.untyped_storage()
        storage.data_ptr()
        return storage
    except (RuntimeError, NotImplementedError):  # of a tensor without data, such as a fake one
        return None


def _strided() -> Any:
    import torch

    return torch.strided
