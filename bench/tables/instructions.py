"""Writes the document of `bench/count_instructions all --json FILE` from the lines that it prints. Arguments: FILE, the
built command, and those of count_instructions."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from made import made, text_of

_LINE = re.compile(r"(\d+) instructions for (.+) \((\d+) (pairs|launches)\)")


def row(line: str) -> dict:
    said = _LINE.fullmatch(line)
    if said is None:
        sys.exit(f"count_instructions: '{line}' is no count")
    return {"what": said[2], "instructions": int(said[1]), "of": int(said[3])}


def main(path: str, hotpack: str, arguments: list[str]) -> None:
    rows = [row(line) for line in sys.stdin.read().splitlines()]
    document = made("hotpack-instructions", "bench/count_instructions", arguments, hotpack) | {"rows": rows}
    Path(path).write_text(text_of(document), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
