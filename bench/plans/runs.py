"""Runs of `hotpack plan`, and their results."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

MB = 10**6
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Failure(Exception):
    """A program failed, or its result is impossible."""


class Skipped(Exception):
    """Why a section has no figures."""


@dataclass(frozen=True)
class Context:
    build: Path
    shared: Path | None = None  # the folder above dtr/
    time_limit: str = "20s"  # of each search
    smoke: bool = False
    only: tuple[str, ...] = ()  # names of graphs of `budgets`; empty: all
    pictures: str | None = None  # what their paths begin with; None: none are made
    jobs: int = 1  # graphs of `budgets`, or plans of `steps`, at once
    recorded: Path | None = None  # the folder of recorded steps

    def program(self, name: str) -> Path:
        return self.build / "bin" / name


@dataclass(frozen=True)
class Graph:
    name: str  # as tables have it
    spec: str  # as `hotpack plan` has it
    folder: Path | None = None  # where it is run, so that nothing that it prints has a path in it


def seconds_of(duration: str) -> float:
    """Parses 20s, 500ms, 2min. Raises ValueError."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-z]+)", duration)
    if found is None or found[2] not in _UNITS or float(found[1]) == 0:
        raise ValueError(duration)
    return float(found[1]) * _UNITS[found[2]]


def logs(context: Context) -> list[Graph]:
    """The operator logs of the DTR prototype that exist."""
    folder = context.shared / "dtr" if context.shared else None
    return [Graph(path.stem, path.name, folder) for path in sorted(folder.glob("*.log"))] if folder else []


def run(context: Context, graph: Graph, *arguments: object) -> subprocess.CompletedProcess:
    command = [context.program("hotpack").absolute(), "plan", graph.spec, "--time-limit", context.time_limit, *arguments]
    try:
        return subprocess.run([str(word) for word in command], cwd=graph.folder, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None


def _why(done: subprocess.CompletedProcess) -> str:
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


@dataclass(frozen=True)
class Unplanned:
    """A budget without a plan. impossible: no planner can have one."""
    why: str
    impossible: bool


def plan_or_why(context: Context, graph: Graph, algorithm: str, budget: int, *arguments: object) -> dict | Unplanned:
    """Returns the output of `--json`, or why there is no plan. budget: bytes; 0: none. Raises Failure."""
    done = run(context, graph, "--algorithm", algorithm, "--json", *(["--budget", budget] if budget else []), *arguments)
    if done.returncode == 0:
        return json.loads(done.stdout)
    impossible = "every plan needs" in done.stderr
    if done.returncode == 2 and (impossible or "no plan found" in done.stderr):
        return Unplanned(_why(done), impossible)
    raise Failure(_why(done))


def plan(context: Context, graph: Graph, algorithm: str = "auto", budget: int = 0) -> dict | None:
    """Returns the output of `--json`; None: this planner has no plan for the budget."""
    found = plan_or_why(context, graph, algorithm, budget)
    return None if isinstance(found, Unplanned) else found


@dataclass(frozen=True)
class Plan:
    time: int  # ns
    ratio: float  # time over the program's
    bound_ratio: float
    arena: int


@dataclass
class Point:
    """One budget of a sweep, and the plans for it."""
    budget: int
    part: float  # of the unmodified step's memory
    plans: dict[str, Plan | None] = field(default_factory=dict)

    def time(self, algorithm: str) -> int | None:
        found = self.plans.get(algorithm)
        return found.time if found else None

    def bound_ratio(self) -> float | None:
        """The least of the plans' bounds: a plan taken over from a smaller budget has that budget's bound, which is
        higher."""
        return min((found.bound_ratio for found in self.plans.values() if found), default=None)


def read_sweep(text: str) -> list[Point]:
    """The points of `--sweep`, the smallest budget first. Raises Failure."""
    points: dict[int, Point] = {}
    try:
        for row in csv.DictReader(io.StringIO(text)):
            point = points.setdefault(int(row["budget"]), Point(int(row["budget"]), float(row["part"])))
            point.plans[row["algorithm"]] = Plan(int(row["time_ns"]), float(row["ratio"]), float(row["bound_ratio"]),
                                                 int(row["arena"])) if row["time_ns"] else None
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"--sweep printed what is no such table: {error}") from None
    if not points:
        raise Failure("--sweep printed no budget")
    return [points[budget] for budget in sorted(points)]


def sweep(context: Context, graph: Graph, points: int, *arguments: object) -> list[Point]:
    done = run(context, graph, "--sweep", "--points", points, *arguments)
    if done.returncode != 0:
        raise Failure(_why(done))
    return read_sweep(done.stdout)
