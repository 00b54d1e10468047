"""Figures of the program's own, which join hotpack's figures of the process. They are in sections, each with a name.

    <HOTPACK_STATS_DIR>/sections.<pid>    {"NAME": {"figures": {...}, "report": {...}}, ...}

`hotpack run` puts the figures into --json-stats, and gives the rest to the page of --report. It knows no names.
"""

import contextlib
import json
import math
import os
import time
from typing import Any, Optional

_DIRECTORY = os.environ.get("HOTPACK_STATS_DIR", "")
_FOLDER = os.path.abspath(_DIRECTORY) if _DIRECTORY else ""  # the program may change its directory
_SECOND = 1.0

_sections: dict[str, Any] = {}
_written = 0.0


def wanted() -> bool:
    """Someone keeps figures of this process."""
    return _FOLDER != ""


def report_wanted() -> bool:
    """... and will make a page of them."""
    return wanted() and os.environ.get("HOTPACK_REPORT", "0") == "1"


def due() -> bool:
    """The file is older than a second."""
    return wanted() and time.monotonic() - _written >= _SECOND


def write(name: str, figures: "dict[str, Any]", report: "Optional[dict[str, Any]]" = None) -> None:
    """Replaces the section. figures: of numbers. report: what the page draws; None: as it was. A reader sees the old or
    the new file, whole. Does nothing where no one keeps figures, or the file cannot be written. Not thread-safe."""
    global _written
    if not wanted():
        return
    section = _sections.setdefault(name, {})
    section["figures"] = {key: value for key, value in figures.items() if math.isfinite(value)}
    if report is not None:
        section["report"] = report
    path = os.path.join(_FOLDER, f"sections.{os.getpid()}")
    with contextlib.suppress(OSError):
        try:
            # A name that is no text, such as of a file, is shown with question marks.
            with open(path + ".new", "w", encoding="utf-8", errors="replace") as file:
                json.dump(_sections, file, separators=(",", ":"), ensure_ascii=False)
            os.replace(path + ".new", path)
        except OSError:
            os.unlink(path + ".new")
            raise
    _written = time.monotonic()
