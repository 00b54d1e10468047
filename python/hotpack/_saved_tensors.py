"""Saved-tensor hooks that stay on a thread's stack, and the version check that hooks switch off.

PyTorch compares versions of saved tensors only where there are no hooks (torch/csrc/autograd/saved_variable.cpp). And
torch.func's transforms refuse to run below any hooks.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from typing import Any, Optional


class DefaultHooks:
    """One pair of hooks, pushed once on each thread that wants it. Where torch.func's transforms run, the pair is
    popped and pushed again. Thread-safe."""

    def __init__(self, torch: Any, pack: "Callable[[Any], Any]", unpack: "Callable[[Any], Any]") -> None:
        self._torch = torch
        self._pair = (pack, unpack)
        self._thread = threading.local()  # .pushed: the pair is on that thread's stack
        self._on = False
        self._plain_disable: Any = None

    def start(self) -> bool:
        """Pushes the pair on this thread. Returns False, and changes nothing, if other hooks are there or hooks are
        disabled."""
        if not self.push():
            return False
        self._on = True
        graph = self._torch.autograd.graph
        self._plain_disable = graph.disable_saved_tensors_hooks
        graph.disable_saved_tensors_hooks = self._disabled
        return True

    def stop(self) -> bool:
        """Pops the pair of this thread. Returns False if hooks of the program lie above it: then the pair stays, and
        gets saves until those go."""
        self._on = False
        if self._plain_disable is not None:
            self._torch.autograd.graph.disable_saved_tensors_hooks = self._plain_disable
            self._plain_disable = None
        self._pop()
        return not getattr(self._thread, "pushed", False)

    def push(self) -> bool:
        """As start(), for a further thread."""
        autograd = self._torch._C._autograd
        if not autograd._saved_tensors_hooks_is_enabled():
            return False
        if autograd._top_saved_tensors_default_hooks(False) is not None:
            return False  # the program's own: not replaced
        autograd._push_saved_tensors_default_hooks(*self._pair)
        self._thread.pushed = True
        return True

    def _pop(self) -> bool:
        if not getattr(self._thread, "pushed", False):
            return False
        autograd = self._torch._C._autograd
        top = autograd._top_saved_tensors_default_hooks(False)
        if top is None or top[0] != self._pair[0]:
            return False
        autograd._pop_saved_tensors_default_hooks()
        self._thread.pushed = False
        return True

    @contextlib.contextmanager
    def _disabled(self, message: str) -> "Iterator[None]":
        popped = self._pop()
        try:
            with (self._plain_disable or self._torch.autograd.graph.disable_saved_tensors_hooks)(message):
                yield
        finally:
            if popped and self._on:
                self._torch._C._autograd._push_saved_tensors_default_hooks(*self._pair)
                self._thread.pushed = True


def version_of(tensor: Any) -> "Optional[int]":
    """None: an inference tensor, which has none."""
    return None if tensor.is_inference() else tensor._version


def check_version(torch: Any, tensor: Any, expected: "Optional[int]",
                  output: "Optional[tuple[int, str]]" = None) -> None:
    """Raises changed_in_place() if the tensor is not at this version. None: it has none."""
    if expected is not None and tensor._version != expected:
        raise changed_in_place(torch, tensor.type(), list(tensor.size()), tensor._version, expected, output)


def changed_in_place(torch: Any, kind: str, size: "list[int]", version: int, expected: int,
                     output: "Optional[tuple[int, str]]" = None) -> RuntimeError:
    """The error of PyTorch's own version check, in this version's words. kind: Tensor.type(). output: the number of the
    output and the name of the node that made the tensor; None for leaves."""
    text = _own_error(torch)
    if "Backward" not in text.split("expected version")[0] and output is not None:
        output = (output[0], re.sub(r"Backward\d*$", "", output[1]))
    made = f", which is output {output[0]} of {output[1]}," if output is not None else ""
    what = f"[{kind} {size}]{made} is at version {version}; expected version {expected} instead"
    return RuntimeError(re.sub(r"\[torch\.FloatTensor .* instead", lambda _: what, text))


def _own_error(torch: Any) -> str:
    """What PyTorch says of a tensor of one element. Another thread has no hooks, so that it checks there."""
    said = ["one of the variables needed for gradient computation has been modified by an inplace operation: "
            "[torch.FloatTensor [1]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead."]

    def provoke() -> None:
        value = torch.zeros(1, requires_grad=True).exp()
        with torch.no_grad():
            value.add_(1)
        try:
            value.backward()
        except RuntimeError as error:
            said.append(str(error))

    if not torch.is_anomaly_enabled():  # which would print a traceback of it
        thread = threading.Thread(target=provoke)
        thread.start()
        thread.join()
    return said[-1]
