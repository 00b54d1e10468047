"""Jupyter and IPython: `%load_ext hotpack` enables hotpack, `%hotpack` prints its figures."""

from typing import Any, Optional

from ._errors import Error
from ._figures import stats
from ._torch import enable, enabled


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"


def summary(figures: "Optional[dict[str, int]]" = None) -> str:
    """The figures in one line, in the words of `hotpack run` (docs/statistics.md). `figures`: those of stats()."""
    figures = stats() if figures is None else figures
    requests = figures["requests"]
    if requests == 0:
        passed = figures["passed_through"]
        return "no request so far" + (f"; {passed} left to the driver" if passed > 0 else "")
    served = f"held while served {_size(figures['reserved_steady'])}, " if figures["steady_iteration"] >= 0 else ""
    return (
        f"held at most {_size(figures['reserved_peak'])}, {served}live peak {_size(figures['live_peak'])}; "
        f"{100 * figures['planned'] / requests:.1f} % of {requests} requests by the plan"
    )


def _now() -> str:
    import torch  # enable() has imported it

    if not torch.cuda.is_initialized():
        return ""
    return f"now: live {_size(torch.cuda.memory_allocated())}, held {_size(torch.cuda.memory_reserved())}; "


def print_figures(_line: str = "") -> None:
    """%hotpack: prints what is live and held now, and the figures since the kernel's start."""
    print("hotpack: " + (_now() + summary() if enabled() else "not enabled"))


def load(shell: Any) -> None:
    """Enables hotpack and defines %hotpack. Prints one line instead of a traceback where that is not possible."""
    shell.register_magic_function(print_figures, "line", "hotpack")
    try:
        enable()
    except Error as error:
        print(f"hotpack: {error}")
