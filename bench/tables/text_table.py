"""A table as text: GitHub's form, which is readable as it is."""

from __future__ import annotations

from collections.abc import Sequence


def render(lines: Sequence[Sequence[str]]) -> str:
    """The first line is the heading; the first column is text, the others are figures."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]

    def write(line: Sequence[str]) -> str:
        cells = [text.ljust(width) if i == 0 else text.rjust(width) for i, (text, width) in enumerate(zip(line, widths))]
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join([":" + "-" * (widths[0] + 1)] + ["-" * (width + 1) + ":" for width in widths[1:]]) + "|"
    return "\n".join([write(lines[0]), rule, *map(write, lines[1:])])
