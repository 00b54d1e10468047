"""Pages with tables that are not typed: what stands between `<!-- results: NAME -->` and `<!-- end -->` is written by
tools/results. NAME is a table's name and, for some, a word behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_BEGIN = re.compile(r"<!-- results: ([^\n]*?) -->")
_END = "<!-- end -->"
_FENCE = re.compile(r"^(```+).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)

_UNIT = r"(?:%|[nµum]?s|min|h|[KMGT]?i?B|[kMG]Hz|bytes|times|x|requests|blocks|pairs|instructions)"
_NUMBER = r"[-+−~<>≤≥±×]?\s*\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?"
# A cell that is a figure, or figures: 0.25, 1,000,000, 4842496, 1.7 s, 12 MiB, -3.7 %, 1.0000 / 0.02,
# 250.0 MiB (1.002).
_FIGURES = re.compile(rf"{_NUMBER}(?:\s*{_UNIT})?(?:\s*[/(,;]\s*{_NUMBER}(?:\s*{_UNIT})?\)?)*")
# A whole number alone is ambiguous. It is a figure if it is large, or has a unit.
_TELLING = re.compile(rf"\d\.\d|\d,\d\d\d|\d{{5,}}|\d[eE]|\d\s*{_UNIT}\b|\d\s*%")


class Fault(Exception):
    """What is wrong with a page or a document, in one line."""


def pages(root: Path) -> list[Path]:
    """Those that may have tables, in a fixed order. Long tables have pages of their own in docs/results."""
    found = [root / "README.md"]
    for pattern in ("docs/*.md", "docs/research/*.md", "docs/results/*.md", "*/README.md"):
        found += sorted(root.glob(pattern))
    return [path for path in found if path.is_file()]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def rewrite(text: str, table: Callable[[str], str]) -> tuple[str, list[str]]:
    """The page with its tables as they should be, and the names of those that were not. Markers in fenced code stay as
    they are: they are examples. Raises Fault."""
    fences = [match.span() for match in _FENCE.finditer(text)]
    parts, changed, position = [], [], 0
    for begin in _BEGIN.finditer(text):
        if any(first <= begin.start() < last for first, last in fences):
            continue
        if begin.start() < position:
            raise Fault(f"line {_line(text, begin.start())}: a table within a table")
        end = text.find(_END, begin.end())
        following = _BEGIN.search(text, begin.end())
        if end < 0 or (following and following.start() < end):
            raise Fault(f"line {_line(text, begin.start())}: no {_END} for '{begin[1]}'")
        try:
            wanted = "\n" + table(begin[1]).strip("\n") + "\n"
        except Fault as fault:
            raise Fault(f"line {_line(text, begin.start())}: {fault}") from None
        if text[begin.end():end] != wanted:
            changed.append(begin[1])
        parts += [text[position:begin.end()], wanted]
        position = end
    return "".join([*parts, text[position:]]), changed


def typed_figures(text: str) -> list[tuple[str, str]]:
    """Lines of Markdown tables, outside of markers and of fenced code, with a cell that looks like a measured figure.
    Each follows its table's heading."""
    made = re.compile(_BEGIN.pattern + r".*?" + _END, re.DOTALL)
    found, heading = [], ""
    for line in made.sub("", _FENCE.sub("", text)).splitlines():
        if not line.startswith("|"):
            heading = ""
            continue
        heading = heading or line.strip()
        cells = [cell.strip(" `*") for cell in line.strip().strip("|").split("|")]
        if any(_FIGURES.fullmatch(cell) and _TELLING.search(cell) for cell in cells):
            found.append((heading, line.strip()))
    return found
