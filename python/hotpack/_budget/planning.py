"""Plans for all kinds of passes of a step, within one budget. Packing takes a margin of it, optimizer state that stays
takes a part, and each kind's plan has the rest."""

from typing import Any, Optional

from .._errors import Error
from . import planners, saved_plan
from .amount import Amount
from .paging import Pager
from .passes import Kind
from .policy import Plan, Sight, choose, everything_moved, with_treatments
from .state_moves import Moving
from .step_time import StepTime
from .timeline import Timeline

_PARTS = 64              # of the optimizers' state: some stay on the device
_SHARES = 16             # of it, of which the bound has one for the best
_SLICES = 2              # of those, that come ahead of their updates or leave behind them
_UPDATE = 3              # An optimizer's temporaries take at most so many times its parameters' bytes.
_DOUBT = 0.1             # of the time of moves that are planned to hide: state stays where it costs no more than that
_WRONG = 0.1             # A plan is corrected if a pass takes less time than when it was observed, by this part.
_CORRECTIONS = 2         # It is corrected at most so often.
_LARGER = 1.05           # A step so many times larger than those before is a reason to make all plans again.
_CLOSELY = 4             # kinds that are planned closely, those with the highest loads; others quickly
# Of a GPU's budget: what packing and the driver's pages take beyond what is live. A budget in bytes is hotpack's limit
# too, which keeps that small. A share is none, so that work outside of training is not refused.
_MARGIN = 0.02           # and half of the largest saved storage, or as much again
_MARGIN_OBSERVED = 0.03  # and the largest saved storage, or 0.05: packing needs it while everything moves
_MARGIN_OF_SHARES = 0.08
_MARGIN_OF_PIECES = 16 << 20  # parts of pages that are idle, or a sixth of a small budget


class _Decided:
    """What the last plans have in common. resident: bytes of state that stay, of `state`. load: of the largest step."""

    __slots__ = ("load", "resident", "state")

    def __init__(self, resident: int, state: int, load: int) -> None:
        self.resident = resident
        self.state = state
        self.load = load


class _Step:
    """What plans are made from. rest: the highest load outside of passes. parameters: bytes of the optimizers'. state:
    bytes that may move. measured: the loads are."""

    __slots__ = ("kinds", "measured", "parameters", "passes", "rest", "state")

    def __init__(self, kinds: "list[Kind]", passes: "list[Kind]", rest: int, parameters: int, state: int,
                 measured: bool) -> None:
        self.kinds = kinds
        self.passes = passes
        self.rest = rest
        self.parameters = parameters
        self.state = state
        self.measured = measured


class Planning:
    """device: the type of the device that has the budget. host: copies there. algorithm: of planners.ALGORITHMS.
    state_ahead: optimizer state may move while a pass runs.

    budget: bytes; of a share: known with the first plan. predicted: the highest load by the plans. floor: with
    everything moved."""

    def __init__(self, amount: Amount, device: str, pager: Pager, times: StepTime, host: Any, algorithm: str,
                 state_ahead: bool) -> None:
        self._amount = amount
        self._of_saved = amount.activations
        self._gpu = device == "cuda" and not amount.activations
        self._pager = pager
        self._times = times
        self._host = host
        self.algorithm = algorithm
        self.state_ahead = state_ahead
        self._step: Optional[_Step] = None
        self._corrections = 0
        self._decided: Optional[_Decided] = None
        self.budget = amount.bytes or 0
        self.predicted = 0
        self.floor = 0

    def plan(self, kinds: "list[Kind]", passes: "list[Kind]", rest: int, parameters: int, state: int,
             measured: bool) -> None:
        """kinds: to be planned for. passes: those of the observed step, in their order. The others: as
        _Step has them."""
        self._step = _Step(kinds, passes, rest, parameters, state, measured)
        self._plan(self._step)

    def correct(self, kind: Kind, durations: "list[float]") -> bool:
        """The kind's pass by its plan has taken so long, position by position. Makes plans again where the observed
        one was far off: an allocator without a plan waits for the driver. True: it did."""
        step, old = self._step, kind.sight.timeline
        if step is None or kind not in step.kinds or len(durations) != len(old.durations) or not old.rates.overlaps:
            return False
        best = [min(pair) for pair in zip(durations, old.durations)]
        if sum(best) > (1 - _WRONG) * old.total or self._corrections == _CORRECTIONS:
            return False
        self._corrections += 1
        kind.sight.timeline = Timeline(best, old.rates, old.hook)
        self._decided = None
        self._plan(step)
        return True

    def to_save(self) -> "Optional[dict[str, Any]]":
        """The plans as JSON has them, for a later run's restore(). None: there is none."""
        step, pager = self._step, self._pager
        if step is None:
            return None
        return {"kinds": [saved_plan.of_kind(kind) for kind in step.kinds],
                "passes": [step.kinds.index(kind) for kind in step.passes if kind in step.kinds],
                "step": [step.rest, step.parameters, step.state, step.measured],
                "optimizers": [pager.resident, pager.after, pager.room, pager.together],
                "memory": [self.budget, self.predicted, self.floor], "times": self._times.to_save()}

    def restore(self, torch: Any, found: "dict[str, Any]", parameters: int, state: int) -> "list[Kind]":
        """Returns the kinds of an earlier run, whose plans are in force from now on. parameters, state: bytes, as
        plan() has them. Raises Error for another step, and KeyError, TypeError, ValueError or AttributeError for what
        is no plan. Nothing has changed then."""
        kinds = [saved_plan.kind_of(torch, kind) for kind in found["kinds"]]
        rest, of_parameters, of_state, measured = found["step"]
        if (of_parameters, of_state) != (parameters, state):
            raise Error("it is for other parameters, or for another optimizer")
        budget, predicted, floor = map(int, found["memory"])
        resident, *others = found["optimizers"]
        resident = None if resident is None else int(resident)
        after, room, together = map(int, others)
        step = _Step(kinds, [kinds[index] for index in found["passes"]], int(rest), parameters, state, bool(measured))
        self._times.restore(found["times"])
        self._step, self.budget, self.predicted, self.floor = step, budget, predicted, floor
        self._decided = None
        self._pager.resident, self._pager.after, self._pager.room = resident, after, room
        self._pager.together = together
        return kinds

    def _plan(self, step: _Step) -> None:
        kinds, rest, state = step.kinds, step.rest, step.state
        plain = max(kind.sight.plain(self._of_saved) for kind in kinds)
        self.budget = self._amount.of(plain if self._of_saved else max(plain, rest) + state)
        room = self.budget - (self._margin(kinds) if self._gpu else 0)
        # Where the observed step has no margin, whatever else is on the device may be in packing's way.
        highest = max(rest, *(max(kind.sight.base, default=0) for kind in kinds))
        tight = self._gpu and highest > self.budget - self._margin(kinds, observed=True)
        spare = room - rest if step.measured and self.state_ahead else 0
        if tight:
            resident, plans = 0, [everything_moved(kind.sight) for kind in kinds]
        else:
            resident, plans = self._plans(step, room, spare)
        for kind, plan in zip(kinds, plans):
            kind.plan, kind.planned = plan, kind.sight
        self.predicted = max([plan.predicted for plan in plans] + [rest]) + resident
        self.floor = max(plan.floor for plan in plans)
        if not self._of_saved:
            self._pager.resident = None if resident >= state and not tight else resident
        self._pager.after = min(plan.state.stays[0] if plan.state is not None else 0 for plan in plans)
        # A few slices keep both ways of the link busy.
        self._pager.room = 0 if tight else max(self._pager.after, min(spare - resident, _SLICES * state // _SHARES))
        self._pager.together = (0 if tight or not self._gpu else
                                max(0, room - rest - resident - self._pager.room) // _UPDATE)
        self._predict(step, room)

    def _plans(self, step: _Step, room: int, spare: int) -> "tuple[int, list[Plan]]":
        """Bytes of state that stay, and the kinds' plans. If the state that stays by the last plans leaves room for all
        kinds, it stays, and only kinds that were not seen before, or seen again, get plans."""
        kinds, decided = step.kinds, self._decided
        loads = {id(kind): kind.sight.plain(self._of_saved) for kind in kinds}
        closely = sorted(kinds, key=lambda kind: -loads[id(kind)])[:_CLOSELY]
        load = max(loads.values())

        def planned(resident: int, again: bool) -> "list[Plan]":
            moving = self._moving(step.state, resident, spare)
            return [kind.plan if not again and kind.planned is kind.sight
                    else self._plan_of(kind, room - resident, moving, kind not in closely) for kind in kinds]

        if decided is not None and decided.state == step.state and load <= _LARGER * decided.load:
            plans = planned(decided.resident, False)
            if max([plan.predicted for plan in plans] + [step.rest]) + decided.resident <= room:
                return decided.resident, plans
        resident = self._resident(step, closely, room, spare)
        self._decided = _Decided(resident, step.state, load)
        return resident, planned(resident, True)

    def _plan_of(self, kind: Kind, room: int, moving: Moving, quick: bool) -> Plan:
        plan: Plan
        if self.algorithm == planners.SEARCH:
            plan = choose(kind.sight, room, self._of_saved, quick, moving)
        else:
            treatments = planners.treatments(self.algorithm, kind, room, self._of_saved)
            plan = with_treatments(kind.sight, room, self._of_saved, treatments, moving)
        return plan

    def _moving(self, state: int, resident: int, spare: int) -> Moving:
        """spare: bytes that are free while optimizers step, without any state."""
        moved = state - resident
        return Moving(moved, spare - resident, self._times.paging(moved / state if state > 0 else 0.0))

    def _resident(self, step: _Step, kinds: "list[Kind]", room: int, spare: int) -> int:
        """Bytes of the optimizers' state that stay on the device, for the least time of these kinds."""
        state = step.state
        known: dict[int, tuple[int, float, int]] = {}
        floor = max([step.rest] + [max(kind.sight.base, default=0) for kind in step.kinds])

        def cost(share: int) -> "tuple[int, float, int]":
            resident = self._pager.fitting(state * share // _PARTS)
            if resident not in known and floor + resident > room:
                known[resident] = (floor + resident - room, 0.0, 0)
            elif resident not in known:
                moving = self._moving(state, resident, spare)
                plans = [choose(kind.sight, room - resident, self._of_saved, True, moving) for kind in kinds]
                peak = max([plan.predicted for plan in plans] + [step.rest]) + resident
                seconds = (sum(plan.seconds for plan in plans) + max(plan.exposed for plan in plans)
                           + _DOUBT * self._times.paging((state - resident) / state))
                known[resident] = (max(0, peak - room), seconds, sum(plan.moved for plan in plans) + state - resident)
            return known[resident]

        best = 0
        for stride in (16, 8, 4, 2, 1) if state > 0 else ():
            around = range(0, _PARTS + 1, stride) if stride == 16 else (best - stride, best + stride)
            best = min((share for share in (*around, best) if 0 <= share <= _PARTS),
                       key=lambda share: (cost(share), -share))
        return self._pager.fitting(state * best // _PARTS)

    def _predict(self, step: _Step, room: int) -> None:
        state = step.state
        kinds = [kind for kind in step.passes if kind.plan is not None]
        sights = [kind.sight for kind in kinds]
        # Of some shares of the state that move the best. State that stays is there where the load with everything moved
        # is highest.
        floor, *around = _highest(sights)
        least = min(self._times.with_moves(sum(sight.least_seconds(room - state * share // _SHARES, self._of_saved)
                                               - sight.timeline.total for sight in sights),
                                           max(0.0, 1 - (share + 1) / _SHARES), state, self._host.rates(), *around)
                    for share in (range(_SHARES + 1) if state > 0 else (_SHARES,))
                    if share == 0 or state == 0 or floor + state * share // _SHARES <= room)
        self._times.predict([(kind.sight.timeline.total, kind.plan.seconds) for kind in kinds],
                            max((kind.plan.exposed for kind in kinds), default=0.0), least)

    def _margin(self, kinds: "list[Kind]", observed: bool = False) -> int:
        """observed: of a step with everything moved."""
        largest = max((use.bytes for kind in kinds for use in kind.sight.uses), default=0)
        part = int(self.budget * _MARGIN)
        of_pass = (int(self.budget * _MARGIN_OBSERVED) + min(largest, self.budget // 20) if observed else
                   part + min(largest // 2, part))
        return max(of_pass, min(_MARGIN_OF_PIECES, self.budget // 6),
                   int(self.budget * _MARGIN_OF_SHARES) if self._amount.bytes is None else 0)


def _highest(sights: "list[Sight]") -> "tuple[int, float, float]":
    """Bytes where the load with everything moved is highest, and the passes' seconds before that position and after
    it."""
    floor, before, after = 0, 0.0, 0.0
    past = 0.0
    total = sum(sight.timeline.total for sight in sights)
    for sight in sights:
        highest = max(sight.base, default=0)
        if highest > floor:
            place = sight.base.index(highest)
            floor, before = highest, past + sum(sight.timeline.durations[:place])
            after = total - before - sum(sight.timeline.durations[place:place + 1])
        past += sight.timeline.total
    return floor, before, after
