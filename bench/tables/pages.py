"""Pages with tables that are not typed: what stands between `<!-- results: NAME -->` and `<!-- end -->` is written by
tools/results. NAME is a table's name and, for some, a word behind it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

_BEGIN = re.compile(r"<!-- results: ([^\n]*?) -->")
_END = "<!-- end -->"
_FENCE = re.compile(r"^(```+).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)


class Fault(Exception):
    """What is wrong with a page or a document, in one line."""


def pages(root: Path) -> list[Path]:
    """Those that may have tables, in a fixed order."""
    return [path for path in [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("*/README.md"))]
            if path.is_file()]


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def rewrite(text: str, table: Callable[[str], str]) -> tuple[str, list[str]]:
    """The page with its tables as they should be, and the names of those that were not. Markers in fenced code stay as they
    are: they are examples. Raises Fault."""
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
