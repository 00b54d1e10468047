"""When optimizer state that does not stay on the device leaves and comes back, while a pass runs: where the plan of the
saves has room, and the link has time.

    bytes │ budget ──────────────────────────────
          │▇▆▄▃▂▁  ┌────┐ ▁▂▃▄▅▆▇ state
          │     ┌──┘    └────┐
          │ ┌───┘ load       └────┐
          └──── forward ─┴─ backward ──► position
"""

import itertools
from typing import Optional

from .timeline import StateMoves, Timeline

EARLY = 1.25  # copies are planned as if they took so much longer


class Moving:
    """State that is away where the load is highest. bytes: of it. outside: how much of it may be on the device while
    optimizers step, in addition to two slices. seconds: what it takes to move all of it in these steps."""

    __slots__ = ("bytes", "outside", "seconds")

    def __init__(self, size: int, outside: int, seconds: float) -> None:
        self.bytes = size
        self.outside = max(0, min(size, outside))
        self.seconds = seconds


def moves_within(room: int, load: "list[int]", timeline: Timeline, turn: int, back: "list[tuple[int, int]]",
                 moving: Moving) -> "Optional[StateMoves]":
    """load: bytes at each position. turn: of the first return of a save. back: (position, bytes) of the saves' copies
    back, in order. None: there is no room. O(positions + copies)."""
    free = [max(0, room - size) for size in load]
    forward = list(itertools.accumulate(free[:turn], min))
    backward = list(itertools.accumulate(reversed(free[turn:]), min))[::-1]
    if not forward or not backward or moving.bytes == 0:
        return None
    clock = list(itertools.accumulate(timeline.durations, initial=0.0))
    idle = _idle_bytes(timeline, clock, turn, back)
    come = 0
    for gap, most in zip(idle, backward):
        come = min(come + gap, most)
    # What has left by each position, and at the turn all of it.
    gone = [int(moment * timeline.rates.out / EARLY) for moment in clock[:turn + 1]]
    leave = min(most + left for most, left in zip((*forward[1:], 0), gone[1:]))
    size = min(come, leave, forward[0], moving.outside)  # each way, for the longer one would be in the way
    if size <= 0:
        return None
    stays = [min(most, max(0, size - left)) for most, left in zip(forward, gone)]
    comes = [size]
    for gap in reversed(idle[1:]):
        comes.append(max(0, comes[-1] - gap))
    return StateMoves(stays + [0] * len(backward), [0] * len(forward) + comes[::-1], forward + backward,
                      moving.seconds * (1 - size / moving.bytes))


def _idle_bytes(timeline: Timeline, clock: "list[float]", turn: int, back: "list[tuple[int, int]]") -> "list[int]":
    """What the link back could carry at each position from the turn on, next to the saves."""
    rate = timeline.rates.back
    idle = timeline.durations[turn:]
    now = 0.0
    position = turn
    for start, size in back:
        begin = max(now, clock[start])
        now = begin + size / rate
        while position < len(timeline.durations) and clock[position + 1] <= begin:
            position += 1
        for place in range(position, len(timeline.durations)):
            shared = min(now, clock[place + 1]) - max(begin, clock[place])
            if shared <= 0:
                break
            idle[place - turn] -= shared
    return [int(max(0.0, gap) * rate / EARLY) for gap in idle]
