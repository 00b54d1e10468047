"""The section `budgets`: every planner of `hotpack plan --sweep`, and with copies `dqn`, on many graphs, from the least memory to what each
step needs as it is."""

from __future__ import annotations

import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runs import MB, Context, Failure, Graph, Plan, Point, Skipped, logs, plan, sweep
from text_table import render

SEARCH, LEARNT = "search", "dqn"
# From 200 operators to 15,000; VGG-16 has 111, and none of its family 200.
NETWORKS = ("resnet:50,batch=32", "resnet:152,batch=32", "vgg:16,batch=64", "unet:depth=6,batch=4", "inception", "transformer:6",
            "lstm:4x1024,batch=64,steps=64", "nmt:2", "deepspeech2:5x1760,frames=100", "stochastic_depth:101", "kmeans:iterations=60")
COPYING = ("resnet:50,batch=32", "vgg:16,batch=64", "unet:depth=6,batch=4", "lstm:4x1024,batch=64,steps=64")
SMALL = ("vgg:11,batch=2,image=32", "lstm:2x8,batch=2,steps=4,classes=8")
PICTURES = ("unet-6", "transformer-10", "resnet:50,batch=32", "lstm:4x1024,batch=64,steps=64", SMALL[0])
POINTS = 20
EPSILON = 2e-6  # of ratios that are printed with six digits


def missed(name: str, points: list[Point]) -> list[str]:
    """Where the search loses to another planner, has no plan where one has, or is slower with more memory; and plans that cannot be."""
    found: list[str] = []
    before: tuple[Point, Plan] | None = None  # the last one with a plan of the search
    for point in points:
        where = f"{name} at {point.budget / MB:.0f} MB ({point.part:.1%})"
        ours = point.plans.get(SEARCH)
        for algorithm, theirs in point.plans.items():
            if theirs is None:
                continue
            if theirs.arena > point.budget:
                found.append(f"{where}: the arena of {algorithm} is above the budget")
            if theirs.ratio < theirs.bound_ratio - EPSILON:
                found.append(f"{where}: {algorithm} {theirs.ratio:.6f} is below the bound, {theirs.bound_ratio:.6f}")
            if algorithm != SEARCH and ours is None:
                found.append(f"{where}: search has no plan, {algorithm} {theirs.ratio:.4f}")
            if algorithm != SEARCH and ours is not None and ours.time > theirs.time:
                found.append(f"{where}: search {ours.ratio:.6f}, {algorithm} {theirs.ratio:.6f}")
        if before is not None and (ours is None or ours.time > before[1].time):
            said = "has no plan" if ours is None else f"{ours.ratio:.6f}"
            found.append(f"{where}: search {said}, {before[1].ratio:.6f} at {before[0].budget / MB:.0f} MB: not monotone")
        if ours is not None:
            before = (point, ours)
    return found


def _best_other(point: Point) -> int | None:
    return min((found.time for name, found in point.plans.items() if found and name != SEARCH), default=None)


def summary(points: list[Point]) -> dict:
    """Counts of budgets, and shares: `loss` of the search's time over the best other's, gaps over the bound."""
    planned = [point for point in points if any(point.plans.values())]
    ours = [(point, found) for point in planned if (found := point.plans.get(SEARCH)) is not None]
    others = [(found.time, _best_other(point)) for point, found in ours]
    gaps = [found.ratio / bound - 1 for point, found in ours if (bound := point.bound_ratio()) is not None]
    return {"anybody": len(planned), "search": len(ours),
            "fastest": sum(other is None or mine < other for mine, other in others),
            "loss": max((mine / other - 1 for mine, other in others if other is not None), default=0.0),
            "mean_gap": sum(gaps) / len(gaps) if gaps else None, "largest_gap": max(gaps, default=None)}


def _rows(name: str, points: list[Point]) -> list[dict]:
    return [{"graph": name, "point": f"{i} of {len(points)}", "budget": point.budget, "part": point.part, "bound": point.bound_ratio(),
             **{f"{algorithm}_ratio": found and found.ratio for algorithm, found in point.plans.items()}}
            for i, point in enumerate(points, 1)]


def half(points: list[Point]) -> Point:
    """The least budget of at least half of what the step needs as it is for which any planner has a plan."""
    return next((point for point in points if point.part >= 0.5 and any(point.plans.values())), points[-1])


def _picture(context: Context, name: str) -> tuple[list[str], str | None]:
    """Arguments that make one, and its file's name."""
    if context.pictures is None or name not in PICTURES:
        return [], None
    path = Path(f"{context.pictures}_budgets_{re.sub('[^a-z0-9]+', '_', name)}.svg").absolute()
    return ["--plot", str(path), "--force"], path.name


def _learnt(context: Context, graph: Graph, point: Point) -> Plan | None:
    """By the planner that a sweep leaves out, because it trains again for each budget."""
    found = plan(context, graph, LEARNT, point.budget)
    if found is None:
        return None
    baseline = found["baseline_time"]
    return Plan(found["time"], found["time"] / baseline, found["lower_bound_time"] / baseline, found["arena"])


def _sweep_of(context: Context, graph: Graph, *arguments: str) -> tuple[dict, list[dict], list[str]]:
    """Of one graph: a line of the first table, the rows, what is missed."""
    swap = "--swap" in arguments
    name = graph.name + (", copies" if swap else "")
    picture, file = _picture(context, name)
    begin = time.monotonic()
    whole = plan(context, graph)
    if whole is None:
        raise Failure("no plan without a budget")
    points = sweep(context, graph, 3 if context.smoke else POINTS, *arguments, *picture)
    if swap:
        for point in points:
            point.plans[LEARNT] = _learnt(context, graph, point)
    seconds = time.monotonic() - begin
    said, at = missed(name, points), half(points)
    print(f"planner: {name}: {len(points)} budgets, {seconds:.0f} s, {len(said)} missed", file=sys.stderr)
    head = {"graph": name, "copies": swap, "operators": whole["operators"], "program_bytes": whole["arena"], "least_bytes": points[0].budget,
            **summary(points), "seconds": seconds, "picture": file, "half_part": at.part, "half_bound": at.bound_ratio(),
            "half": [[algorithm, found and found.ratio] for algorithm, found in at.plans.items()]}
    return head, _rows(name, points), said


def take(context: Context) -> dict:
    networks, copying = (SMALL, SMALL[:1]) if context.smoke else (NETWORKS, COPYING)
    graphs = [] if context.smoke else logs(context)
    graphs += [Graph(spec, spec) for spec in networks]
    wanted: list[tuple[Graph, list[str]]] = [(graph, []) for graph in graphs]
    wanted += [(Graph(spec, spec), ["--swap"]) for spec in copying]
    wanted = [(graph, arguments) for graph, arguments in wanted if not context.only or graph.name in context.only]
    if not wanted:
        raise Skipped(f"no graph is called {' or '.join(context.only)}")
    return of_graphs(context, wanted)


def of_graphs(context: Context, wanted: list[tuple[Graph, list[str]]]) -> dict:
    """The document of these graphs, each with the arguments of its sweep."""
    document: dict = {"graphs": [], "rows": [], "missed": []}
    with ThreadPoolExecutor(context.jobs) as pool:
        sweeps = [(graph, pool.submit(_sweep_of, context, graph, *arguments)) for graph, arguments in wanted]
        for graph, sweep_of in sweeps:
            try:
                head, rows, said = sweep_of.result()
            except Failure as reason:
                print(f"planner: {graph.name}: {reason}", file=sys.stderr)
                document["missed"].append(f"{graph.name}: {reason}")
                continue
            document["graphs"].append(head)
            document["rows"] += rows
            document["missed"] += said
    return document


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.2%}"


def _summaries(graphs: list[dict]) -> str:
    lines = [["graph", "operators", "as it is, MB", "least, MB", "budgets with a plan", "search has one", "fastest", "loss at most",
              "mean gap", "largest gap", "s"]]
    for row in graphs:
        lines.append([row["graph"], str(row["operators"]), f"{row['program_bytes'] / MB:.0f}", f"{row['least_bytes'] / MB:.0f}",
                      str(row["anybody"]), str(row["search"]), str(row["fastest"]), _percent(max(0.0, row["loss"])),
                      _percent(row["mean_gap"]), _percent(row["largest_gap"]), f"{row['seconds']:.0f}"])
    return render(lines)


def _halves(graphs: list[dict]) -> str:
    algorithms = list(dict.fromkeys(algorithm for row in graphs for algorithm, _ in row["half"]))
    lines = [["graph", "memory", *algorithms, "bound"]]
    for row in graphs:
        ratios = dict(row["half"])
        cells = [ratios.get(algorithm) for algorithm in algorithms] + [row["half_bound"]]
        lines.append([row["graph"], f"{row['half_part']:.1%}", *("none" if cell is None else f"{cell:.4f}" for cell in cells)])
    return render(lines)


def markdown(document: dict) -> str:
    parts = [f"Budgets evenly from the least memory that any plan needs to what the step needs as it is (MB is 10^6 bytes); "
             f"{document['time_limit']} for each search. Fastest: budgets at which no other planner's plan is as fast. Loss: of the search to the "
             "best other. Gap: of the search over the bound on any plan's time (with copies, a bound on those). The last column: seconds for all "
             "planners and budgets."]
    for swap, title in ((False, "Recomputing"), (True, "Recomputing and copying to the host")):
        graphs = [row for row in document["graphs"] if row["copies"] == swap]
        if graphs:
            parts += [f"{title}:", _summaries(graphs), "Time over the time with all memory, at the least budget from half the memory on for which "
                      "there is a plan:", _halves(graphs)]
    parts += [f"![Time over memory: {row['graph']}]({row['picture']})" for row in document["graphs"] if row["picture"]]
    return "\n\n".join(parts)
