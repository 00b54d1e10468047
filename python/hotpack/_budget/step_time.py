"""What steps take: without a budget, by the plans, and measured."""

import statistics
from collections import deque
from typing import Any, Optional

from .clock import Clock, Rates
from .passes import MOVE, Pass
from .timeline import Timeline

_LAST = 20  # followed steps whose median is the measured time


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
        self._predicted = 0.0

    def begin(self) -> None:
        """A step begins."""
        if self.known:
            self._began = self._clock.now()

    def end(self, observed: "list[Pass]", paging: "list[tuple[Any, Any]]", recording: float) -> None:
        """A step ends. observed: its passes, if it was observed. paging: moments of moves of state. recording: the
        host's seconds for the recorder."""
        if not self.known or self._began is None:
            return
        now = self._clock.now()
        if not observed:
            self._followed.append((self._began, now))
            if len(self._followed) > 1:  # the one before has ended on a GPU too
                self._measured.append(self._clock.between(*self._followed.popleft()))
            return
        self._followed.clear()
        self._paging = self._clock.sum(paging)
        hooks = sum(self._clock.sum([(begin, end) for _, begin, end in done.spans]) for done in observed)
        self._rest = max(0.0, self._clock.between(self._began, now) - self._paging - hooks)
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

    def predict(self, passes: "list[tuple[float, float]]", paged: float) -> None:
        """The plans of the last observed step's passes: (seconds without treatments, seconds by the plan). paged: the
        share of the state that moves."""
        self._predicted = self._rest + sum(by_plan - bare for bare, by_plan in passes) + self._paging * paged
        self._measured.clear()
        self._followed.clear()

    def paging(self, paged: float) -> float:
        """Seconds of the moves of that share of the state."""
        return self._paging * paged

    @property
    def predicted(self) -> float:
        """Of a step by its plans, over one without a budget; 0: not known."""
        return self._predicted / self._plain if self._plain > 0 else 0.0

    @property
    def measured(self) -> float:
        """The median of the last steps by plan, over one without a budget; 0: not known."""
        return statistics.median(self._measured) / self._plain if self._plain > 0 and self._measured else 0.0
