"""What plans do with a step, for the report: its load before and after, and what they decide for each module.

    before    everything is kept                  after    as the plans have it
    position  passes one after the other: a save, or the first return of one; then the optimizers' steps
"""

import re
from typing import Any, Optional

from .._graph import places
from .passes import AGAIN, KEEP, Kind

_COLUMNS = 240  # of a curve
_ROWS = 24  # of the table, and one for all others
_LONGEST = 100  # name
_TREATMENTS = ("kept", "moved", "recomputed")


class Places:
    """Which module asks for a save, or which line where none runs. Only between start() and stop(), for it hooks all
    modules."""

    def __init__(self, torch: Any) -> None:
        self._modules = places.Modules(torch)
        self._lines = places.Lines(torch)
        self._torch = torch
        self._on = False

    def start(self) -> None:
        if not self._on:
            self._on = True
            self._modules.start()

    def stop(self) -> None:
        """Lets go of the modules that ran."""
        if self._on:
            self._on = False
            self._modules.stop()
            self._modules = places.Modules(self._torch)

    def here(self) -> Any:
        """The module that runs, or a line. O(1), without a module O(depth of the stack)."""
        module = self._modules.current() if self._on else None
        return module if module is not None else self._lines.here()[0]

    def names(self, found: "list[Any]") -> "list[str]":
        """Of what here() returned, in words. Equal layers have one name: blocks.*.mlp.act. O(modules)."""
        self._modules.name_all()
        return [name if len(name) <= _LONGEST else "…" + name[-_LONGEST:] for name in map(self._name, found)]

    def _name(self, place: Any) -> str:
        if place is None or isinstance(place, tuple):
            return places.text(place) or "not known"
        kind = type(place).__name__
        name = re.sub(r"(?<![^.])\d+(?![^.])", "*", self._modules.name(place) or kind)
        # A number alone does not say what it is.
        return f"{name} ({kind})" if name.endswith("*") else name


def shorten(load: "list[int]", columns: int) -> "list[int]":
    """The highest load in each of so many equal parts, or all."""
    if len(load) <= columns:
        return load
    edges = [len(load) * column // columns for column in range(columns + 1)]
    return [max(load[begin:end]) for begin, end in zip(edges, edges[1:])]


def by_module(kinds: "list[Kind]") -> "list[dict[str, Any]]":
    """Bytes a step, most moved and recomputed first; seconds where operators were measured."""
    rows: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        seconds = kind.plan.seconds_of
        for index, (use, treatment) in enumerate(zip(kind.sight.uses, kind.plan.treatments)):
            name = kind.places[index] if index < len(kind.places) else "not known"
            row = rows.setdefault(name, {"module": name, "saves": 0, **dict.fromkeys(_TREATMENTS, 0)})
            row["saves"] += 1
            row["kept" if treatment == KEEP else "recomputed" if treatment == AGAIN else "moved"] += use.bytes
            if seconds:
                row["seconds"] = row.get("seconds", 0.0) + seconds[index]
    ordered = sorted(rows.values(), key=lambda row: (-row["moved"] - row["recomputed"], -row["kept"], row["module"]))
    if len(ordered) > _ROWS + 1:
        rest = ordered[_ROWS:]
        keys = {key for row in rest for key in row if key != "module"}
        ordered[_ROWS:] = [{"module": f"{len(rest)} others",
                            **{key: sum(row.get(key, 0) for row in rest) for key in sorted(keys)}}]
    return ordered


def report_of(kinds: "list[Kind]", of_saved: bool, update: int, state: int, resident: int) -> "dict[str, Any]":
    """kinds: of the step's passes, in their order, all with plans. update: the highest load outside of passes, but for
    state. state: bytes of optimizers, of which `resident` stay on the device."""
    before: list[int] = []
    after: list[int] = []
    turns = []
    for kind in kinds:
        turns.append(len(before) + len(kind.items))
        before += [load + state for load in kind.sight.kept(of_saved)]
        after += [load + resident for load in kind.plan.load]
    positions = len(before)
    report: dict[str, Any] = {
        "of": "saved tensors" if of_saved else "the step",
        "before": shorten(before, _COLUMNS),
        "after": shorten(after, _COLUMNS),
        "turns": [turn / positions for turn in turns],
        "modules": by_module(kinds),
    }
    if not of_saved:
        report["update"] = {"before": update + state, "after": update + resident}
        report["state"] = {"kept": resident, "moved": state - resident}
    return report


class Heaviest:
    """The step that takes most with everything kept, of those that have plans for all passes, if there is any: the one
    that the report shows."""

    def __init__(self, of_saved: bool) -> None:
        self._of_saved = of_saved
        self._kinds: list[Kind] = []
        self._update = 0
        self._key = (False, 0, 0)

    def note(self, kinds: "list[Optional[Kind]]", update: int) -> None:
        """kinds: whose plans a step's passes have; None: of one without a plan."""
        known = [kind for kind in kinds if kind is not None]
        if not known:
            return
        key = (len(known) == len(kinds), max(kind.sight.plain(self._of_saved) for kind in known), len(known))
        if key >= self._key:
            self._kinds, self._update, self._key = known, update, key

    def report(self, state: int, resident: int) -> "Optional[dict[str, Any]]":
        """None: no step has plans."""
        if not self._kinds:
            return None
        return report_of(self._kinds, self._of_saved, self._update, state, resident)

