"""Which optimizer's steps end an iteration."""

import weakref
from typing import Optional

_PATIENCE = 64  # steps of others alone: the one that counted has been replaced
_CERTAIN = 3    # steps of an optimizer to twice as many of the one that counts


class Steps:
    """Several optimizers (a generator's and a discriminator's) make one iteration; one's steps end it, the first one's
    at first. If another one steps half as often or less, the iteration is that one's (the discriminator is trained
    several times for each step of the generator):

        D D G D D G D D G ...     counts: D, and from the fourth on G
    """

    def __init__(self) -> None:
        self._adopt(None)

    def _adopt(self, optimizer: object) -> None:
        self._counts: Optional[weakref.ref[object]] = weakref.ref(optimizer) if optimizer is not None else None
        self._steps = 0       # of the one that counts
        self._others = 0      # of the others since its last
        self._rarer: Optional[weakref.ref[object]] = None  # another one, and since its first step:
        self._beside = 0      # steps of the one that counts
        self._rarer_steps = 0

    def ends_iteration(self, optimizer: object) -> bool:
        """After a step of `optimizer`. The first step ends nothing: gradients live into the next iteration, so that a
        plan made at the end of the first marked one would not know for how long, unless an iteration like it was seen
        before."""
        counts = self._counts() if self._counts is not None else None
        if counts is None or (counts is not optimizer and self._others + 1 >= _PATIENCE):
            self._adopt(optimizer)
        elif counts is not optimizer:
            self._others += 1
            if not self._is_rarer(optimizer):
                return False
            self._adopt(optimizer)
            self._steps = 1
        self._others = 0
        self._beside += 1
        self._steps += 1
        return self._steps > 1

    def _is_rarer(self, optimizer: object) -> bool:
        if self._rarer is None or self._rarer() is not optimizer:
            self._rarer = weakref.ref(optimizer)
            self._beside = self._rarer_steps = 0
            return False
        self._rarer_steps += 1
        return self._rarer_steps >= _CERTAIN and self._beside >= 2 * self._rarer_steps
