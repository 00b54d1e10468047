"""Who saves a tensor for backward, and where it is unpacked: saved-tensor hooks that change nothing.

PyTorch compares versions of saved tensors only where there are no hooks (torch/csrc/autograd/saved_variable.cpp), so
these hooks compare them themselves. What is kept is detach() of the tensor: it shares storage and version counter, and
makes no cycle through the graph.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional


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
        self._pushed = False
        self._on = False
        self._pair: tuple[Any, Any] = (None, None)
        self._plain_disable: Any = None
        self.seen = False  # False: the program's own hooks take the saves, so nothing is known

    def start(self) -> None:
        autograd = self._torch._C._autograd
        if not autograd._saved_tensors_hooks_is_enabled():
            return
        if autograd._top_saved_tensors_default_hooks(False) is not None:
            return  # the program's own: not replaced
        self._pair = (self._pack, self._unpack)
        autograd._push_saved_tensors_default_hooks(*self._pair)
        self._pushed = self._on = self.seen = True
        graph = self._torch.autograd.graph
        self._plain_disable = graph.disable_saved_tensors_hooks
        graph.disable_saved_tensors_hooks = self._disabled

    def stop(self) -> bool:
        """False: hooks of the program lie above these, which stay and hand on what they get."""
        self._on = False
        if self._plain_disable is not None:
            self._torch.autograd.graph.disable_saved_tensors_hooks = self._plain_disable
            self._plain_disable = None
        self._pop()
        return not self._pushed

    def _pop(self) -> bool:
        autograd = self._torch._C._autograd
        top = autograd._top_saved_tensors_default_hooks(False) if self._pushed else None
        if top is None or top[0] != self._pair[0]:
            return False
        autograd._pop_saved_tensors_default_hooks()
        self._pushed = False
        return True

    @contextlib.contextmanager
    def _disabled(self, message: str) -> "Iterator[None]":
        """torch.func's transforms refuse to run below any hooks, so these go meanwhile."""
        popped = self._pop()
        try:
            with self._plain_disable_of()(message):
                yield
        finally:
            if popped and self._on:
                self._torch._C._autograd._push_saved_tensors_default_hooks(*self._pair)
                self._pushed = True

    def _plain_disable_of(self) -> Any:
        return self._plain_disable or self._torch.autograd.graph.disable_saved_tensors_hooks

    def _pack(self, tensor: Any) -> _Packed:
        with self._quiet():
            kept = tensor.detach()
        version = None if tensor.is_inference() else tensor._version
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
        if packed.version is not None and tensor._version != packed.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"[{tensor.type()} {list(tensor.size())}] is at version {tensor._version}; expected version "
                f"{packed.version} instead. Hint: enable anomaly detection to find the operation that failed to "
                "compute its gradient, with torch.autograd.set_detect_anomaly(True).")
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
