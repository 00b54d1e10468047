"""The tables of `bench/packer`: on the terminal, in its Markdown file and in the pages."""

from __future__ import annotations

from collections.abc import Collection

from made import origin

# Those with tables in pages.
SECTIONS = ("traces", "capacity", "optimum", "large", "generated", "scale", "heuristics", "paper")


def shown(column: str, value: bool | float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column in ("ratio", "solve"):
        return f"{value:.6f}"
    if column in ("times", "ns_a_block", "megabytes"):
        return f"{value:.1f}"
    if isinstance(value, float):
        return f"{value:.4g}" if column in ("limit", "wanted") else f"{value:.4f}"
    return str(value)


HEADINGS = {
    "lower_bound": "lower bound", "seconds": "wall s", "user": "user s", "solve": "solve s", "peer": "peer wall s",
    "peer_user": "peer user s", "times": "peer/ours", "ns_a_block": "ns a block", "megabytes": "MB",
}


def cell(row: dict, column: str) -> str:
    """Of the section `heuristics` columns are programs: height over lower bound, and milliseconds of processor time."""
    if column in row.get("figures", {}):
        return f"{row['figures'][column]['ratio']:.4f} / {row['figures'][column]['ms']:.3g}"
    return shown(column, row.get(column))


def table(rows: list[dict], columns: list[str]) -> list[list[str]]:
    headings = [HEADINGS.get(column, column) for column in columns]
    return [headings, *([cell(row, column) for column in columns] for row in rows)]


def section(written: dict) -> str:
    """A section of the document as Markdown: its table and its summary, or why there is none."""
    if "skipped" in written or "failed" in written:
        return "Skipped: " + written["skipped"] if "skipped" in written else "Failed: " + written["failed"]
    cells = table(written["rows"], written["columns"])
    lines = ["| " + " | ".join(cells[0]) + " |", "|" + "|".join(["---"] + ["---:"] * (len(cells[0]) - 1)) + "|"]
    lines += ["| " + " | ".join(line) + " |" for line in cells[1:]]
    return "\n".join([*lines, "", written["summary"] + "."])


def head(report: dict, sections: Collection[str]) -> str:
    """Where the figures of these sections come from."""
    how = []
    if set(sections) - {"heuristics"}:
        how.append(f"Medians of {report['repeat']}, times from outside the process.")
    if "heuristics" in sections:
        how.append("Heuristics: the mean of one run of `packer_bench`, the processor time of the solve alone.")
    if report["peer"] and "capacity" in sections:
        how.append(f"The peer, in the same run: `{report['peer']}`.")
    return " ".join([origin(report), *how])


def markdown(report: dict) -> str:
    parts = ["# The packer's figures", head(report, report["sections"])]
    for name, written in report["sections"].items():
        parts += [f"## {name}", section(written)]
    return "\n\n".join(parts) + "\n"
