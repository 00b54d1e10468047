"""What steps take: without a budget, by the plans, and measured."""

import statistics
from collections import deque
from typing import Any, Optional

from .clock import Clock, Rates
from .passes import MOVE, Pass
from .timeline import Timeline

_LAST = 20  # followed steps whose median is the measured time
_CALIBRATED = (8, 40)  # followed steps, after which one is measured closely: later ones may wait for less


class StepTime:
    """known: false where the device's times mean nothing; then all times are 0. calibrating: the present step is
    measured closely."""

    def __init__(self, clock: Clock, known: bool, overlaps: bool) -> None:
        self._clock = clock
        self.known = known
        self._overlaps = overlaps
        self._began: Any = None
        self._followed: deque[tuple[Any, Any]] = deque(maxlen=2)
        self._measured: deque[float] = deque(maxlen=_LAST)
        self._rest = 0.0  # of the last observed step: its time without saves, unpacks and moves of state
        self._paging = 0.0  # of that step: moves of all state
        self._plain = 0.0  # of a step without a budget, until a followed one has been measured closely
        self._own: Optional[float] = None  # seconds of such a step that it has by its plans
        self._steps = 0  # measured since the last plan
        self._more = 0.0  # seconds of a step by its plans
        self._least = 0.0  # of which, by a lower bound
        self._planned = False
        self.calibrating = False

    def begin(self) -> None:
        """A step begins."""
        if self.known:
            self._began = self._clock.now()

    def calibrates(self) -> bool:
        """True if the next step is to be measured though it follows plans: it takes what a plain one takes, but for its
        saves, unpacks and moves. Observed steps are slower, for the allocator has no plan for them."""
        self.calibrating = self.known and self._steps in _CALIBRATED and not self.calibrating and self._planned
        return self.calibrating

    def end(self, observed: "list[Pass]", spans: "list[tuple[Any, Any]]", paging: "list[tuple[Any, Any]]",
            recording: float, operators: bool) -> None:
        """A step ends. observed: its passes, if it was observed. spans, paging: moments of saves and unpacks, and of
        moves of state. recording: the host's seconds for the recorder. operators: they were measured, which makes the
        host slower."""
        if not self.known or self._began is None:
            return
        now = self._clock.now()
        if self.calibrating and not observed:
            self._own = self._clock.sum(spans) + self._clock.sum(paging) + (0.0 if self._overlaps else recording)
            return
        if not observed:
            self._followed.append((self._began, now))
            if len(self._followed) > 1:  # the one before has ended on a GPU too
                self._measured.append(self._clock.between(*self._followed.popleft()))
                self._steps += 1
            return
        self._followed.clear()
        if operators and self._overlaps and self._plain > 0:
            return
        self._paging = self._clock.sum(paging)
        self._rest = max(0.0, self._clock.between(self._began, now) - self._paging - self._clock.sum(spans))
        self._plain = self._rest - (0.0 if self._overlaps else min(recording, self._rest / 2))

    def timeline(self, done: Pass, rates: Rates) -> "Optional[Timeline]":
        """Of an observed pass."""
        if not self.known:
            return None
        hook = 0.0
        if not self._overlaps and done.saved:
            moved = sum(entry.bytes for entry in done.saved if entry.treatment == MOVE)
            spent = self._clock.sum([(begin, end) for _, begin, end in done.spans])
            hook = max(0.0, spent - moved / rates.out - moved / rates.back) / len(done.saved)
        return Timeline(done.durations(self._clock), rates, hook)

    def predict(self, passes: "list[tuple[float, float]]", exposed: float, least: float) -> None:
        """The plans of the last observed step's passes: (seconds without treatments, seconds by the plan). exposed:
        seconds of the state's moves that are in the way. least: a lower bound of the additional seconds."""
        self._plain = self.plain
        self._own = None
        self._steps = 0
        self._more = sum(by_plan - bare for bare, by_plan in passes) + exposed
        self._least = least
        self._planned = True
        self._measured.clear()
        self._followed.clear()

    def to_save(self) -> "list[float]":
        """Seconds, for a later run's restore()."""
        return [self._plain, self._paging, self._more, self._least]

    def restore(self, found: "list[float]") -> None:
        """The times of an earlier run's plans, which are followed from now on. Raises TypeError or ValueError, with
        nothing changed."""
        self._plain, self._paging, self._more, self._least = map(float, found)
        self._planned = True
        self._followed.clear()

    def paging(self, paged: float) -> float:
        """Seconds of the moves of that share of the state, in the optimizers' steps."""
        return self._paging * paged

    def with_moves(self, more: float, share: float, state: int, rates: Rates, before: float, after: float) -> float:
        """A lower bound of the additional seconds, from one of the passes': that share of the state moves too. On a GPU
        its moves may hide, but for the link's time: it leaves between the optimizers' steps and where the load is
        highest, and comes back between that place and the next steps. before, after: the passes' seconds up to that
        place and from there on."""
        if not self._overlaps:
            return more + self.paging(share)
        if not self.known:
            return 0.0
        moved = share * state
        return max(more, moved / rates.out - (self._plain - after), moved / rates.back - (self._plain - before))

    @property
    def plain(self) -> float:
        """Seconds of a step without a budget: of the last ones, without what they have by their plans."""
        if self._own is None or not self._measured:
            return self._plain
        median = statistics.median(self._measured)
        return max(median - self._own, median / 4)

    @property
    def predicted(self) -> float:
        """Of a step by its plans, over one without a budget; 0: not known."""
        return 1 + self._more / self.plain if self.plain > 0 else 0.0

    @property
    def least(self) -> float:
        """A lower bound of it."""
        return 1 + self._least / self.plain if self.plain > 0 else 0.0

    @property
    def measured(self) -> float:
        """The median of the last steps by plan, over one without a budget; 0: not known."""
        return statistics.median(self._measured) / self.plain if self.plain > 0 and self._measured else 0.0
