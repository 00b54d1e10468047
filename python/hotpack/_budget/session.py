"""A budget in force: the first steps are observed with everything moved, then plans are made and followed."""

import gc
import os
import sys
from typing import Any, Optional

from .. import _marks, _sections
from .._errors import Error
from .._saved_tensors import DefaultHooks
from .._simulate import simulated
from .._steps import Steps
from . import recorder
from .account import Heaviest, Places
from .again import Recorder
from .amount import Amount, size_text
from .clock import Clock
from .host import host_for
from .meter import Meter, by_position
from .optimizers import Slices
from .paging import Pager
from .passes import Kind, Kinds, Pass
from .policy import choose, everything_moved, sight_of
from .saves import Chooser, Saves
from .step_time import StepTime
from .tensors import Tensors

_PENDING = 64            # a plan is made from so many passes of an iteration, the last ones
_OBSERVED = 2            # steps of a GPU after the first: one for operators, one for the program's time
_UNSEEN = 8              # passes that are observed after one that no plan was for
_SHARES = 16             # parts of the optimizers' state: some stay on the device
# Of a GPU's budget: what packing and the driver's pages take beyond what is live. A budget in bytes is hotpack's limit
# too, which keeps that small. A share is none, so that work outside of training is not refused.
_MARGIN = 0.03           # and the largest saved storage, or 0.05
_MARGIN_OF_SHARES = 0.08
_MARGIN_OF_PIECES = 16 << 20  # parts of pages that are idle, or a sixth of a small budget


class Session:
    """device: the type of the device that has the budget. recompute: the recorder of operators is wanted.
    chooser, slice_bytes: for tests."""

    def __init__(self, torch: Any, amount: Amount, device: str, chooser: "Optional[Chooser]" = None,
                 slice_bytes: int = 0, recompute: bool = False) -> None:
        self._torch = torch
        self.amount = amount
        self._device = device
        self._kinds = Kinds()
        self._meter = Meter(torch)
        self._host = host_for(torch, device)
        clock = Clock(torch, device)
        # Without virtual time the simulated device takes none.
        self.times = StepTime(clock, not simulated() or bool(os.environ.get("SIMGPU_TIME")), self._host.ahead)
        self._pager = Pager(torch, device)
        self._slices = Slices(torch, self._pager, slice_bytes, self.say, clock)
        self._recompute = recompute  # the recorder is to be loaded
        self.saves = Saves(torch, Tensors(torch, device), self._host, self._kinds, clock, self._meter.count,
                           self._learn, chooser)
        self._hooks = DefaultHooks(torch, self.saves.pack, self.saves.unpack)
        self._listeners: list[Any] = []
        self._steps = Steps()
        self._pending: list[Pass] = []  # observed in this iteration
        self._unseen = 0
        self._operators_timed = False
        self._spans: list[tuple[Any, Any]] = []  # of this iteration's saves and unpacks, where they are measured
        self.iterations = 0
        self.budget = amount.bytes or 0  # bytes; of a share: known with the first plan
        self.predicted = 0
        self._too_small = False
        self._told_of_host = False
        self.observed_moves = 0  # bytes that were copied to the host before the first plan
        self._heaviest = Heaviest(amount.activations)
        self._places = Places(torch) if _sections.report_wanted() else None
        if self._places is not None:
            self.saves.place = self._places.here

    def start(self) -> None:
        """Raises Error if the program's own saved-tensor hooks are on."""
        if not self._hooks.start():
            raise Error("a budget needs saved-tensor hooks, and the program's own are on: ask for it before them")
        if self.amount.activations:
            self._pager.resident = None
            self._slices.on = False
        self._slices.install()
        from torch.optim.optimizer import register_optimizer_step_post_hook

        self._listeners = [register_optimizer_step_post_hook(self._after_update), _marks.on_step(self._iteration_ended)]

    def stop(self) -> None:
        """Everything stays on the device from now on. What is away comes back when it is needed."""
        self._hooks.stop()
        self._slices.uninstall()
        for listener in self._listeners:
            listener.remove()
        self._listeners = []
        self._meter.stop()
        if self._places is not None:
            self._places.stop()
        if self.saves.recorder is not None:
            self.saves.recorder.stop()

    def _record(self) -> None:
        """Between steps: within an operator a tape would begin with the calls that its kernel makes."""
        self._recompute = False
        try:
            self.saves.recorder = Recorder(self._torch, recorder.load(self._torch))
            self.saves.recorder.start()
        except Error as error:
            self.say(f"saved tensors are moved, and none is computed again: {error}")

    @property
    def moved(self) -> int:
        """Bytes copied to the host so far."""
        return self.saves.moved + self._pager.moved

    @property
    def computed(self) -> int:
        """Bytes computed again so far."""
        return self.saves.recorder.computed if self.saves.recorder is not None else 0

    def say(self, line: str) -> None:
        print(f"hotpack: {line}", file=sys.stderr, flush=True)

    def _after_update(self, optimizer: Any, _arguments: object, _keywords: object) -> None:
        self._hooks.push()  # for a program that trains in another thread than it started in
        if not _marks.marked_by_hand() and (self._steps.ends_iteration(optimizer) or self.iterations == 0):
            self._iteration_ended()

    def _learn(self, done: Pass) -> None:
        self._spans += [(begin, end) for _, begin, end in done.spans]
        if done.observed:
            self._pending = [*self._pending[-_PENDING:], done]
        else:
            if done.kind is not None:
                self._kinds.use(done.kind)
            if done.left:
                self._unseen = _UNSEEN
                self.saves.observe = True
                if self._places is not None:
                    self._places.start()

    def _iteration_ended(self) -> None:
        try:
            self._end_iteration()
        except Exception as error:  # the program itself must go on; without a plan everything is moved
            self.say(f"no plan for this step: {type(error).__name__}: {error}")
            self._pending = []
        self.times.begin()

    def _end_iteration(self) -> None:
        self.saves.end_pass()
        own = self.saves.recorder.take_own_seconds() if self.saves.recorder is not None else 0.0
        spans, self._spans = self._spans, []
        self.times.end(self._pending, spans, self._slices.take_spans(), own, self._operators_timed)
        self._host.end_step()
        if self.saves.failed is not None and not self._told_of_host:
            self._told_of_host = True
            self.say(f"saved tensors stay on the device where the host has no memory for them: {self.saves.failed}")
        loads = self._loads() if self._pending and self.iterations > 0 else None
        for done in self._pending:
            if self.iterations > 0:
                self._see(done, loads)
        if self._pending and self.iterations > 0:
            self._plan(loads)
            self._note_step(loads)
        self._pending = []
        self.iterations += 1
        if self._recompute:
            self._record()
        if self.saves.observe:
            self._meter.start()
        else:
            self._meter.stop()
        self.saves.measure = self.times.calibrates()
        self._measure((self.saves.observe or self.saves.measure) and self.times.known)
        if self._places is not None:
            (self._places.start if self.saves.observe else self._places.stop)()
        if _sections.due():
            _sections.write("budget", self.figures())

    def _loads(self) -> "Optional[list[int]]":
        """Of this iteration, without the state that stays on the device."""
        loads = self._meter.loads()
        _, resident = self._state()
        return loads if loads is None or resident == 0 else [max(0, load - resident) for load in loads]

    def _measure(self, on: bool) -> None:
        """In the next iteration."""
        self._host.measure(on)
        self._slices.measure(on)
        # A GPU's events are work of the host's, which may be what the step waits for: so every other step has them.
        every = self.saves.observe and not self._operators_timed or not self._host.ahead
        self._operators_timed = on and every and self.saves.recorder is not None
        if self.saves.recorder is not None:
            self.saves.recorder.time(self._operators_timed)

    def _note_step(self, loads: "Optional[list[int]]") -> None:
        """For the report: what the plans do with the step that was observed."""
        if not _sections.wanted():
            return
        if _sections.report_wanted():
            self._heaviest.note([self._kinds.planned(done) for done in self._pending], self._outside(loads))
        _sections.write("budget", self.figures(), self._heaviest.report(*self._state()))

    def _state(self) -> "tuple[int, int]":
        """Bytes of the optimizers' state that may move, and how many of them stay on the device."""
        state = sum(self._pager.state_bytes.values())
        return state, state if self._pager.resident is None else min(state, self._pager.resident)

    def _see(self, done: Pass, loads: "Optional[list[int]]") -> None:
        highest = None
        if loads is not None:
            if not done.within(len(loads)):
                return  # it began before the recording
            highest = by_position(loads, done.begin, done.until, done.end)
        kind = self._kinds.same(done) or Kind(done.items, done.of_item)
        self._kinds.use(kind)
        if self._operators_timed:
            kind.seconds = [entry.seconds for entry in done.saved]
        for entry, seconds in zip(done.saved, kind.seconds or self._kinds.seconds_like(kind, done)):
            entry.seconds = seconds
        sight = sight_of(done, highest, self._parameter_bytes(), self.times.timeline(done, self._host.rates()))
        if self._operators_timed and self._host.ahead and kind.sight is not None:
            sight.timeline = kind.sight.timeline
        if not done.checked:
            kind.sight = sight if kind.sight is None else kind.sight.merge(sight)
            kind.passes += 1
        if self._places is not None:
            kind.places = self._places.names(done.places)

    def _parameter_bytes(self) -> int:
        """Of weights and gradients, as far as optimizers have them."""
        total = 0
        for optimizer in list(self._slices.known):
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    size = parameter.numel() * parameter.element_size()
                    total += size * (2 if parameter.grad is not None else 1)
        return total

    def _plan(self, loads: "Optional[list[int]]") -> None:
        """Plans for all kinds that were seen as they will be, without checks."""
        kinds = [kind for kind in self._kinds.all if kind.passes > 0]
        self._unseen = max(0, self._unseen - len(self._pending))
        if not kinds or self._host.ahead and self.iterations < _OBSERVED:
            return
        of_saved = self.amount.activations
        state = 0 if of_saved else self._state()[0]
        rest = self._outside(loads)
        plain = max(kind.sight.plain(of_saved) for kind in kinds)
        self.budget = self.amount.of(plain if of_saved else max(plain, rest) + state)
        room = self.budget - (self._margin(kinds) if self._device == "cuda" and not of_saved else 0)
        # Where the observed step has no margin, whatever else is on the device may be in packing's way.
        tight = self._device == "cuda" and not of_saved and max(
            rest, *(max(kind.sight.base, default=0) for kind in kinds)) > room
        if tight:
            resident, plans = 0, [everything_moved(kind.sight) for kind in kinds]
        else:
            resident = self._resident(kinds, room, rest, state)
            plans = [choose(kind.sight, room - resident, of_saved) for kind in kinds]
        self.predicted = max([plan.predicted for plan in plans] + [rest]) + resident
        self.observed_moves = self.observed_moves or self.moved
        for kind, plan in zip(kinds, plans):
            kind.plan = plan
        if not of_saved:
            self._pager.resident = None if resident >= state and not tight else resident
        self._predict(1 - resident / state if state > 0 else 0.0, room, of_saved, state)
        if self.predicted > self.budget and not self._too_small:
            self._too_small = True
            held = 0 if of_saved or loads is None else self._reserved()
            self.say(self._floor_text(max([plan.floor for plan in plans] + [rest, held]), of_saved))
        if all(kind.plan is not None for kind in self._kinds.all):
            self._unseen = 0
        self.saves.observe = self._unseen > 0

    def _resident(self, kinds: "list[Kind]", room: int, rest: int, state: int) -> int:
        """Bytes of the optimizers' state that stay on the device, for the least time."""
        known: dict[int, tuple[int, float, int]] = {}

        def cost(share: int) -> "tuple[int, float, int]":
            if share not in known:
                resident = state * share // _SHARES
                plans = [choose(kind.sight, room - resident, self.amount.activations, quick=True) for kind in kinds]
                peak = max([plan.predicted for plan in plans] + [rest]) + resident
                seconds = sum(plan.seconds for plan in plans) + self.times.paging(1 - share / _SHARES)
                known[share] = (max(0, peak - room), seconds, sum(plan.moved for plan in plans) + state - resident)
            return known[share]

        best = 0
        for step in (_SHARES // 4, 2, 1) if state > 0 else ():
            around = range(0, _SHARES + 1, step) if step > 2 else (best - step, best + step)
            best = min((share for share in (*around, best) if 0 <= share <= _SHARES),
                       key=lambda share: (cost(share), -share))
        return state * best // _SHARES

    def _predict(self, paged: float, room: int, of_saved: bool, state: int) -> None:
        passes, sights = [], []
        for done in self._pending:
            kind = self._kinds.same(done)
            if kind is not None and kind.plan is not None:
                passes.append((kind.sight.timeline.total, kind.plan.seconds))
                sights.append(kind.sight)
        # Moves of state are in the way, so what they take counts in the bound too: of some shares the best.
        # State that stays is there where the load with everything moved is highest.
        floor = max((max(sight.base, default=0) for sight in sights), default=0)
        least = min(sum(sight.least_seconds(room - state * share // _SHARES, of_saved) - sight.timeline.total
                        for sight in sights) + self.times.paging(max(0.0, 1 - (share + 1) / _SHARES))
                    for share in (range(_SHARES + 1) if state > 0 else (_SHARES,))
                    if share == 0 or state == 0 or floor + state * share // _SHARES <= room)
        self.times.predict(passes, paged, least)

    def _reserved(self) -> int:
        """The most bytes that hotpack held so far: with everything moved, and packing's loss."""
        from .._figures import torch_stats

        return int(torch_stats(self._torch.cuda.current_device()).reserved_bytes.peak)

    def _margin(self, kinds: "list[Kind]") -> int:
        largest = max((use.bytes for kind in kinds for use in kind.sight.uses), default=0)
        return max(int(self.budget * _MARGIN) + min(largest, self.budget // 20),
                   min(_MARGIN_OF_PIECES, self.budget // 6),
                   int(self.budget * _MARGIN_OF_SHARES) if self.amount.bytes is None else 0)

    def _outside(self, loads: "Optional[list[int]]") -> int:
        """The highest load outside of the observed passes: that of the optimizers' steps."""
        if loads is None:
            return 0 if self.amount.activations else self._parameter_bytes()
        inside = [(done.begin, done.end) for done in self._pending if done.within(len(loads))]
        edges = [0, *(place for pair in inside for place in pair), len(loads) - 1]
        return max(max(loads[begin:end + 1], default=0) for begin, end in zip(edges[::2], edges[1::2]))

    def _floor_text(self, floor: int, of_saved: bool, more: str = "") -> str:
        if of_saved:
            return (f"the budget of {size_text(self.budget)} is too small: the activations that one operator needs, or "
                    f"that the program holds, take {size_text(floor)}")
        weights = min(self._parameter_bytes() or _parameters_of_program(self._torch, self._device), floor)
        return (f"the budget of {size_text(self.budget)} is too small: with everything moved the step takes {more}"
                f"{size_text(floor)} ({size_text(weights)} of weights and gradients, {size_text(floor - weights)} of "
                "what an operator or the program needs at once)")

    @property
    def predicted_time(self) -> float:
        """Of a step by the plans, over one without a budget; 0: not known."""
        return self.times.predicted

    @property
    def least_time(self) -> float:
        """A lower bound of predicted_time; 0: not known."""
        return self.times.least

    @property
    def measured_time(self) -> float:
        """Of the last steps by the plans, over one without a budget; 0: not known."""
        return self.times.measured

    def figures(self) -> "dict[str, Any]":
        return {"budget": self.budget, "predicted_peak": self.predicted, "moved_bytes": self.moved,
                "recomputed_bytes": self.computed, "saved_peak": self.saves.resident,
                "predicted_time": self.predicted_time, "least_time": self.least_time,
                "measured_time": self.measured_time, "iterations": self.iterations}

    def used(self) -> bool:
        """False of a program that only starts others."""
        return self.iterations > 0 or self._device == "cuda" and bool(self._torch.cuda.is_initialized())

    def summary(self) -> str:
        """The line at the program's end; empty for a process that trained nothing. Where it ends because memory ran out
        before there was a plan: what took it."""
        if not self.predicted and self._device == "cuda" and self._torch.cuda.is_initialized():
            from .._figures import torch_stats

            figures = torch_stats(self._torch.cuda.current_device())
            if figures.num_ooms > 0:
                return (self._floor_text(figures.allocated_bytes[0].peak, False, "more than ")
                        + "; --budget 1% says how much")
        name = self.amount.text if self.amount.bytes is None else size_text(self.budget)
        if self.iterations == 0:
            return ""
        if self.amount.bytes is None:
            name += f" ({size_text(self.budget)})" if self.budget else ""
        predicted = f"predicted {size_text(self.predicted)}" if self.predicted else "no plan yet"
        held = self._held()
        if held:
            predicted += f", held {size_text(held)}"
        times = [f"{time:.2f} {word}" for time, word in ((self.least_time, "at least"),
                                                         (self.predicted_time, "predicted"),
                                                         (self.measured_time, "measured")) if time > 0]
        steps = f"{self.iterations} step{'' if self.iterations == 1 else 's'}"
        line = (f"budget {name}: {predicted}; {'time over plain ' + ', '.join(times) + '; ' if times else ''}"
                f"{size_text(self.moved)} copied to the host and {size_text(self.computed)} computed again in {steps}")
        if not held or self.amount.activations:
            line += f"; saved tensors held at most {size_text(self.saves.resident)} where backward began"
        return line

    def _held(self) -> int:
        """Bytes that hotpack held of the devices at most, as `hotpack run` says; 0: it is no allocator."""
        if self._device != "cuda":
            return 0
        from .._figures import stats

        return int(stats()["reserved_peak"])


def _parameters_of_program(torch: Any, device: str) -> int:
    """Bytes of parameters and their gradients, before an optimizer has named them."""
    found = {}
    for one in gc.get_objects():
        if type(one) is torch.nn.Parameter and one.device.type == device:
            for tensor in (one, one.grad):
                if tensor is not None:
                    found[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
    return sum(found.values())
