"""Which saves are kept: as many bytes as the budget has room for.

    bytes │        budget ────────────────────────────────
          │                 ┌────┐ kept from drop to back: the nearest to the turn first
          │        ┌────────┘    └───────┐
          │  ▁▂▃▄▅▆▇ base: the step with everything moved ▇▆▅▃▂
          └───────── forward ──┴── backward ──► position
"""

from typing import Optional

from .passes import AGAIN, KEEP, MOVE, Pass

_AHEAD = 8  # positions: a copy back may begin so long before its first use


class Use:
    """A storage in the gap in which it may be away: positions [begin, end). The gap is empty where the program itself
    holds the storage. sources: storages that it can be computed from; None: it cannot. extra: bytes of other results on
    the way."""

    __slots__ = ("begin", "bytes", "end", "extra", "sources")

    def __init__(self, size: int, begin: int, end: int, sources: "Optional[list[int]]" = None, extra: int = 0) -> None:
        self.bytes = size
        self.begin = begin
        self.end = end
        self.sources = sources
        self.extra = extra


class Sight:
    """What was observed of a kind. base[i]: the highest load at position i with everything moved. saved[i]: that of
    saved storages alone."""

    def __init__(self, base: "list[int]", saved: "list[int]", uses: "list[Use]") -> None:
        self.base = base
        self.saved = saved
        self.uses = uses

    def merge(self, other: "Sight") -> "Sight":
        """The higher of both at each position, if they have the same; else the newer."""
        if len(self.base) != len(other.base) or len(self.uses) != len(other.uses):
            return other
        # What can be computed again is as in the newer one.
        other.base = [max(pair) for pair in zip(self.base, other.base)]
        other.saved = [max(pair) for pair in zip(self.saved, other.saved)]
        for mine, theirs in zip(other.uses, self.uses):
            mine.begin, mine.end = min(mine.begin, theirs.begin), max(mine.end, theirs.end)
        return other

    def plain(self, of_saved: bool) -> int:
        """The peak with everything kept."""
        load = list(self.saved if of_saved else self.base)
        for use in self.uses:
            _add(load, use, use.end)
        return max(load, default=0)


class Plan:
    """treatments: by storage. predicted: the peak in bytes. floor: with everything moved. moved: bytes each way.
    arrivals: (position, storage) in order: from there on a moved storage may come back."""

    __slots__ = ("arrivals", "floor", "moved", "predicted", "treatments")

    def __init__(self, treatments: "list[str]", predicted: int, floor: int, moved: int,
                 arrivals: "list[tuple[int, int]]") -> None:
        self.arrivals = arrivals
        self.treatments = treatments
        self.predicted = predicted
        self.floor = floor
        self.moved = moved


def _add(load: "list[int]", use: Use, end: int) -> None:
    for position in range(use.begin, end):
        load[position] += use.bytes


def _compute_again(uses: "list[Use]", load: "list[int]", room: int, ends: "list[int]", treatments: "list[str]") -> None:
    """Decides what is computed again instead of moved: what can be from storages that are not, where there is room for
    the results on the way. A source comes back with the first result that needs it: ends of gaps and the load become
    those of that."""
    needed: set[int] = set()
    for index, use in enumerate(uses):
        if use.sources is None or index in needed or use.begin >= use.end or use.end >= len(load):
            continue
        if any(treatments[source] == AGAIN for source in use.sources) or load[use.end] + use.extra > room:
            continue
        early = {source: min(ends[source], use.end) for source in use.sources}
        if any(max(load[end:ends[source]], default=0) + uses[source].bytes > room for source, end in early.items()):
            continue
        treatments[index] = AGAIN
        load[use.end] += use.extra
        for source, end in early.items():
            needed.add(source)
            for position in range(end, ends[source]):
                load[position] += uses[source].bytes
            ends[source] = end


def sight_of(done: Pass, loads: "Optional[list[int]]", fixed: int) -> Sight:
    """Of a pass that kept nothing. loads: the highest load at each position, measured. None: what is fixed and the
    saved storages are counted. O(positions + storages)."""
    count = done.position + 1
    saved = [0] * (count + 1)
    uses = []
    for entry in done.saved:
        back = entry.back if entry.back is not None else count if entry.ended is None else entry.ended + 1
        last = entry.last if entry.last is not None else back
        dropped = min(entry.dropped if entry.dropped is not None else count, back)
        uses.append(Use(entry.bytes, dropped, back, entry.sources, entry.extra))
        for begin, end in ((entry.born, dropped), (back, last + 1)):
            saved[min(begin, count)] += entry.bytes
            saved[min(end, count)] -= entry.bytes
    total = 0
    for position, change in enumerate(saved):
        total += change
        saved[position] = total
    saved.pop()
    return Sight([fixed + part for part in saved] if loads is None else loads, saved, uses)


def choose(sight: Sight, room: int, of_saved: bool, ahead: bool = False) -> Plan:
    """The plan whose load is at most `room` bytes, or the one with nothing kept where there is none. Keeps the shortest
    gaps first, which are in the way of the fewest others, then what else fits. Deterministic; O(storages x positions).

    of_saved: the room is for saved storages alone. ahead: what is moved may come back before it is needed."""
    plain, again = (_choose(sight, room, of_saved, ahead, compute) for compute in (False, True))
    return min(plain, again, key=lambda plan: (max(0, plan.predicted - room), plan.moved))


def everything_moved(sight: Sight) -> Plan:
    """The step as it was observed."""
    peak = max(sight.base, default=0)
    return Plan([MOVE for _ in sight.uses], peak, peak, sum(use.bytes for use in sight.uses), [])


def _choose(sight: Sight, room: int, of_saved: bool, ahead: bool, compute: bool) -> Plan:
    load = list(sight.saved if of_saved else sight.base)
    floor = max(load, default=0)
    ends = [use.end for use in sight.uses]
    treatments = [MOVE for _ in sight.uses]
    if compute:
        _compute_again(sight.uses, load, room, ends, treatments)
    order = sorted(range(len(sight.uses)), key=lambda index: (
        sight.uses[index].end - sight.uses[index].begin, -sight.uses[index].bytes, index))
    moved = 0
    for index in order:
        use = sight.uses[index]
        end = ends[index]
        if use.begin >= end or max(load[use.begin:end]) + use.bytes <= room:
            treatments[index] = KEEP
            _add(load, use, end)
        elif treatments[index] == MOVE:
            moved += use.bytes
    arrivals = _arrivals(sight.uses, load, room, ends, treatments) if ahead else []
    return Plan(treatments, max(load, default=0), floor, moved, arrivals)


def _arrivals(uses: "list[Use]", load: "list[int]", room: int, ends: "list[int]",
              treatments: "list[str]") -> "list[tuple[int, int]]":
    """Where what is moved may come back before it is needed: as early as there is room, the first that is needed first.
    Adds it to the load."""
    arrivals = []
    for index in sorted(range(len(uses)), key=lambda index: (ends[index], index)):
        end = ends[index]
        if treatments[index] != MOVE or end >= len(load):
            continue
        begin = end
        while begin - 1 > uses[index].begin and end - begin < _AHEAD and load[begin - 1] + uses[index].bytes <= room:
            begin -= 1
            load[begin] += uses[index].bytes
        if begin < end:
            arrivals.append((begin, index))
    return sorted(arrivals)
