"""A memory budget for a training step: saved tensors and optimizer state are kept or moved to the host, by a plan
(docs/budget.md). The engine knows nothing of it."""

import atexit
import os
from typing import Any, Optional

from .. import _sections
from .._errors import Error
from . import amount as _amount
from . import planners
from .amount import Amount, Given

_session: Any = None  # session.Session


def chosen(given: Given) -> "Optional[Amount]":
    """The budget that is in force: HOTPACK_BUDGET's, else the given one. Raises Error."""
    text = os.environ.get("HOTPACK_BUDGET", "")
    return _amount.parse(text if text else given)


def start(torch: Any, amount: Amount, device: str, algorithm: str = "") -> bool:
    """Puts it in force for memory of this type of device ("cuda", "cpu"). algorithm: that plans; HOTPACK_ALGORITHM
    comes before it. Returns False, and does nothing, if there is one already. Raises Error."""
    global _session
    if _session is not None:
        return False
    from . import session

    found = session.Session(torch, amount, device, recompute=_switch("HOTPACK_RECOMPUTE"),
                            state_ahead=_switch("HOTPACK_STATE_AHEAD"),
                            algorithm=planners.parse(os.environ.get("HOTPACK_ALGORITHM", "") or algorithm))
    found.start()
    _session = found
    atexit.register(_end, os.getpid())
    return True


def _switch(name: str) -> bool:
    """Of the environment: on unless it is 0."""
    choice = os.environ.get(name, "")
    if choice not in ("", "0", "1"):
        raise Error(f"{name}={choice} is not 0 or 1")
    return choice != "0"


def _end(process: int) -> None:
    if os.getpid() == process and _session.used():
        _sections.write("budget", _session.figures())
    line = _session.summary()
    if line and os.getpid() == process and os.environ.get("HOTPACK_QUIET", "0") == "0":
        _session.say(line)


def save_plan(path: "Optional[str]") -> bool:
    """Keeps the budget's plans for later runs with HOTPACK_PLAN=path; None: its own path. Returns False if there are
    none. Raises Error and OSError."""
    return _session is not None and _session.save(path)


def figures() -> "dict[str, Any]":
    """For hotpack.stats(); empty without a budget."""
    return {} if _session is None else _session.figures()
