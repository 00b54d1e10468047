"""Short tables of the planners' documents (bench/planner), for pages that do not show them whole."""

from __future__ import annotations

from documents import PLANNER, Results
from made import origin
from program_tables import not_yet
from text_table import render

_POINTS = (5, 10, 15)  # of the budgets of each graph
_RATIO, _SEARCH = "_ratio", "search"
_PAPERS = {"chen": "Chen et al. 2016", "echo": "Echo", "dqn": "deep Q-network", "exact": "bounds and solvers"}
_NEAR = 0.05  # of a published figure


def _newest(results: Results, section: str) -> dict | None:
    return results.newest(PLANNER, lambda content: content["section"] == section)


def _command(section: str) -> str:
    return f"bench/planner {section} --out bench/results/planner"


def _times(row: dict) -> tuple[str, str]:
    """Of one budget, over the program's time: the search; the fastest plan of another planner, with its name."""
    ratios = {key.removesuffix(_RATIO): value for key, value in row.items() if key.endswith(_RATIO)}
    found = {name: ratio for name, ratio in ratios.items() if ratio is not None}
    ours = found.pop(_SEARCH, None)
    other = min(found, key=lambda name: found[name], default=None)
    return "none" if ours is None else f"{ours:.4f}", "none" if other is None else f"{found[other]:.4f} {other}"


def planner_brief(results: Results, _: str) -> str:
    """Of each graph three budgets: the search's plan next to the best one of the others."""
    written = _newest(results, "budgets")
    if written is None:
        return not_yet(_command("budgets"))
    rows = {(row["graph"], row["point"].partition(" ")[0]): row for row in written["rows"]}
    lines = [["graph", "as it is, MB", *["memory", "search", "best other"] * len(_POINTS)]]
    for graph in written["graphs"]:
        line = [graph["graph"], f"{graph['program_bytes'] / 1e6:.0f}"]
        for point in _POINTS:
            row = rows.get((graph["graph"], str(point)))
            line += [f"{row['part']:.1%}", *_times(row)] if row else ["", "", ""]
        lines.append(line)
    budgets = len(written["rows"]) // len(written["graphs"])
    what = (f"Three of {budgets} budgets of each graph. Memory: the budget, as a share of what the step needs as it is "
            "(MB is 10^6 bytes). Search, best other: the plan's time over the program's own.")
    return "\n\n".join([origin(written), what, render(lines)])


def _agreement(title: str, written: dict) -> list[str]:
    ratios = [row["ours"] / row["published"] for row in written["rows"] if row["published"] and row["ours"] is not None]
    near = sum(abs(ratio - 1) <= _NEAR for ratio in ratios)
    holds = sum(each["holds"] for each in written["orderings"])
    return [title, str(len(written["rows"])), str(len(ratios)), str(near), f"{holds} of {len(written['orderings'])}",
            written["date"][:10], f"`{written['hotpack']['commit'][:12]}`"]


def planner_papers(results: Results, _: str) -> str:
    """A row for each section with papers' figures: how many are near the published ones, which statements hold."""
    lines = [["section", "figures", "with a published number", f"within {_NEAR:.0%} of it", "statements that hold",
              "date", "commit"]]
    machines: dict[str, None] = {}
    for section, title in _PAPERS.items():
        written = _newest(results, section)
        if written is None:
            return not_yet(_command(section))
        machines[f"{written['machine']['processor']}, {written['machine']['cores']} cores"] = None
        lines.append(_agreement(title, written))
    return f"By `bench/planner SECTION` on {'; '.join(machines)}.\n\n{render(lines)}"
