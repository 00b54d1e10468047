"""Compares two documents of the same program: the figures that got worse."""

from __future__ import annotations

from dataclasses import dataclass, field

from documents import Document
from figures import COUNT, RATIO, SPEED, TIME, Figure, figures_of, machine_of
from pages import Fault

# By how much of its value a figure of each kind may be worse. Memory repeats; times scatter, and ratios of them less.
TOLERANCES = {RATIO: 0.005, SPEED: 0.10, TIME: 0.25}


@dataclass
class Verdict:
    worse: list[str] = field(default_factory=list)
    better: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    compared: int = 0


def _line(name: str, old: Figure, new: Figure) -> str:
    if old.kind == COUNT:
        return f"{name}: {old.value:g}, now {new.value:g}"
    change = f" ({new.value / old.value - 1:+.1%})" if old.value else ""
    return f"{name}: {old.value:.6g}, now {new.value:.6g}{change}"


def _change(old: Figure, new: Figure) -> float:
    """Returns a positive number if worse: a part of the old value, for counts a difference."""
    difference = old.value - new.value if old.higher_is_better else new.value - old.value
    return difference if old.kind == COUNT or old.value == 0 else difference / abs(old.value)


def compare(old: Document, new: Document, tolerances: dict[str, float], reference: str | None = None) -> Verdict:
    """Times are compared on the same machine only. Raises Fault if the documents are not of one kind, or have nothing in
    common."""
    if old.schema != new.schema:
        raise Fault(f"{old.path} is of {old.schema}, {new.path} of {new.schema}: nothing to compare")
    before, after = figures_of(old, reference), figures_of(new, reference)
    verdict = Verdict()
    same_machine = machine_of(old) == machine_of(new)
    if not same_machine:
        times = sum(figure.kind == TIME for figure in before.values())
        verdict.notes.append(f"other machine: {times} times are not compared")
    for name, figure in before.items():
        if figure.kind == TIME and not same_machine:
            continue
        if name not in after:
            verdict.worse.append(f"{name}: missing")
            continue
        verdict.compared += 1
        change, allowed = _change(figure, after[name]), tolerances.get(figure.kind, 0.0)
        if abs(change) > allowed:
            (verdict.worse if change > 0 else verdict.better).append(_line(name, figure, after[name]))
    added = [name for name in after if name not in before]
    if added:
        verdict.notes.append(f"{len(added)} new, such as {added[0]}")
    if verdict.compared == 0:
        raise Fault(f"{old.path} and {new.path} have no figure in common")
    return verdict
