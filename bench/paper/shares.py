"""Divides a recording's memory by its own events: retained, carried, and the need of a network that frees nothing
before an iteration's end."""

from __future__ import annotations

from dataclasses import dataclass

_UNIT = 512  # bytes: sizes are rounded up to it, as all policies do


@dataclass
class Shares:
    """Bytes. Retained and carried blocks are live where the last iteration begins; only carried ones are released in it."""

    retained: int
    carried: int
    kept_to_the_end: int  # the most live bytes if the last iteration's blocks stay to its end
    requests: int  # of the last iteration


def _rounded(size: str) -> int:
    return -(-int(size) // _UNIT) * _UNIT


def shares_of(event_csv: str) -> Shares | None:
    """Reads a recording as event CSV. Iterations lie between marks. Returns None with fewer than two marks.
    O(events)."""
    events = [line.split(",") for line in event_csv.splitlines()[1:]]
    marks = [position for position, event in enumerate(events) if event[0] == "mark"]
    if len(marks) < 2:
        return None
    live: dict[str, int] = {}
    for kind, block, size in events[:marks[-2]]:
        if kind == "alloc":
            live[block] = _rounded(size)
        elif kind == "free":
            del live[block]
    before, last = dict(live), events[marks[-2]:marks[-1]]
    held = peak = sum(live.values())
    carried = requests = 0
    for kind, block, size in last:
        if kind == "alloc":
            held, requests = held + _rounded(size), requests + 1
            before.pop(block, None)  # the number is reused
            peak = max(peak, held)
        elif kind == "free" and block in before:
            carried += before[block]
            held -= before.pop(block)
    return Shares(sum(live.values()) - carried, carried, peak, requests)
