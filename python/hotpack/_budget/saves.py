"""The saved-tensor hooks: each save is kept or moved, by the plan of its pass."""

import functools
import weakref
from collections.abc import Callable
from typing import Any, Optional

from torch.multiprocessing.reductions import StorageWeakRef

from .._simulate import simulated
from .again import Again, Checks, Recipe, Recorder
from .clock import Clock
from .content import Absent, Away, Kept, Moved, Plain, Tracked
from .paging import Pager
from .passes import AGAIN, KEEP, MOVE, Item, Kinds, Pass, Saved
from .tensors import Tensors, key_of, operator_of
from .timeline import StateMoves

Chooser = Callable[[Pass, Item, str], str]


class Saves:
    """count() returns the meter's count. learn(done) is called with each pass that backward has run through. clock:
    measures observed passes. recorder: that of this thread's operators. chooser replaces the plans' treatments, for
    tests. Called with the interpreter's lock held, in the threads of forward and backward."""

    def __init__(self, torch: Any, tensors: Tensors, host: Any, pager: Pager, kinds: Kinds, clock: Clock,
                 count: "Callable[[], int]", learn: "Callable[[Pass], None]", chooser: "Optional[Chooser]" = None,
                 recorder: "Optional[Recorder]" = None) -> None:
        self._torch = torch
        self._tensors = tensors
        self._host = host
        self._pager = pager
        self._kinds = kinds
        self._clock = clock
        self._count = count
        self._learn = learn
        self._chooser = chooser
        self.checks = Checks(torch, chooser is not None or simulated())
        self.recorder = recorder
        self._task = torch._C._current_graph_task_id
        self._passing: Optional[Pass] = None
        self._lasting: dict[int, Any] = {}  # storages that have outlived a pass: by key, a StorageWeakRef
        self.observe = True  # the next pass
        self.measure = False  # saves and unpacks of any pass
        self.place: Optional[Callable[[], Any]] = None  # where the program is; None: not wanted
        self.passes = 0  # of this iteration
        self.last_pass = 0  # the number of the iteration's last pass, before an optimizer steps; 0: not known
        self.resident = 0  # bytes of saved storages where backward began, at most
        self.moved = 0  # bytes that were copied to the host
        self.failed: Optional[str] = None  # why a move failed

    def pack(self, tensor: Any) -> Any:
        common = self._tensors.is_common(tensor)
        storage = self._tensors.storage(tensor) if common and self._task() == -1 else None
        if storage is None:
            return Plain(self._torch, tensor, common)
        passing = self._passing
        if passing is not None and passing.items and not passing.live:
            self.end_pass()
        if self._lasts(storage):
            return Plain(self._torch, tensor, common)
        if not self.measure and not self.observe and (self._passing is None or not self._passing.observed):
            return self._track(tensor, storage)
        return self._timed(lambda: self._track(tensor, storage))

    def unpack(self, packed: Any) -> Any:
        # What is not tracked may be unpacked while a graph is captured.
        if (self._passing is None or not (self.measure or self._passing.observed) or type(packed) is Plain
                or self._task() == -1):
            return packed.unpack()
        return self._timed(packed.unpack)

    def _timed(self, work: "Callable[[], Any]") -> Any:
        begin = self._clock.now()
        result = work()
        if self._passing is not None:
            self._passing.spans.append((self._passing.position, begin, self._clock.now()))
        return result

    def _lasts(self, storage: Any) -> bool:
        weak = self._lasting.get(key_of(storage))
        return weak is not None and not weak.expired()

    def _track(self, tensor: Any, storage: Any) -> Any:
        passing = self._passing
        if passing is None:
            passing = self._passing = Pass(self._kinds.newest(), self.observe, self._count())
            self.passes += 1
            self._pager.drop_ahead()
        made = operator_of(tensor)
        item = Item(made[1] if made is not None else None, tensor.dtype, tuple(tensor.shape), storage.nbytes())
        number = len(passing.items)
        position = passing.advance(self._count())
        self._host.reach(position)
        treatment = passing.follow(item, self._kinds)
        state = self._state_moves(passing)
        if state is not None and position < len(state.stays):
            self._pager.let_stay(state.stays[position], state.room[position])
        else:
            self._pager.let_stay(0)
        entry = self._entry(passing, tensor, storage, position, treatment, item)
        passing.of_item.append(entry.index)
        tracked = Tracked(passing, number, self._idle)
        packed: Any
        if entry.content is not None:
            packed = Away(self._torch, tensor, tracked, entry.content, self._use)
            if entry.unchecked is not None:
                packed.check = functools.partial(self._compare, passing, entry.unchecked)
                entry.unchecked = None
        else:
            packed = Kept(self._torch, tensor, tracked, self._use)
        if self.recorder is not None:
            self.recorder.note(tensor, packed)
        return packed

    def _entry(self, passing: Pass, tensor: Any, storage: Any, position: int, treatment: str, item: Item) -> Saved:
        """The storage's at this version. Another tensor's version counter may count other changes, so it must be the
        tensor, or a view of the tensor, that was saved first."""
        base = tensor._base
        root = base if base is not None else tensor
        key = key_of(storage)
        entry = passing.by_key.get(key)
        if entry is not None and entry.version == tensor._version and entry.root() is root and not (
                entry.content is not None and entry.content.gone):
            return entry
        entry = Saved(len(passing.saved), storage.nbytes(), StorageWeakRef(storage), weakref.ref(root), tensor._version,
                      position)
        if self._chooser is not None:
            treatment = self._chooser(passing, item, treatment)
        recipe = self._recipe(passing, tensor, entry, treatment)
        if treatment == AGAIN and recipe is not None and self.recorder is not None:
            entry.content = Again(self.recorder, entry, recipe)
        elif treatment != KEEP:
            plan = passing.kind.plan if passing.kind is not None else None
            entry.content = self._move(entry, storage, plan.leaves.get(entry.index) if plan is not None else None)
            treatment = MOVE if entry.content is not None else KEEP
        if treatment != MOVE:
            self._host.passed()
        entry.treatment = treatment
        passing.by_key[key] = entry
        passing.saved.append(entry)
        if self.place is not None and passing.observed:
            passing.places.append(self.place())
        passing.pending.append(entry)
        return entry

    def _recipe(self, passing: Pass, tensor: Any, entry: Saved, treatment: str) -> "Optional[Recipe]":
        """How the storage can be computed again. None: it cannot, or that was not compared yet."""
        recorder = self.recorder
        if recorder is None or not (treatment == AGAIN or passing.observed):
            return None
        recipe = recorder.recipe(tensor, self._lasts)
        if recipe is None or recipe.kind in self.checks.wrong:
            return None
        entry.calls = recipe.calls if passing.observed else []
        if self.checks.trusts(recipe):
            entry.sources = sorted({passing.of_item[save] for save in recipe.saves(passing)})
            entry.extra = max(0, recipe.bytes - entry.bytes)
            return recipe
        entry.unchecked = recipe
        return None

    def _compare(self, passing: Pass, recipe: Recipe, storage: Any) -> None:
        if recipe.kind not in self.checks.wrong:
            passing.checked = True
            self.checks.compare(recipe, storage)

    def _move(self, entry: Saved, storage: Any, until: "Optional[int]") -> "Optional[Absent]":
        """None: there is no host memory for it."""
        try:
            moved = Moved(self._torch, self._host, entry, storage, until)
        except RuntimeError as error:
            self.failed = str(error).splitlines()[0]
            return None
        self.moved += entry.bytes
        return moved

    def _idle(self, passing: Pass) -> None:
        """No graph holds a save of this pass."""
        if passing is self._passing and self.recorder is not None:
            self._measure(passing)
            self.recorder.clear()

    def _measure(self, passing: Pass) -> None:
        """What the operators took, before the tape forgets them."""
        for entry in passing.saved:
            if entry.calls and self.recorder is not None:
                entry.seconds, entry.calls = self.recorder.seconds(entry.calls), []

    def _use(self, tracked: Tracked) -> bool:
        """When a save is unpacked. Returns False outside of backward: someone looks at a node's saved tensors."""
        if self._task() == -1:
            return False
        passing = tracked.passing
        if not passing.unpacked:
            self._host.flush()
            self.resident = max(self.resident, passing.resident())
            self._pager.let_stay(0)
        passing.unpack(tracked.number, self._count())
        self._fetch_ahead(passing)
        state = self._state_moves(passing) if self.passes == self.last_pass else None
        if state is not None and passing.position < len(state.comes):
            self._pager.fetch_until(state.comes[passing.position], state.room[passing.position])
        return True

    @staticmethod
    def _state_moves(passing: Pass) -> "Optional[StateMoves]":
        """Those of the plan that the pass follows."""
        plan = passing.kind.plan if passing.kind is not None and not passing.left else None
        return plan.state if plan is not None else None

    def _fetch_ahead(self, passing: Pass) -> None:
        """Begins to bring back what the plan has room for from this position on."""
        plan = passing.kind.plan if passing.kind is not None else None
        if plan is None or not self._host.ahead:
            return
        fetches = plan.fetches
        while passing.ahead < len(fetches) and fetches[passing.ahead][0] <= passing.position:
            index = fetches[passing.ahead][1]
            passing.ahead += 1
            content = passing.saved[index].content if index < len(passing.saved) else None
            if isinstance(content, Moved):
                content.fetch()

    def end_pass(self, forced: bool = True) -> None:
        """Ends the pass if no graph holds a save of it, or if forced."""
        done = self._passing
        if done is None or not forced and done.live:
            return
        self._passing = None
        done.end = self._count()
        self._measure(done)
        self._host.flush()
        self._lasting = {key: weak for key, weak in self._lasting.items() if not weak.expired()}
        for entry in done.saved:
            entry.content = None  # autograd has it, as long as it needs it
            if not entry.weak.expired():
                self._lasting[entry.weak.cdata] = entry.weak
        if done.live and self.recorder is not None:
            self.recorder.start()  # another tape: that one has recipes
        if done.unpacked:
            self._learn(done)
