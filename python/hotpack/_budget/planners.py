"""Plans by the algorithms of `hotpack plan`, carried out as the budget's own are. A pass becomes a graph of operators:

    forward    make s0 ─ position 0 ─ make s1 ─ position 1 ...     make: computes a saved storage from others
    backward   ... position n reads s1 ─ position n+1 reads s0     position: the program's own work, and its load

What the algorithm computes again or copies in that graph is the treatment of the saved storages.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from .. import _library
from .._errors import Error
from .passes import AGAIN, KEEP, MOVE, Kind

SEARCH = "search"  # the budget's own
ALGORITHMS = (SEARCH, "chen", "echo", "dtr", "knapsack", "dqn", "memonger", "superneurons", "tflms")
_COPYING = ("dqn", "superneurons", "tflms")  # these may move storages too
_SECONDS = 5  # for the algorithms that search
_HEAVY = re.compile("conv|mm|mv|dot|attention", re.IGNORECASE)  # much work for their results (docs/research/echo.md)


def parse(text: str) -> str:
    """The algorithm of this name; an empty one is the budget's own. Raises Error."""
    if text not in ("", *ALGORITHMS):
        raise Error(f"the algorithm '{text}' is none of {', '.join(ALGORITHMS)}")
    return text or SEARCH


def graph_of(kind: Kind, of_saved: bool) -> "dict[str, Any]":
    """Of a kind that was observed. Nanoseconds and bytes. O(positions + storages)."""
    sight = kind.sight
    base = list(sight.saved if of_saved else sight.base)
    seconds = list(sight.timeline.durations)
    turn = min((use.end for use in sight.uses), default=len(base))
    made: list[list[int]] = [[] for _ in base]
    reads: list[list[str]] = [[] for _ in base]
    movable = [use.begin < use.end < len(base) for use in sight.uses]
    for index, use in enumerate(sight.uses):
        if not movable[index]:
            continue
        born = min(use.born, use.begin)
        made[born].append(index)
        reads[max(born, use.begin - 1)].append(f"s{index}")
        reads[use.end].append(f"s{index}")
        for position in (*range(born, max(born + 1, use.begin)), use.end):
            base[position] -= use.bytes
        before = max(0, born - 1)  # the operator ran before its result was saved
        seconds[before] = max(0.0, seconds[before] - use.seconds)
    operators = []
    for position in range(len(base)):
        phase = "forward" if position < turn else "backward"
        for index in made[position]:
            use = sight.uses[index]
            sources = [f"s{source}" for source in use.sources or () if movable[source]]
            operators.append({"name": f"make s{index}", "cost_ns": round(1e9 * use.seconds), "phase": phase,
                              "reads": ["input", *sources], "writes": [f"s{index}"], "workspace": use.extra,
                              "once": use.sources is None, "heavy": bool(_HEAVY.search(_name(kind, index)))})
        operators.append({"name": f"position {position}", "cost_ns": round(1e9 * seconds[position]), "phase": phase,
                          "reads": reads[position], "once": True,
                          "workspace": max(0, base[position])})
    storages = [{"name": "input", "bytes": 0, "given": True, "kept": True}]
    storages += [{"name": f"s{index}", "bytes": use.bytes} for index, use in enumerate(sight.uses) if movable[index]]
    return {"format": "hotpack-graph", "version": 1, "storages": storages, "operators": operators}


def _name(kind: Kind, index: int) -> str:
    """Of the operator that made the storage."""
    number = kind.of_item.index(index) if index in kind.of_item else -1
    return (kind.items[number].name or "") if number >= 0 else ""


def treatments_of(graph: "dict[str, Any]", plan: "dict[str, Any]", count: int) -> "list[str]":
    """What a plan (docs/plan.md) does with each of so many saved storages."""
    names = [storage["name"] for storage in graph["storages"]]
    runs = [0] * len(graph["operators"])
    treatments = [KEEP] * count
    for action, place, *_ in plan["actions"]:
        if action == "run":
            runs[place] += 1
            written = graph["operators"][place].get("writes", ())
            if runs[place] > 1 and written:
                treatments[int(written[0][1:])] = AGAIN
        elif action == "prefetch" and names[place].startswith("s"):
            treatments[int(names[place][1:])] = MOVE
    return treatments


def treatments(algorithm: str, kind: Kind, room: int, of_saved: bool) -> "list[str]":
    """By hotpack-remat, within so many bytes; all kept where it has no plan. Raises Error if it cannot start."""
    graph = graph_of(kind, of_saved)
    rates = kind.sight.timeline.rates
    with tempfile.TemporaryDirectory(prefix="hotpack-budget-") as folder:
        path, out = Path(folder) / "pass.json", Path(folder) / "plan.json"
        path.write_text(json.dumps(graph))
        command = [str(_library.find("bin/hotpack-remat")), "plan", str(path), "--budget", str(max(1, room)),
                   "--algorithm", algorithm, "--time-limit", f"{_SECONDS}s", "--out", str(out)]
        if algorithm in _COPYING:
            command += ["--swap", "--bandwidth", str(min(rates.out, rates.back) / 1e9)]
        environment = {name: value for name, value in os.environ.items()
                       if name != "LD_PRELOAD" and not name.startswith(("HOTPACK_", "SIMGPU_"))}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        except OSError as error:
            raise Error(f"{command[0]} cannot be started: {error}") from None
        if done.returncode != 0 or not out.exists():
            return [KEEP] * len(kind.sight.uses)
        return treatments_of(graph, json.loads(out.read_text()), len(kind.sight.uses))
