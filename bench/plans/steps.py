"""The sections of recorded training steps of PyTorch (bench/torch/record_steps). `steps` plans them at shares of what PyTorch's allocator
reserves, recomputing alone and with copies at several rates. `step_budgets` and `step_copies` have every planner on the same graphs, as
`budgets` has them: recomputing alone, and with copies."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import budgets
from runs import Context, Failure, Graph, Skipped, Unplanned, plan_or_why
from text_table import render

SHARES = (75, 60, 50)  # %
LINKS = (None, 12, 25, 50)  # GB/s each way; None: no copies
AIM = 1.02  # a plan's time over its bound
MIB = 1 << 20


@dataclass(frozen=True)
class Step:
    graph: Graph
    reserved: int  # bytes, by PyTorch's allocator


def recorded(context: Context) -> list[Step]:
    """The graphs in the folder of recorded steps. Raises Skipped."""
    index = context.recorded and context.recorded / "reserved.json"
    if index is None or not index.is_file():
        raise Skipped("no recorded steps: --recorded names the folder that bench/torch/record_steps has written")
    found = json.loads(index.read_text(encoding="utf-8"))
    steps = [Step(Graph(name, f"{name}.json", context.recorded), int(reserved)) for name, reserved in found.items()
             if not context.only or name in context.only]
    if not steps:
        raise Skipped(f"no recorded step is called {' or '.join(context.only)}")
    return steps


def _cell(context: Context, step: Step, budget: int, link: int | None) -> dict:
    """ratio, bound: of the plan's time, null without a plan. why: there is none."""
    arguments = [] if link is None else ["--swap", "--bandwidth", link]
    found = plan_or_why(context, step.graph, "search", budget, *arguments)
    if isinstance(found, Unplanned):
        return {"ratio": None, "bound": None, "arena": None, "why": found.why, "impossible": found.impossible}
    baseline = found["baseline_time"]
    cell = {"ratio": found["time"] / baseline, "bound": found["lower_bound_time"] / baseline, "arena": found["arena"],
            "operators": found["operators"], "host": found["host_peak"], "host_slices": found["host_slices"], "slices": found["slices"]}
    if link is not None and not _is_near(cell):
        cell["cases"] = _smaller_cases(context, step, budget, link, found)
    return cell


def _is_near(cell: dict) -> bool:
    return cell["ratio"] <= AIM * cell["bound"]


def _smaller_cases(context: Context, step: Step, budget: int, link: int, found: dict) -> list[dict]:
    """Of this step: the best of all plans, and the bound (coarse_figures). Smallest case first. Raises Failure."""
    command = [context.program("coarse_figures").absolute(), step.graph.spec, "--budget", budget, "--bandwidth", link,
               "--slices", found["slices"], "--host-slices", found["host_slices"]]
    done = subprocess.run([str(word) for word in command], cwd=step.graph.folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        raise Failure(f"coarse_figures: {done.stderr.strip()}")
    return json.loads(done.stdout)["cases"]


def _looseness(case: dict) -> float:
    """How far the bound is below the best of all plans."""
    return case["fastest"] / case["bound"]


def missed(row: dict) -> list[str]:
    """Of one row: where a plan is above its bound, or its budget, by more than it may be, or is missing. A plan may be as far above its
    bound as the best of all plans of a smaller case."""
    found = []
    for name, cell in row["cells"].items():
        where = f"{row['graph']} at {row['share']} %, {name}"
        if cell["ratio"] is None:
            found += [] if cell["impossible"] else [f"{where}: no plan: {cell['why']}"]
            continue
        if cell["arena"] > row["budget"]:
            found.append(f"{where}: the arena is above the budget")
        if cell["ratio"] > cell["bound"] * max(AIM, *map(_looseness, cell.get("cases", [])), 1):
            found.append(f"{where}: {cell['ratio']:.4f}, {cell['ratio'] / cell['bound'] - 1:.2%} over the bound")
    return found


def _name(link: int | None) -> str:
    return "recomputing" if link is None else f"{link} GB/s"


def take(context: Context) -> dict:
    steps = recorded(context)
    shares, links = (SHARES[1:2], LINKS[::2]) if context.smoke else (SHARES, LINKS)
    with ThreadPoolExecutor(context.jobs) as pool:
        wanted = [(step, share, step.reserved * share // 100 // MIB * MIB) for step in steps for share in shares]
        plans = [[pool.submit(_cell, context, step, budget, link) for link in links] for step, _, budget in wanted]
        rows, said = [], []
        for (step, share, budget), of_links in zip(wanted, plans):
            row = {"graph": step.graph.name, "share": share, "reserved": step.reserved, "budget": budget,
                   "cells": {_name(link): cell.result() for link, cell in zip(links, of_links)}}
            rows.append(row)
            said += missed(row)
            print(f"planner: {step.graph.name} at {share} %", file=sys.stderr)
    return {"rows": rows, "missed": said}


def _shown(cell: dict) -> str:
    if cell["ratio"] is None:
        return "impossible" if cell["impossible"] else "none"
    return f"{cell['ratio']:.4f} ({cell['bound']:.4f}){'*' if cell['host_slices'] else ''}"


def markdown(document: dict) -> str:
    names = list(document["rows"][0]["cells"])
    lines = [["step", "PyTorch, MiB", "share", *names]]
    for row in document["rows"]:
        lines.append([row["graph"], f"{row['reserved'] / MIB:.0f}", f"{row['share']} %", *(_shown(row["cells"][name]) for name in names)])
    cells = [cell for row in document["rows"] for cell in row["cells"].values() if cell["ratio"] is not None]
    near = sum(map(_is_near, cells))
    largest = max((cell["ratio"] / cell["bound"] - 1 for cell in cells), default=0.0)
    return "\n\n".join([
        f"Budgets of the packed arena, as shares of what PyTorch's own allocator reserves; {document['time_limit']} for each search. Time over the "
        "program's, and in brackets its bound. Impossible: the planner shows that no plan fits. *: optimizer state of some or all slices is on the host "
        "between steps; the bound is of such plans.", render(lines),
        f"{near} of {len(cells)} plans take at most {AIM:.2f} times their bound; the farthest is {largest:.2%} above.", *_cases_of(document)])


def _cases_of(document: dict) -> list[str]:
    """How near a bound can be, for plans that are not near theirs."""
    lines = [["step", "share", "copies", "plan / bound", "largest case", "best of all plans / bound", "of all cases"]]
    for row in document["rows"]:
        for name, cell in row["cells"].items():
            if cases := cell.get("cases"):
                ratios = [_looseness(case) for case in cases]
                lines.append([row["graph"], f"{row['share']} %", name, f"{cell['ratio'] / cell['bound']:.4f}",
                              f"{cases[-1]['operators']} operators, {cases[-1]['storages']} storages", f"{ratios[-1]:.4f}",
                              f"{min(ratios):.4f} to {max(ratios):.4f}"])
    return [] if len(lines) == 1 else [
        "Smaller cases of the steps whose plans are not so near, at the same budget: operators are joined to a few, and storages that they use "
        "alike. All plans of a case are visited. Where the best of them is above the bound, no planner gets nearer to it there.", render(lines)]


def take_budgets(context: Context, copies: bool) -> dict:
    """Every planner at many budgets. Raises Skipped."""
    return budgets.of_graphs(context, [(step.graph, ["--swap"] if copies else []) for step in recorded(context)])
