"""The table of `bench/solvers`."""

from __future__ import annotations

from made import origin


def _cell(row: dict | None) -> str:
    """The time of the solver's proof; without a proof, what it has reached."""
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


def _proved(row: dict) -> bool:
    return row["status"].startswith("Optimal") and row["height"] is not None


def _summary(rows: list[dict], names: list[str]) -> str:
    """Counts the proofs of each solver. Instances also solved without `lb` are counted apart: with and without it."""
    both = [row for row in rows if any(name.endswith(" without lb") for name in row["solvers"])]
    parts = []
    for name in names:
        if name.endswith(" without lb"):
            continue
        tried = [row["solvers"][name] for row in rows if name in row["solvers"]]
        part = f"{name} proved {sum(map(_proved, tried))} of {len(tried)}"
        pairs = [(row["solvers"][name], row["solvers"][f"{name} without lb"]) for row in both]
        if pairs:
            part += (f"; of the {len(pairs)} that were solved both ways {sum(_proved(bare) for _, bare in pairs)} without `lb` and "
                     f"{sum(_proved(full) for full, _ in pairs)} with it")
        parts.append(part)
    return ". ".join(parts) + "."


def render(document: dict) -> str:
    names = list(dict.fromkeys(name for row in document["rows"] for name in row["solvers"]))
    lines = ["| instance | binaries | " + " | ".join(names) + " |", "|:---|---:|" + "---:|" * len(names)]
    lines += [f"| {row['instance']} | {row['binaries']} | " + " | ".join(_cell(row["solvers"].get(name)) for name in names) + " |"
              for row in document["rows"]]
    versions = ", ".join(f"{name} {version}" for name, version in document["solvers"].items())
    return (f"{origin(document)} {versions}; {document['time_limit']:g} s for a solver, one thread; the times are its process's "
            "processor time.\n\n" + "\n".join([*lines, "", _summary(document["rows"], names)]) + "\n")
