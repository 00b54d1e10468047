"""The table of `bench/solvers`."""

from __future__ import annotations

from made import origin


def _cell(row: dict | None) -> str:
    """A time where the solver had its proof; else what it had."""
    if row is None:
        return ""
    if row["status"].startswith("Optimal") and row["height"] is not None:
        return f"{row['seconds']:.3g} s"
    if row["ended"]:
        return "not in time"
    if row["height"] is None:
        return "nothing"
    if row["height"] == row["best"]:
        return "not proved"
    return f"{row['height'] / row['best'] - 1:+.1%}"


def render(document: dict) -> str:
    names = list(dict.fromkeys(name for row in document["rows"] for name in row["solvers"]))
    lines = ["| instance | binaries | " + " | ".join(names) + " |", "|:---|---:|" + "---:|" * len(names)]
    lines += [f"| {row['instance']} | {row['binaries']} | " + " | ".join(_cell(row["solvers"].get(name)) for name in names) + " |"
              for row in document["rows"]]
    return (f"{origin(document)} {document['time_limit']:g} s for a solver, one thread; the times are its process's processor time.\n\n"
            + "\n".join(lines) + "\n")
