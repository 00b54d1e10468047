"""Plans of a budget in a file, next to the one that HOTPACK_PLAN names: <that name>.budget. The next run observes its
first step, as always, and follows them from the second step on.

The file is JSON: what the plans are for, the kinds of passes with their sights and plans, what optimizers keep, times,
and the kinds of recipes that gave the same bits.
"""

import json
import os
from typing import Any, Optional

from .._errors import Error
from .clock import Rates
from .passes import Item, Kind
from .policy import Plan, Sight
from .timeline import StateMoves, Timeline, Use

_SCHEMA = "hotpack-budget-plan"
_VERSION = 1
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")  # as preload/serve/plan_path.cc has them


def path_of(pattern: str, device: int) -> str:
    """The budget's file for a value of HOTPACK_PLAN. Empty if that is empty. device: the ordinal, for %d."""
    rank = next((value for value in map(os.environ.get, _RANKS) if value and value.isdigit()), "0")
    stands = {"p": str(os.getpid()), "d": str(device), "r": rank, "%": "%"}
    path, at = "", 0
    while at < len(pattern):
        found = stands.get(pattern[at + 1:at + 2]) if pattern[at] == "%" else None
        path += pattern[at] if found is None else found
        at += 1 if found is None else 2
    return path + ".budget" if path else ""


def read(path: str, key: "dict[str, Any]") -> "Optional[dict[str, Any]]":
    """What write() got, if it is for the same key. None: there is no file. Raises Error, in one line."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Error(f"{path} is no plan of a budget: {error}") from error
    if not isinstance(found, dict) or found.get("schema") != _SCHEMA:
        raise Error(f"{path} is no plan of a budget")
    if found.get("schema_version") != _VERSION or not isinstance(found.get("for"), dict):
        raise Error(f"{path} is of another version of hotpack")
    for name, value in key.items():
        if found["for"].get(name) != value:
            raise Error(f"{path} is for {name} {found['for'].get(name)}, not {value}")
    return found


def write(path: str, key: "dict[str, Any]", plans: "dict[str, Any]") -> None:
    """Replaces the file, unless it is another one's. A reader sees the old or the new one, whole. Raises OSError and
    Error."""
    begin = json.dumps({"schema": _SCHEMA})[:-1]
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            if file.read(len(begin)) != begin:
                raise Error(f"{path} is no plan of a budget: it is left alone")
    except FileNotFoundError:
        pass
    new = f"{path}.{os.getpid()}.new"
    try:
        with open(new, "w", encoding="utf-8") as file:
            json.dump({"schema": _SCHEMA, "schema_version": _VERSION, "for": key, **plans}, file)
        os.replace(new, path)
    except BaseException:
        if os.path.exists(new):
            os.unlink(new)
        raise


def of_kind(kind: Kind) -> "dict[str, Any]":
    """A planned kind as JSON has it."""
    sight, plan = kind.sight, kind.plan
    timeline, state = sight.timeline, plan.state
    return {
        "items": [[item.name, str(item.dtype).rpartition(".")[2], item.shape, item.bytes] for item in kind.items],
        "of_item": kind.of_item,
        "seconds": kind.seconds,
        "sight": {
            "base": sight.base, "saved": sight.saved, "durations": timeline.durations, "hook": timeline.hook,
            "rates": [timeline.rates.out, timeline.rates.back, timeline.rates.overlaps],
            "uses": [[use.bytes, use.begin, use.end, use.sources, use.extra, use.seconds, use.born]
                     for use in sight.uses]},
        "plan": {
            "treatments": plan.treatments, "load": plan.load, "floor": plan.floor, "moved": plan.moved,
            "seconds": plan.seconds, "fetches": plan.fetches, "seconds_of": plan.seconds_of,
            "leaves": list(plan.leaves.items()), "exposed": plan.exposed,
            "state": None if state is None else [state.stays, state.comes, state.room, state.exposed]}}


def kind_of(torch: Any, found: "dict[str, Any]") -> Kind:
    """The kind of such JSON. Raises KeyError, TypeError, ValueError, AttributeError."""
    items = [Item(name, getattr(torch, dtype), tuple(shape), size) for name, dtype, shape, size in found["items"]]
    kind = Kind(items, list(found["of_item"]))
    sight, plan = found["sight"], found["plan"]
    kind.sight = Sight(sight["base"], sight["saved"], [Use(size, begin, end, sources, extra, seconds, born)
                                                       for size, begin, end, sources, extra, seconds, born
                                                       in sight["uses"]],
                       Timeline(sight["durations"], Rates(*sight["rates"]), sight["hook"]))
    state = plan["state"]
    kind.plan = Plan(plan["treatments"], plan["load"], plan["floor"], plan["moved"], plan["seconds"],
                     {index: start for start, index in plan["fetches"]}, plan["seconds_of"], dict(plan["leaves"]),
                     None if state is None else StateMoves(*state), plan["exposed"])
    if len(kind.plan.treatments) != len(kind.sight.uses) or len(items) != len(kind.of_item) or (
            any(not 0 <= index < len(kind.sight.uses) for index in kind.of_item)) or (
            state is not None and len({len(row) for row in state[:3]}) != 1):
        raise ValueError("its parts do not fit")
    kind.seconds = list(found["seconds"])
    kind.passes = 1
    kind.saved = True
    return kind
