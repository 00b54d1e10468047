"""Who saves a tensor for backward, and where it is unpacked: saved-tensor hooks that change nothing.

What is kept is detach() of the tensor: it shares storage and version counter, and makes no cycle through the graph.
"""

import weakref
from collections.abc import Callable
from typing import Any, Optional

from .._saved_tensors import DefaultHooks, check_version, version_of


class Save:
    """One saved tensor. node: the autograd node's name; sequence: the node's number, made at its forward operator.
    packed_at: index of the operator that came next. unpacked: indices of the operators after each unpack."""

    __slots__ = ("node", "packed", "packed_at", "sequence", "unpacked")

    def __init__(self, packed_at: int, sequence: int) -> None:
        self.packed: Any = None  # a weak reference to what autograd keeps
        self.packed_at = packed_at
        self.sequence = sequence
        self.node: Optional[str] = None
        self.unpacked: list[int] = []


class _Packed:
    """What autograd keeps until its node has run."""

    __slots__ = ("__weakref__", "save", "tensor", "version")

    def __init__(self, tensor: Any, version: "Optional[int]", save: "Optional[Save]") -> None:
        self.tensor = tensor
        self.version = version
        self.save = save


class Saves:
    """find(tensor) returns its value; position() the index of the next operator; sequence() that of the node that was
    made last. `quiet` is a context in which operators are not recorded. task() is called before an unpack."""

    def __init__(self, torch: Any, find: "Callable[[Any], Any]", position: "Callable[[], int]",
                 sequence: "Callable[[], int]", quiet: "Callable[[], Any]", task: "Callable[[], None]") -> None:
        self._torch = torch
        self._find = find
        self._position = position
        self._sequence = sequence
        self._quiet = quiet
        self._task = task
        self._on = False
        self._hooks = DefaultHooks(torch, self._pack, self._unpack)
        self.seen = False  # False: the program's own hooks take the saves, so nothing is known

    def start(self) -> None:
        self._on = self.seen = self._hooks.start()

    def stop(self) -> bool:
        """False: hooks of the program lie above these, which stay and hand on what they get."""
        self._on = False
        return self._hooks.stop()

    def _pack(self, tensor: Any) -> _Packed:
        with self._quiet():
            kept = tensor.detach()
        version = version_of(tensor)
        save = None
        value = self._find(tensor) if self._on else None
        if value is not None:
            save = Save(self._position(), self._sequence())
            value.saves.append(save)
        packed = _Packed(kept, version, save)
        if save is not None:
            save.packed = weakref.ref(packed)
        return packed

    def _unpack(self, packed: _Packed) -> Any:
        tensor = packed.tensor
        check_version(self._torch, tensor, packed.version)
        save = packed.save
        if self._on:
            self._task()
        if save is not None and self._on and self._torch._C._current_graph_task_id() != -1:
            node = self._torch._C._current_autograd_node()
            if node is not None and save.node is None:
                save.node = node.name()
            save.unpacked.append(self._position())
        return tensor


def held_by_program(torch: Any, storage: Any, value: Any) -> "Optional[bool]":
    """True if more than autograd keeps this storage: a name of the program, or what never passes by hooks. None: this
    PyTorch does not count a storage's holders. Each tensor counts one, and so does the storage's Python object."""
    count = getattr(torch._C, "_storage_Use_Count", None)
    if count is None:
        return None
    kept = sum(1 for save in value.saves if save.packed is not None and save.packed() is not None)
    return bool(count(storage._cdata) - 1 > kept)
