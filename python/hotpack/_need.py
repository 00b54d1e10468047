"""The part of `hotpack need` in the program: ends it after some optimizer steps, and notes where it reads values.

Only with HOTPACK_NEED_STEPS in the environment. Nothing here imports torch at its own import.
"""

import atexit
import ctypes
import gc
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from types import FrameType, ModuleType
from typing import Any, Optional

_STEPS = "HOTPACK_NEED_STEPS"
_NOTES = "HOTPACK_NEED_NOTES"  # a path; each process appends its id
_ENOUGH = 4                    # times the steps: others of several optimizers step more rarely, or no more
_PLACES = 20                   # of reads that are noted

_HERE = os.path.dirname(os.path.abspath(__file__))


def wanted() -> int:
    """The steps after which the program ends; 0: it runs to its end."""
    text = os.environ.get(_STEPS, "")
    return int(text) if text.isdigit() else 0


class Counter:
    """Counts optimizers' steps. Of several optimizers each has to make as many, or one of them four times as many: one
    that steps once in five steps of another is waited for, one that is never used is not waited for long."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._counts: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.most = 0

    def enough(self, optimizer: object, others: "Callable[[], Iterable[object]]") -> bool:
        """After a step of `optimizer`: True if the program has made its steps. others(): all that may still step."""
        made = self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        self.most = max(self.most, made)
        if self._steps == 0:
            return False
        if self.most >= _ENOUGH * self._steps:
            return True
        return min(self._counts.values()) >= self._steps and all(other in self._counts for other in others())


class _Notes:
    """What this process says to the command, in a file."""

    def __init__(self) -> None:
        self.steps = 0
        self.marks = 0  # by hand
        self.ended = False
        self.reads: dict[str, int] = {}

    def write(self) -> None:
        path = os.environ.get(_NOTES)
        if not path:
            return
        reads = [{"line": line, "times": times} for line, times in self.reads.items()]
        try:
            with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
                json.dump({"steps": self.steps, "ended": self.ended, "reads": reads}, file)
        except OSError:
            pass  # the command says that nothing was noted


_notes = _Notes()


def _line_of_program(frame: "FrameType | None") -> str:
    """The innermost line outside torch and hotpack."""
    import torch

    others = (os.path.dirname(os.path.abspath(torch.__file__)), _HERE)
    while frame is not None:
        if not frame.f_code.co_filename.startswith(others) and not frame.f_code.co_filename.startswith("<"):
            return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _noting(method: "Callable[..., Any]") -> "Callable[..., Any]":
    def noted(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if self.device.type == "cuda":
            line = _line_of_program(sys._getframe(1))
            if line and (line in _notes.reads or len(_notes.reads) < _PLACES):
                _notes.reads[line] = _notes.reads.get(line, 0) + 1
        return method(self, *arguments, **keywords)

    noted.__name__ = method.__name__
    return noted


def _note_reads(torch: ModuleType) -> None:
    """Values are zeros on the simulated device, so control flow that reads them may go another way."""
    for name in ("__bool__", "__float__", "__int__", "__index__", "item", "tolist", "nonzero"):
        setattr(torch.Tensor, name, _noting(getattr(torch.Tensor, name)))


def _leave_large_unset(torch: ModuleType) -> None:
    """Random contents of large tensors in host memory are left out: they are only copied to a device that drops them.
    So their pages are never touched, and a model of several times the host's memory can be built."""
    large = 1 << 20  # bytes: what the simulated device drops (SIMGPU_VALUES=small)

    def unless_large(method: "Callable[..., Any]") -> "Callable[..., Any]":
        def filled(tensor: Any, *arguments: Any, **keywords: Any) -> Any:
            if tensor.device.type == "cpu" and tensor.numel() * tensor.element_size() >= large:
                return tensor
            return method(tensor, *arguments, **keywords)

        filled.__name__ = method.__name__
        return filled

    for name in ("normal_", "uniform_"):
        setattr(torch.Tensor, name, unless_large(getattr(torch.Tensor, name)))
    for name in ("trunc_normal_", "orthogonal_"):  # they compute with what they drew
        setattr(torch.nn.init, name, unless_large(getattr(torch.nn.init, name)))


def _end_program() -> None:
    """SystemExit in the main thread: handlers run, files are closed."""
    _notes.ended = True
    if threading.current_thread() is threading.main_thread():
        raise SystemExit(0)
    main = ctypes.c_ulong(threading.main_thread().ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(main, ctypes.py_object(SystemExit))


_counter: Optional[Counter] = None


def start(torch: ModuleType) -> None:
    """When torch has been imported. After all others that want to know of optimizers' steps: the last one raises."""
    global _counter
    if _counter is not None:
        return
    _counter = Counter(wanted())
    _note_reads(torch)
    _leave_large_unset(torch)
    atexit.register(_notes.write)
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(_after_step)


def _optimizers() -> "list[object]":
    """All there are, but wrappers of others (accelerate's)."""
    from torch.optim import Optimizer

    return [one for one in gc.get_objects() if issubclass(type(one), Optimizer) and not hasattr(one, "optimizer")]


def _after_step(optimizer: object, _arguments: object, _keywords: object) -> None:
    """After each step of any optimizer. Raises SystemExit when the program has made its steps."""
    if _counter is None or _notes.ended or _notes.marks > 0:
        return
    enough = _counter.enough(optimizer, _optimizers)
    _notes.steps = _counter.most
    if enough:
        _end_program()


def after_mark() -> None:
    """The same for a program that marks its iterations itself: each mark is a step."""
    if _counter is None or _notes.ended:
        return
    _notes.marks += 1
    _notes.steps = _notes.marks
    if 0 < wanted() <= _notes.marks:
        _end_program()
