"""The measures of table columns, and the columns that may appear in one table.

Allocators are compared by one measure, the same for all sides: the most held in the whole run. hotpack's memory while it
serves may appear next to it under that name, but in no ratio with another side's figure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pages import Fault

HELD = "held at most in the whole run"
SERVED = "held while served"
LIVE = "live"
PLAN = "plan"
OURS = "hotpack"


@dataclass(frozen=True)
class Column:
    title: str
    show: Callable[[Any], str]
    measure: str = ""  # HELD, SERVED, LIVE, PLAN; empty: no figure of memory
    side: str = ""  # the allocator whose memory it is; empty: none's
    over: str = ""  # of a ratio: the measure that it is divided by


def mixed(columns: Sequence[Column]) -> list[str]:
    """Returns a line for each column that compares different measures. Empty: the table has none."""
    faults = []
    others = [column for column in columns if column.side not in ("", OURS) and column.measure]
    for column in others:
        if column.measure != HELD:
            faults.append(f"'{column.title}' is of {column.side}, and not {HELD}")
    ours = [column for column in columns if column.side == OURS]
    if others and not any(column.measure == HELD and not column.over for column in ours):
        faults.append(f"no column has what {OURS} {HELD}, next to {others[0].side}'s")
    for column in columns:
        if column.measure == SERVED and (SERVED not in column.title or column.over):
            faults.append(f"'{column.title}' is a figure {SERVED} under another name, or in a ratio")
        if column.over == SERVED:
            faults.append(f"'{column.title}' is divided by what is {SERVED}")
    return faults


def refuse_mixed(columns: Sequence[Column]) -> None:
    """Raises Fault with the first line of mixed(), if there is one."""
    for fault in mixed(columns):
        raise Fault(f"a table of different measures: {fault}")


# Headings of pages. Whose memory a column is of:
_SIDES = re.compile(r"pytorch|expandable|cudamallocasync|paper's pool|\borig\b|rmm|best fit|first fit|cudamalloc", re.IGNORECASE)
# ... and that it is not of the whole run:
_PART = re.compile(r"serv|steady|last (iteration|step)|packed", re.IGNORECASE)
_NO_MEMORY = re.compile(r"^ms |\bms\b|\btime\b|simulated|tried|batch", re.IGNORECASE)


def mixed_headings(text: str) -> list[str]:
    """Returns a line for each Markdown table of a page that has other allocators next to a figure of a part of the run,
    unless that is called 'hotpack, held while served'. Includes tables in fenced code."""
    faults, lines = [], text.splitlines()
    for heading, rule in zip(lines, lines[1:]):
        if not heading.startswith("|") or not re.fullmatch(r"\|[-:| ]+\|?", rule):
            continue
        cells = [cell.strip(" `*") for cell in heading.strip().strip("|").split("|")]
        if not any(_SIDES.search(cell) and not _NO_MEMORY.search(cell) for cell in cells):
            continue
        for cell in cells:
            if _PART.search(cell) and cell not in (f"{OURS}, {SERVED}", SERVED, f"{OURS} {SERVED}"):
                faults.append(f"'{cell}' in the table '{heading.strip()}'")
    return faults
