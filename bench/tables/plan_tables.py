"""Short tables of the planners' documents (bench/planner), for pages that do not show them whole."""

from __future__ import annotations

from documents import PLANNER, Results
from made import origin
from program_tables import not_yet
from text_table import render

_COMMAND = "bench/planner budgets --out bench/results/planner"
_POINTS = (5, 10, 15)  # of the budgets of each graph
_RATIO, _SEARCH = "_ratio", "search"


def _times(row: dict) -> tuple[str, str]:
    """Of one budget, over the program's time: hotpack's own search; the fastest plan of another planner, with its name."""
    ratios = {key.removesuffix(_RATIO): value for key, value in row.items() if key.endswith(_RATIO) and value is not None}
    ours = ratios.pop(_SEARCH, None)
    other = min(ratios, key=lambda name: ratios[name], default=None)
    return "none" if ours is None else f"{ours:.4f}", "none" if other is None else f"{ratios[other]:.4f} {other}"


def planner_brief(results: Results, _: str) -> str:
    """Of each graph three budgets: the search's plan next to the best one of the others."""
    written = results.newest(PLANNER, lambda content: content["section"] == "budgets")
    if written is None:
        return not_yet(_COMMAND)
    rows = {(row["graph"], row["point"].partition(" ")[0]): row for row in written["rows"]}
    lines = [["graph", "as it is, MB", *["memory", "search", "best other"] * len(_POINTS)]]
    for graph in written["graphs"]:
        line = [graph["graph"], f"{graph['program_bytes'] / 1e6:.0f}"]
        for point in _POINTS:
            row = rows.get((graph["graph"], str(point)))
            line += [f"{row['part']:.1%}", *_times(row)] if row else ["", "", ""]
        lines.append(line)
    return "\n\n".join([
        origin(written), f"Three of {len(written['rows']) // len(written['graphs'])} budgets of each graph. Memory: the budget, as a share "
        "of what the step needs as it is (MB is 10^6 bytes). Search, best other: the plan's time over the program's own.", render(lines)])


_PAPERS = {"chen": "Chen et al. 2016", "echo": "Echo", "dqn": "deep Q-network", "exact": "bounds and solvers"}


def planner_papers(results: Results, _: str) -> str:
    """A row for each section with figures of papers: how many are near the published ones, and which statements hold."""
    lines = [["section", "figures", "with a published number", "within 5 % of it", "statements that hold", "date", "commit"]]
    machines = {}
    for section, title in _PAPERS.items():
        written = results.newest(PLANNER, lambda content: content["section"] == section)
        if written is None:
            return not_yet(f"bench/planner {section} --out bench/results/planner")
        machines[f"{written['machine']['processor']}, {written['machine']['cores']} cores"] = True
        ratios = [row["ours"] / row["published"] for row in written["rows"] if row["published"] and row["ours"] is not None]
        said = written["orderings"]
        lines.append([title, str(len(written["rows"])), str(len(ratios)), str(sum(abs(ratio - 1) <= 0.05 for ratio in ratios)),
                      f"{sum(each['holds'] for each in said)} of {len(said)}", written["date"][:10],
                      f"`{written['hotpack']['commit'][:12]}`"])
    return f"By `bench/planner SECTION` on {'; '.join(machines)}.\n\n{render(lines)}"
