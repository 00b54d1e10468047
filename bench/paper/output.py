"""The output of a figure's command: one document (JSON), the same as CSV, as a Markdown table and as a picture."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "tables"))
from made import made, origin, text_of  # noqa: E402
from options import Parser  # noqa: E402

MIB = 1 << 20


def parser(name: str, what: str) -> Parser:
    """A parser with the options that all figures have."""
    options = Parser(prog=name, description=what)
    size = options.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="full",
                      help="less of it; the output says so")
    size.add_argument("--smoke", dest="size", action="store_const", const="smoke", help="small networks, as a test runs it")
    options.add_argument("--build", type=Path, default=ROOT / "build", metavar="DIRECTORY")
    options.add_argument("--out", type=Path, metavar="DIRECTORY", help="where the files go (BUILD/paper)")
    options.add_argument("--timeout", type=float, default=900, metavar="SECONDS", help="of one PyTorch run (900)")
    options.add_argument("--no-cudnn", action="store_true", help="PyTorch's own convolutions and LSTMs")
    return options


def parse(options: Parser, arguments: list[str]) -> argparse.Namespace:
    parsed = options.parse_args(arguments)
    parsed.build = parsed.build.resolve()
    if not (parsed.build / "bin" / "hotpack").exists():
        options.error(f"{parsed.build / 'bin' / 'hotpack'} is not built")
    if parsed.out is None:
        parsed.out = parsed.build / "paper"
        parsed.out.mkdir(exist_ok=True)
    elif not parsed.out.is_dir():
        options.error(f"{parsed.out}: no such directory")
    parsed.arguments = arguments
    return parsed


def mebibytes(value: int | None) -> str:
    return "-" if value is None else f"{value / MIB:.1f}"


def percent(share: float | None) -> str:
    """Formats a saved share: -12.6 % less."""
    return "-" if share is None else f"{-share:+.1%}"


def table(lines: list[list[str]], text_columns: int = 1) -> str:
    """Returns Markdown. The first line is the heading, and the first columns are text."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]

    def write(line: list[str]) -> str:
        cells = (cell.ljust(width) if i < text_columns else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths)))
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join(":" + "-" * (width + 1) if i < text_columns else "-" * (width + 1) + ":" for i, width in enumerate(widths)) + "|"
    return "\n".join([write(lines[0]), rule, *map(write, lines[1:])]) + "\n"


def as_csv(rows: list[dict]) -> str:
    text = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _write(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def leave(options: argparse.Namespace, name: str, rows: list[dict], markdown: str, notes: list[str], failures: list[str],
          pictures: dict[str, str], more: dict | None = None) -> int:
    """Writes NAME.json, .csv, .md and the pictures (SVG, by the ends of their names after NAME), and prints the
    Markdown. Returns the exit code. With PyTorch's requests the name is NAME_pytorch."""
    stem = name if (more or {}).get("events", "chainer") == "chainer" else f"{name}_{more['events']}"
    document = {**made(f"hotpack-paper-{name}", f"bench/paper/{name}", options.arguments, options.build / "bin" / "hotpack"),
                "size": options.size, **(more or {}), "rows": rows, "failures": failures}
    size = {"full": [], "quick": ["--quick: not all configurations of the paper."],
            "smoke": ["--smoke: small networks; the figures show nothing."]}[options.size]
    lost = [f"Missing: {failure}" for failure in failures]
    text = "\n\n".join([origin(document), *size, *notes, *lost]) + "\n\n" + markdown
    text += "".join(f"\n![{stem}{letter}]({stem}{letter}.svg)\n" for letter in pictures)
    files = {f"{stem}.json": text_of(document), f"{stem}.csv": as_csv(rows), f"{stem}.md": text}
    for file, content in {**files, **{f"{stem}{letter}.svg": svg for letter, svg in pictures.items()}}.items():
        _write(options.out / file, content)
    print(text, end="")
    print(f"{name}: files are in {options.out}", file=sys.stderr)
    return 1 if failures else 0
