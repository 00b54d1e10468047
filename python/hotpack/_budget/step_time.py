"""What steps take: without a budget, by the plans, and measured."""

import statistics
from collections import deque
from typing import Any, Optional

from .clock import Clock, Rates
from .passes import MOVE, Pass
from .timeline import Timeline

_LAST = 20  # followed steps whose median is the measured time
_CALIBRATED = 8  # followed steps, after which one is measured closely


class StepTime:
    """known: false where the device's times mean nothing; then all times are 0."""

    def __init__(self, clock: Clock, known: bool, overlaps: bool) -> None:
        self._clock = clock
        self.known = known
        self._overlaps = overlaps
        self._began: Any = None
        self._followed: deque[tuple[Any, Any]] = deque(maxlen=2)
        self._measured: deque[float] = deque(maxlen=_LAST)
        self._rest = 0.0  # of the last observed step: its time without saves, unpacks and moves of state
        self._paging = 0.0  # of that step: moves of all state
        self._plain = 0.0
        self._more = 0.0  # seconds of a step by its plans
        self._least = 0.0  # of which, by a lower bound
        self._since_plan = False
        self._calibrating = False

    def begin(self) -> None:
        """A step begins."""
        if self.known:
            self._began = self._clock.now()

    def calibrates(self) -> bool:
        """True if the next step is to be measured though it follows plans: it takes what a plain one takes, but for its
        saves, unpacks and moves. Observed steps are slower, for the allocator has no plan for them."""
        self._calibrating = self.known and len(self._measured) == _CALIBRATED and self._since_plan
        return self._calibrating

    def end(self, observed: "list[Pass]", spans: "list[tuple[Any, Any]]", paging: "list[tuple[Any, Any]]",
            recording: float, operators: bool) -> None:
        """A step ends. observed: its passes, if it was observed. spans, paging: moments of saves and unpacks, and of
        moves of state. recording: the host's seconds for the recorder. operators: they were measured, which makes the
        host slower."""
        if not self.known or self._began is None:
            return
        now = self._clock.now()
        if self._calibrating and not observed:
            self._since_plan = False
            own = self._clock.sum(spans) + self._clock.sum(paging) + (0.0 if self._overlaps else recording)
            self._plain = max(self._clock.between(self._began, now) - own, self._plain / 4)
            return
        if not observed:
            self._followed.append((self._began, now))
            if len(self._followed) > 1:  # the one before has ended on a GPU too
                self._measured.append(self._clock.between(*self._followed.popleft()))
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

    def predict(self, passes: "list[tuple[float, float]]", paged: float, least: float) -> None:
        """The plans of the last observed step's passes: (seconds without treatments, seconds by the plan). paged: the
        share of the state that moves. least: a lower bound of the additional seconds."""
        self._more = sum(by_plan - bare for bare, by_plan in passes) + self._paging * paged
        self._least = least
        self._since_plan = True
        self._measured.clear()
        self._followed.clear()

    def paging(self, paged: float) -> float:
        """Seconds of the moves of that share of the state."""
        return self._paging * paged

    @property
    def predicted(self) -> float:
        """Of a step by its plans, over one without a budget; 0: not known."""
        return 1 + self._more / self._plain if self._plain > 0 else 0.0

    @property
    def least(self) -> float:
        """A lower bound of it."""
        return 1 + self._least / self._plain if self._plain > 0 else 0.0

    @property
    def measured(self) -> float:
        """The median of the last steps by plan, over one without a budget; 0: not known."""
        return statistics.median(self._measured) / self._plain if self._plain > 0 and self._measured else 0.0
