"""The time of a pass whose saves are treated by a plan.

    position   save 0   save 1   save 2  │ turn │  unpack 2   unpack 1   unpack 0
    compute    ▇▇▇▇▇▇   ▇▇▇▇▇▇   ▇▇▇▇▇▇  ░      ▇▇▇▇▇▇▇▇▇▇ again ▇▇▇▇▇  ▇▇▇▇▇▇▇▇▇
    out               ▄▄▄▄▄▄▄▄▄                                     ░ waits
    back                                        ▄▄▄▄▄▄▄▄▄ started where the plan says
"""

from typing import Optional

from .clock import Rates
from .passes import AGAIN, MOVE


class Timeline:
    """durations: seconds of the program's own work at each position, without any treatment. hook: the host's seconds
    for a save and its unpack, where they are in the way."""

    def __init__(self, durations: "list[float]", rates: Rates, hook: float) -> None:
        self.durations = durations
        self.rates = rates
        self.hook = hook
        self.total = sum(durations)

    def seconds(self, uses: "list[Use]", treatments: "list[str]", ends: "list[int]", starts: "dict[int, int]",
                leaves: "dict[int, int]", state: "Optional[StateMoves]" = None) -> float:
        """ends: when a storage is back on the device. starts: when a moved one's copy back begins. leaves: when a moved
        one's copy out is waited for; else when it went in the observed step. state: what moves meanwhile.
        O(positions + storages log storages)."""
        moved = [index for index, treatment in enumerate(treatments) if treatment == MOVE]
        computed = sum(use.seconds for use, treatment in zip(uses, treatments) if treatment == AGAIN)
        if not self.rates.overlaps:
            bytes_moved = sum(uses[index].bytes for index in moved)
            return (self.total + computed + bytes_moved * (1 / self.rates.out + 1 / self.rates.back)
                    + self.hook * len(uses))
        return self._overlapped(uses, treatments, moved, ends, starts, leaves, state)

    def _overlapped(self, uses: "list[Use]", treatments: "list[str]", moved: "list[int]", ends: "list[int]",
                    starts: "dict[int, int]", leaves: "dict[int, int]", state: "Optional[StateMoves]") -> float:
        count = len(self.durations)
        leaving: dict[int, list[int]] = {}
        gone: dict[int, list[int]] = {}
        fetched: dict[int, list[int]] = {}
        needed: dict[int, list[int]] = {}
        for index in moved:
            leaving.setdefault(min(uses[index].born, count - 1), []).append(index)
            fetched.setdefault(min(starts.get(index, ends[index]), count - 1), []).append(index)
        for index, treatment in enumerate(treatments):
            if treatment in (MOVE, AGAIN):
                needed.setdefault(min(ends[index], count - 1), []).append(index)
        for index in moved:
            gone.setdefault(min(leaves.get(index, uses[index].begin), count - 1), []).append(index)
        left: dict[int, float] = {}
        now = back = 0.0
        stays, comes = (state.stays, state.comes) if state is not None else ([], [])
        out = stays[0] / self.rates.out if stays else 0.0
        arrived: dict[int, float] = {}
        for position, duration in enumerate(self.durations):
            if stays:
                now = max(now, (stays[0] - stays[position]) / self.rates.out)
            for index in leaving.get(position, ()):
                out = left[index] = max(out, now) + uses[index].bytes / self.rates.out
            for index in gone.get(position, ()):
                now = max(now, left.get(index, 0.0))
            for index in sorted(fetched.get(position, ()), key=lambda index: ends[index]):
                back = max(back, now) + uses[index].bytes / self.rates.back
                arrived[index] = back
            if comes and position > 0 and comes[position] > comes[position - 1]:
                back = max(back, now) + (comes[position] - comes[position - 1]) / self.rates.back
            for index in needed.get(position, ()):
                now = max(now, arrived[index]) if treatments[index] == MOVE else now + uses[index].seconds
            now += duration
        return max(now, back) if comes else now


class StateMoves:
    """Of optimizers' state, while a pass runs. stays[i], comes[i]: bytes that are on the device at position i, on their
    way out and back. room[i]: bytes that may be there. exposed: seconds of moves in the optimizers' steps."""

    __slots__ = ("comes", "exposed", "room", "stays")

    def __init__(self, stays: "list[int]", comes: "list[int]", room: "list[int]", exposed: float) -> None:
        self.stays = stays
        self.comes = comes
        self.room = room
        self.exposed = exposed


class Use:
    """A storage in the gap in which it may be away: positions [begin, end). The gap is empty where the program itself
    holds the storage. born: the position of its save. sources: storages that it can be computed from; None: it cannot.
    extra: bytes of other results on the way. seconds: to compute it."""

    __slots__ = ("begin", "born", "bytes", "end", "extra", "seconds", "sources")

    def __init__(self, size: int, begin: int, end: int, sources: "Optional[list[int]]" = None, extra: int = 0,
                 seconds: float = 0.0, born: "Optional[int]" = None) -> None:
        self.bytes = size
        self.begin = begin
        self.end = end
        self.sources = sources
        self.extra = extra
        self.seconds = seconds
        self.born = begin if born is None else born


def least_seconds(timeline: Timeline, uses: "list[Use]", load: "list[int]", room: int) -> float:
    """A lower bound: no plan of the pass takes less. load: bytes at each position with everything kept.

    Where the load is highest, enough must be away. In the bound parts of storages may be, sources cost nothing, and
    copies are in the way of nothing but each other and the end of the pass. O(storages log storages + positions)."""
    peak = max(load, default=0)
    place = load.index(peak) if load else 0
    there = [use for use in uses if use.begin <= place < use.end]
    excess = min(peak - room, sum(use.bytes for use in there))
    if excess <= 0:
        return timeline.total
    again = sorted((use.seconds / use.bytes, use.bytes) for use in there if use.sources is not None)
    rates = timeline.rates
    if not rates.overlaps:
        copy = 1 / rates.out + 1 / rates.back
        seconds, rest = _cheapest([(price, size) for price, size in again if price < copy], excess)
        return timeline.total + seconds + rest * copy
    # What moves is out before that place, and comes back after it. Convex in how much that is.
    before = sum(timeline.durations[:place])
    turned = place >= min(use.end for use in uses)  # results may have been computed again before that place

    def seconds_with(moved: float) -> float:
        seconds, rest = _cheapest(again, excess - moved)
        if rest > 0:
            return float("inf")
        return (timeline.total + seconds + max(0.0, moved / rates.out - before - (seconds if turned else 0.0))
                + max(0.0, moved / rates.back - (timeline.total - before) - seconds))

    low, high = float(max(0, excess - sum(size for _, size in again))), float(excess)
    for _ in range(80):
        third = (high - low) / 3
        if seconds_with(low + third) <= seconds_with(high - third):
            high -= third
        else:
            low += third
    return seconds_with(high)


def _cheapest(prices: "list[tuple[float, int]]", size: float) -> "tuple[float, float]":
    """Seconds for so many bytes, by ascending (seconds a byte, bytes), and the bytes that are left."""
    seconds = 0.0
    for price, available in prices:
        part = min(size, available)
        seconds += price * part
        size -= part
        if size <= 0:
            break
    return seconds, max(size, 0.0)
