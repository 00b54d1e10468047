"""Which saves are kept, moved or computed again: the least time within the budget.

    bytes │        budget ────────────────────────────────
          │                 ┌────┐ kept from drop to back
          │        ┌────────┘    └───────┐
          │  ▁▂▃▄▅▆▇ base: the step with everything moved ▇▆▅▃▂
          └───────── forward ──┴── backward ──► position

What is computed again needs its sources: those that are not kept come back with the first result that needs them, and
stay for their own use. So a chain of results is computed once, from its end to its begin.
"""

import heapq
import itertools
from collections.abc import Callable
from typing import Any, Optional

import torch

from .clock import UNKNOWN_RATE, Rates
from .passes import AGAIN, KEEP, MOVE, Pass
from .state_moves import EARLY, Moving, moves_within
from .timeline import StateMoves, Timeline, Use, least_seconds

LONGEST_CHAIN = 40  # results, each computed from the one before: a replay calls the next one
# How much of a copy's time is thought to be in the way while copies overlap with kernels: plans with some are compared.
_WEIGHTS = (1.0, 1e6)
_QUICK_WEIGHTS = (0.012, 1.0)
_HALVINGS = 7  # of the range between nothing and all of it
_EQUAL = 1.03  # gains get smaller as others go: how much worse than it was the next one may be before others are asked
_UNKNOWN = Rates(UNKNOWN_RATE, UNKNOWN_RATE, True)


class Sight:
    """What was observed of a kind. base[i]: the highest load at position i with everything moved. saved[i]: that of
    saved storages alone."""

    def __init__(self, base: "list[int]", saved: "list[int]", uses: "list[Use]",
                 timeline: "Optional[Timeline]" = None) -> None:
        self.base = base
        self.saved = saved
        self.uses = uses
        self.timeline = timeline or Timeline([0.0] * len(base), _UNKNOWN, 0.0)

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

    def kept(self, of_saved: bool) -> "list[int]":
        """Bytes at each position with everything kept. O(storages + positions)."""
        load = list(self.saved if of_saved else self.base)
        changes = [0] * (len(load) + 1)
        for use in self.uses:
            if use.begin < use.end:
                changes[min(use.begin, len(load))] += use.bytes
                changes[min(use.end, len(load))] -= use.bytes
        return [part + more for part, more in zip(load, itertools.accumulate(changes))]

    def plain(self, of_saved: bool) -> int:
        """The peak with everything kept."""
        return max(self.kept(of_saved), default=0)

    def least_seconds(self, room: int, of_saved: bool) -> float:
        """A lower bound of the pass's time within the room."""
        return least_seconds(self.timeline, self.uses, self.kept(of_saved), room)


class Plan:
    """treatments: by storage. fetches: (position, moved storage): where copies back begin, in order. leaves: by moved
    storage, until when it may stay for its copy out. predicted: the peak in bytes. load: bytes at each position. floor:
    the peak with everything moved. moved: bytes each way. seconds: of the pass. seconds_of: of each storage, without
    what overlaps; empty: not known. state: of optimizers, that moves meanwhile. exposed: seconds of its moves that are
    in the way of their steps."""

    __slots__ = ("exposed", "fetches", "floor", "leaves", "load", "moved", "predicted", "seconds", "seconds_of",
                 "state", "treatments")

    def __init__(self, treatments: "list[str]", load: "list[int]", floor: int, moved: int, seconds: float,
                 starts: "dict[int, int]", seconds_of: "list[float]", leaves: "Optional[dict[int, int]]" = None,
                 state: "Optional[StateMoves]" = None, exposed: float = 0.0) -> None:
        self.treatments = treatments
        self.load = load
        self.predicted = max(load, default=0)
        self.floor = floor
        self.moved = moved
        self.seconds = seconds
        self.seconds_of = seconds_of
        self.leaves = leaves or {}
        self.fetches = sorted((start, index) for index, start in starts.items())
        self.state = state
        self.exposed = exposed


def sight_of(done: Pass, loads: "Optional[list[int]]", fixed: int, timeline: "Optional[Timeline]" = None) -> Sight:
    """Of a pass that kept nothing. loads: the highest load at each position, measured. None: what is fixed and the
    saved storages are counted. O(positions + storages)."""
    count = done.position + 1
    saved = [0] * (count + 1)
    uses = []
    for entry in done.saved:
        back = entry.back if entry.back is not None else count if entry.ended is None else entry.ended + 1
        last = entry.last if entry.last is not None else back
        dropped = min(entry.dropped if entry.dropped is not None else count, back)
        uses.append(Use(entry.bytes, dropped, back, entry.sources, entry.extra, entry.seconds, entry.born))
        for begin, end in ((entry.born, dropped), (back, last + 1)):
            saved[min(begin, count)] += entry.bytes
            saved[min(end, count)] -= entry.bytes
    total = 0
    for position, change in enumerate(saved):
        total += change
        saved[position] = total
    saved.pop()
    return Sight([fixed + part for part in saved] if loads is None else loads, saved, uses, timeline)


def everything_moved(sight: Sight) -> Plan:
    """The step as it was observed."""
    treatments = [MOVE for _ in sight.uses]
    ends = [use.end for use in sight.uses]
    return Plan(treatments, sight.base, max(sight.base, default=0), sum(use.bytes for use in sight.uses),
                sight.timeline.seconds(sight.uses, treatments, ends, {}, {}), {}, [])


@torch.no_grad()  # type: ignore[untyped-decorator]  # the recorder has nothing to do with it
def choose(sight: Sight, room: int, of_saved: bool, quick: bool = False, moving: "Optional[Moving]" = None) -> Plan:
    """The fastest plan found whose load is at most `room` bytes, or the one that is the least above it. Deterministic.
    About O(storages x positions).

    of_saved: the room is for saved storages alone. quick: fewer plans are compared. moving: state that comes and goes
    while saves move, too."""
    overlaps = sight.timeline.rates.overlaps

    def plan_with(weight: float, compute: bool = True) -> Plan:
        return _Search(sight, room, of_saved, weight, compute).plan(moving)

    plans = [plan_with(1.0, False)]
    if any(use.sources is not None for use in sight.uses):
        weights = _QUICK_WEIGHTS if quick else _WEIGHTS
        plans += [plan_with(weight) for weight in (weights if overlaps else (1.0,))]
        if overlaps and not quick:
            plans += _halvings(sight, room, plan_with)
    return min(plans, key=lambda plan: (max(0, plan.predicted - room), plan.seconds + plan.exposed, plan.moved))


@torch.no_grad()  # type: ignore[untyped-decorator]
def with_treatments(sight: Sight, room: int, of_saved: bool, treatments: "list[str]",
                    moving: "Optional[Moving]" = None) -> Plan:
    """The plan of these treatments, one for each storage. What is above the room then goes as in choose(); what cannot
    be computed again is moved; chains that are too long begin at a kept result. O(storages x positions)."""
    search = _Search(sight, room, of_saved, 1.0, True)
    search.begin_with(treatments)
    return search.plan(moving, False)


def _halvings(sight: Sight, room: int, plan_with: "Callable[[float], Plan]") -> "list[Plan]":
    """Towards the weight with which as much moves as hides behind kernels."""
    low, high = 1e-4, 1.0
    plans = []
    for _ in range(_HALVINGS):
        weight = (low * high) ** 0.5
        plan = plan_with(weight)
        plans.append(plan)
        computed = sum(use.seconds for use, treatment in zip(sight.uses, plan.treatments) if treatment == AGAIN)
        if plan.predicted > room or plan.seconds > 1.002 * (sight.timeline.total + computed):
            low = weight
        else:
            high = weight
    return plans


class _Search:
    """From everything kept: takes away what frees the most excess for its time, until the load fits. Then returns what
    has room after all, the dearest first."""

    def __init__(self, sight: Sight, room: int, of_saved: bool, weight: float, compute: bool) -> None:
        self._uses = sight.uses
        self._timeline = sight.timeline
        self._room = room
        base = sight.saved if of_saved else sight.base
        self._floor = max(base, default=0)
        self._base = torch.tensor(base, dtype=torch.int64)
        self._load = self._base
        self._treatments = [KEEP for _ in sight.uses]
        self._ends: list[int] = []  # when it is needed: by a node, or a result that is computed
        self._users: list[list[int]] = []  # that are computed again from it
        self._above: list[int] = []  # results in the chain that it is computed from
        self._below: list[int] = []  # results in the chain that is computed from it
        rates = self._timeline.rates
        self._copy = 1 / rates.out + 1 / rates.back
        self._weight = weight if rates.overlaps else 1.0
        self._clock = self._moments().tolist()
        self._compute = compute
        self._rebuild()

    def begin_with(self, treatments: "list[str]") -> None:
        """Instead of everything kept."""
        lengths = [0] * len(treatments)  # of chains, from their begin on
        for index, (use, treatment) in enumerate(zip(self._uses, treatments)):
            if treatment == KEEP or use.begin >= use.end:
                continue
            if treatment == AGAIN and AGAIN in self._options(index):
                lengths[index] = 1 + max((lengths[source] for source in use.sources or ()), default=0)
                if lengths[index] > LONGEST_CHAIN:
                    lengths[index] = 0
                    continue
                self._treatments[index] = AGAIN
            else:
                self._treatments[index] = MOVE
        self._rebuild()

    def plan(self, moving: "Optional[Moving]" = None, returns: bool = True) -> Plan:
        """returns: what has room after all is kept."""
        self._fit()
        if returns:
            self._return()
            self._rebuild()  # results on the way may be wanted elsewhere now
            self._fit()
        leaves = self._end_copies() if self._timeline.rates.overlaps else {}
        starts = self._start_copies() if self._timeline.rates.overlaps else {}
        moved = sum(use.bytes for use, treatment in zip(self._uses, self._treatments) if treatment == MOVE)
        seconds = self._timeline.seconds(self._uses, self._treatments, self._ends, starts, leaves)
        seconds_of = [self._seconds_of(use, treatment) for use, treatment in zip(self._uses, self._treatments)]
        load = self._load.tolist()
        exposed = moving.seconds if moving is not None else 0.0
        state = self._state_moves(moving, load, starts) if moving is not None else None
        if state is not None:
            concurrent = self._timeline.seconds(self._uses, self._treatments, self._ends, starts, leaves, state)
            if concurrent + state.exposed < seconds + exposed:
                seconds, exposed = concurrent, state.exposed
                load = [sum(parts) for parts in zip(load, state.stays, state.comes)]
            else:
                state = None
        return Plan(self._treatments, load, self._floor, moved, seconds, starts,
                    seconds_of if self._timeline.total > 0 else [], leaves, state, exposed)

    def _state_moves(self, moving: Moving, load: "list[int]", starts: "dict[int, int]") -> "Optional[StateMoves]":
        if not self._timeline.rates.overlaps or self._timeline.total <= 0:
            return None
        turn = min((use.end for use in self._uses), default=0)
        back = sorted((start, self._ends[index], self._uses[index].bytes) for index, start in starts.items())
        return moves_within(self._room, load, self._timeline, turn, [(start, size) for start, _, size in back], moving)

    def _seconds_of(self, use: Use, treatment: str) -> float:
        if treatment == AGAIN:
            return use.seconds
        rates = self._timeline.rates
        return use.bytes * (1 / rates.out + 1 / rates.back) if treatment == MOVE and not rates.overlaps else 0.0

    def _fit(self) -> None:
        self._take_away()
        while self._move_instead():
            self._take_away()

    def _excess(self) -> int:
        return int((self._load - self._room).clamp_(min=0).sum())

    def _take_away(self) -> None:
        queue = []
        excess = self._excess() > 0
        if excess:
            for index in range(len(self._uses)):
                for treatment in self._options(index):
                    entry = self._entry(index, treatment)
                    if entry is not None:
                        queue.append(entry)
        heapq.heapify(queue)
        while queue and excess:
            _, _, index, treatment = heapq.heappop(queue)
            if self._treatments[index] != KEEP:
                continue
            entry = self._entry(index, treatment)
            if entry is None:
                continue
            if queue and (entry[0] > _EQUAL * queue[0][0] or entry[0] == queue[0][0] and entry > queue[0]):
                heapq.heappush(queue, entry)
                continue
            self._apply(index, treatment)
            excess = self._excess() > 0

    def _options(self, index: int) -> "tuple[str, ...]":
        use = self._uses[index]
        if use.begin >= use.end:
            return ()
        computes = self._compute and use.sources is not None and use.end < len(self._load)
        return (AGAIN, MOVE) if computes else (MOVE,)

    def _cost(self, index: int, treatment: str) -> float:
        use = self._uses[index]
        if treatment == AGAIN:
            return use.seconds
        copies = self._copy * use.bytes
        hidden = self._clock[min(use.end, len(self._clock) - 1)] - self._clock[min(use.begin, len(self._clock) - 1)]
        return max(self._weight * copies, copies - hidden) if self._weight < 1 else copies

    def _entry(self, index: int, treatment: str) -> "Optional[tuple[float, int, int, str]]":
        """(seconds for each byte of excess that goes, ...), to be compared. None: nothing goes."""
        use = self._uses[index]
        end = self._ends[index]
        gain = int((self._load[use.begin:end] - self._room).clamp_(0, use.bytes).sum())
        if treatment == AGAIN and gain > 0:
            if self._chain(index) > LONGEST_CHAIN:
                return None
            gain -= self._harm(index, end)
        if gain <= 0:
            return None
        return (self._cost(index, treatment) + 1e-9) / gain, use.begin - use.end, index, treatment

    def _chain(self, index: int) -> int:
        sources = self._uses[index].sources or ()
        return 1 + self._below[index] + max((self._above[source] + 1 for source in sources
                                             if self._treatments[source] == AGAIN), default=0)

    def _harm(self, index: int, end: int) -> int:
        """The excess that comes with what the result is computed from."""
        added: list[tuple[int, int, int]] = [(end, end + 1, self._uses[index].extra)]
        seen: set[int] = set()
        self._early(index, end, added, seen)
        last = max(until for _, until, _ in added)
        before = self._load[end:last] - self._room
        after = before.clone()
        for begin, until, size in added:
            after[begin - end:until - end] += size
        return int(after.clamp_(min=0).sum()) - int(before.clamp_(min=0).sum())

    def _early(self, index: int, end: int, added: "list[tuple[int, int, int]]", seen: "set[int]") -> None:
        for source in self._uses[index].sources or ():
            if source in seen or self._treatments[source] == KEEP or self._ends[source] <= end:
                continue
            seen.add(source)
            added.append((end, self._ends[source], self._uses[source].bytes))
            if self._treatments[source] == AGAIN:
                added.append((end, end + 1, self._uses[source].extra))
                self._early(source, end, added, seen)

    def _apply(self, index: int, treatment: str) -> None:
        use = self._uses[index]
        end = self._ends[index]
        self._load[use.begin:end] -= use.bytes
        self._treatments[index] = treatment
        if treatment != AGAIN:
            return
        self._load[end:end + 1] += use.extra
        for source in use.sources or ():
            self._users[source].append(index)
            self._need(source, end)
        self._above[index] = max((self._above[source] + 1 for source in use.sources or ()
                                  if self._treatments[source] == AGAIN), default=0)
        self._lengthen(index)

    def _need(self, source: int, end: int) -> None:
        """The storage is needed from that position on."""
        was = self._ends[source]
        if was <= end:
            return
        self._ends[source] = end
        use = self._uses[source]
        if self._treatments[source] == KEEP:
            return
        self._load[end:was] += use.bytes
        if self._treatments[source] == AGAIN:
            self._load[was:was + 1] -= use.extra
            self._load[end:end + 1] += use.extra
            for further in use.sources or ():
                self._need(further, end)

    def _lengthen(self, index: int) -> None:
        """Of the chains through a result."""
        for user in self._users[index]:
            if self._above[user] < self._above[index] + 1:
                self._above[user] = self._above[index] + 1
                self._lengthen(user)
        for source in self._uses[index].sources or ():
            if self._treatments[source] == AGAIN and self._below[source] < self._below[index] + 1:
                self._below[source] = self._below[index] + 1
                self._lengthen(source)

    def _move_instead(self) -> bool:
        """Moves one result that is computed again where the load is highest, because of it. False: there is none, or
        the load fits."""
        place = int(self._load.argmax()) if len(self._load) > 0 else 0
        if not self._compute or int(self._load.max()) <= self._room:
            return False
        found = [index for index, treatment in enumerate(self._treatments)
                 if treatment == AGAIN and self._weighs(index, place)]
        if not found:
            return False
        index = min(found, key=lambda index: (self._cost(index, MOVE) - self._uses[index].seconds, index))
        self._treatments[index] = MOVE
        self._rebuild()
        return True

    def _weighs(self, index: int, place: int) -> bool:
        end = self._ends[index]
        if end == place and self._uses[index].extra > 0:
            return True
        return any(self._treatments[source] != KEEP and self._ends[source] == end <= place < self._uses[source].end
                   for source in self._uses[index].sources or ())

    def _rebuild(self) -> None:
        """Loads and ends, from the treatments. A source has a lower number than what is computed from it."""
        count = len(self._uses)
        self._load = self._base.clone()
        self._ends = [use.end for use in self._uses]
        self._users = [[] for _ in range(count)]
        self._above, self._below = [0] * count, [0] * count
        for index in reversed(range(count)):
            use = self._uses[index]
            end = self._ends[index]
            if self._treatments[index] == KEEP:
                self._load[use.begin:use.end] += use.bytes
                continue
            self._load[end:use.end] += use.bytes
            if self._treatments[index] == AGAIN:
                self._load[end:end + 1] += use.extra
                for source in use.sources or ():
                    self._users[source].append(index)
                    self._ends[source] = min(self._ends[source], end)
                    self._below[source] = max(self._below[source], self._below[index] + 1)
        for index in range(count):
            self._above[index] = max((self._above[source] + 1 for source in self._uses[index].sources or ()
                                      if self._treatments[index] == self._treatments[source] == AGAIN), default=0)

    def _return(self) -> None:
        away = [index for index, treatment in enumerate(self._treatments) if treatment != KEEP]
        for index in sorted(away, key=lambda index: (-self._cost(index, self._treatments[index]), index)):
            use = self._uses[index]
            end = self._ends[index]
            gap = self._load[use.begin:end]
            if len(gap) > 0 and int(gap.max()) + use.bytes > self._room:
                continue
            gap += use.bytes
            if self._treatments[index] == AGAIN:
                self._load[end:end + 1] -= use.extra
            self._treatments[index] = KEEP

    def _moments(self) -> Any:
        """When each position begins, without any treatment."""
        return torch.tensor([0.0, *self._timeline.durations], dtype=torch.float64).cumsum(0)

    def _end_copies(self) -> "dict[int, int]":
        """Until when moved storages stay for their copies out: as long as these take, where there is room."""
        clock = torch.tensor(self._clock, dtype=torch.float64)
        turn = min((use.end for use in self._uses), default=0)
        leaves: dict[int, int] = {}
        out = 0.0
        for index, use in enumerate(self._uses):
            if self._treatments[index] != MOVE:
                continue
            born = min(use.born, len(clock) - 1)
            out = max(out, float(clock[born])) + EARLY * use.bytes / self._timeline.rates.out
            wanted = min(turn, int(torch.searchsorted(clock, out)))
            full = (self._load[use.begin:wanted] + use.bytes > self._room).nonzero()
            leave = wanted if len(full) == 0 else use.begin + int(full[0])
            if leave > use.begin:
                self._load[use.begin:leave] += use.bytes
                leaves[index] = leave
        return leaves

    def _start_copies(self) -> "dict[int, int]":
        """When the copies back begin: as late as the link allows, where there is room."""
        clock = torch.tensor(self._clock, dtype=torch.float64)
        moved = [index for index, treatment in enumerate(self._treatments) if treatment == MOVE]
        starts: dict[int, int] = {}
        turn = min((use.end for use in self._uses), default=0)  # backward's first unpack
        free = float("inf")  # the link is, before this moment
        for index in sorted(moved, key=lambda index: (-self._ends[index], index)):
            use = self._uses[index]
            end = min(self._ends[index], len(self._load) - 1)
            free = min(free, float(clock[end])) - EARLY * use.bytes / self._timeline.rates.back
            wanted = max(use.begin, turn, int(torch.searchsorted(clock, free, right=True)) - 1)
            start = self._fits_from(wanted, end, use.bytes)
            self._load[start:end] += use.bytes
            starts[index] = start
        return starts

    def _fits_from(self, wanted: int, end: int, size: int) -> int:
        if wanted >= end:
            return end
        full = (self._load[wanted:end] + size > self._room).nonzero()
        return wanted if len(full) == 0 else wanted + int(full[-1]) + 1

