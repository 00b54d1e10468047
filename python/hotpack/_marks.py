"""What a program may tell hotpack, or ask of it, while it runs."""

import contextlib
import errno
import math
import os
from collections.abc import Callable, Iterator

from . import _budget, _need
from ._errors import Error
from ._library import core
from ._simulate import simulated

_marked_by_hand = False
_listeners: "list[Callable[[], None]]" = []


class _Listening:
    def __init__(self, listener: "Callable[[], None]") -> None:
        self._listener = listener

    def remove(self) -> None:
        _listeners.remove(self._listener)


def on_step(listener: "Callable[[], None]") -> _Listening:
    """Calls listener() at each step() from now on, until remove() of what it returns."""
    _listeners.append(listener)
    return _Listening(listener)


def marked_by_hand() -> bool:
    return _marked_by_hand


def mark() -> None:
    """An iteration ends. On the simulated device, where a step takes next to no time, the plan is waited for, as it
    would have come within a step or two on a real one."""
    core().hotpack_step()
    if simulated():
        core().hotpack_wait_plan(10_000)


def expect() -> None:
    """Iterations will be marked: none of the loops within the first one is planned meanwhile."""
    core().hotpack_expect_steps()


def step() -> None:
    """An iteration ends here. Only for loops without an optimizer: from the first call on, optimizers mark nothing."""
    global _marked_by_hand
    _marked_by_hand = True
    for listener in list(_listeners):
        listener()
    mark()
    _need.after_mark()


@contextlib.contextmanager
def interrupted() -> "Iterator[None]":
    """Within it requests are not part of any iteration: for what never repeats, such as a checkpoint.

    May be nested. It is a decorator too: `@hotpack.interrupted()`."""
    core().hotpack_interrupt()
    try:
        yield
    finally:
        core().hotpack_resume()


def save_plan(path: "str | os.PathLike[str] | None" = None) -> None:
    """Keeps the plans there are now in a file, for later runs with HOTPACK_PLAN=path. None: the file that HOTPACK_PLAN
    names. The plans of a budget go next to it, into path.budget.

    Raises OSError: ENODATA if there is no plan yet, EEXIST where another file is, EINVAL without a path.
    """
    name = None if path is None else os.fsencode(path)
    if name is not None and b"\0" in name:
        raise ValueError("embedded null byte")
    error = core().hotpack_save_plan(name)
    if error in (0, errno.ENODATA):
        try:
            if _budget.save_plan(None if path is None else os.fsdecode(path)):
                error = 0  # on the CPU there are no others
        except Error as why:
            raise FileExistsError(errno.EEXIST, str(why)) from why
    if error != 0:
        raise OSError(error, os.strerror(error), None if path is None else os.fspath(path))


def wait_plan(timeout: "float | None" = None) -> bool:
    """Waits until no planning is under way, at most so many seconds. True: none is."""
    milliseconds = -1  # it waits on
    if timeout is not None:
        if math.isnan(timeout):
            raise ValueError("timeout is not a number")
        milliseconds = int(max(0, min(timeout * 1000, 2**31 - 1)))
    return bool(core().hotpack_wait_plan(milliseconds) == 1)


def trim() -> int:
    """Gives memory without tensors back to the device; returns the bytes. torch.cuda.empty_cache() does it too."""
    return int(core().hotpack_trim())
