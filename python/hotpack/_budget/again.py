"""What is computed again: recipes of this pass, never of an earlier one, in which a number may have been another.

A recipe's sources are there in backward anyway: parameters and buffers, what the program brought, and saves of the pass
that are kept or moved. If one of them is about to change, the recipe is run before.
"""

import os
import weakref
from collections.abc import Callable
from typing import Any, Optional

from .._saved_tensors import version_of
from .content import Absent, Away, Kept
from .host import Arrival, whole_of
from .passes import Pass, Saved
from .policy import LONGEST_CHAIN
from .tensors import key_of


class Recorder:
    """One thread's tape, and what of it is needed. computed: bytes that were computed again."""

    def __init__(self, torch: Any, module: Any) -> None:
        self.torch = torch
        self.module = module
        self.computed = 0
        self._tape: Any = None
        self._saves: dict[int, Any] = {}  # by value: a weak reference to what autograd keeps of a save
        self._timed = False
        self._live: weakref.WeakSet[Again] = weakref.WeakSet()
        module.on_write(self._before_write)
        os.register_at_fork(after_in_child=lambda: module.record(None))  # a worker that loads data trains nothing

    def start(self) -> None:
        """Records this thread's operators, with a new tape."""
        self._tape = self.module.Tape()
        self._tape.time(self._timed)
        self._saves = {}
        self.module.record(self._tape)

    def time(self, timed: bool) -> None:
        """Operators are measured from now on, or not."""
        self._timed = timed
        if self._tape is not None:
            self._tape.time(timed)

    def seconds(self, calls: "list[int]") -> float:
        """What they took in the forward pass. Waits for a GPU. Before clear()."""
        return float(self._tape.seconds(calls)) if self._tape is not None and self._timed else 0.0

    def take_own_seconds(self) -> float:
        """The host's time for recording, since the last call."""
        return float(self._tape.own_seconds()) if self._tape is not None else 0.0

    def stop(self) -> None:
        self.module.record(None)
        self._tape = None
        self.run_all()

    def clear(self) -> None:
        """Empties the tape before the next operator. Call it when no graph holds a save. Thread-safe."""
        if self._tape is not None:
            self._saves = {}
            self._tape.clear()

    def note(self, tensor: Any, packed: Any) -> None:
        """A save: recipes may begin with it."""
        if self._tape is not None:
            value = self._tape.find(tensor)
            if value >= 0:
                self._saves[value] = weakref.ref(packed)
                self._tape.have(value)

    def recipe(self, tensor: Any, lasts: "Callable[[Any], bool]") -> "Optional[Recipe]":
        """None: it cannot be computed again from what is there. lasts(storage): the program keeps it over steps."""
        tape = self._tape
        if tape is None:
            return None
        value = tape.find(tensor)
        if value < 0 or value in self._saves:
            return None
        found = tape.recipe(value)
        if found is not None and any(number in self._saves and self._saves[number]() is None for number, _ in found[1]):
            for number in [number for number, packed in self._saves.items() if packed() is None]:
                del self._saves[number]
                tape.have_not(number)
            found = tape.recipe(value)
        if found is None:
            return None
        calls, read, bytes_made = found
        sources: dict[int, Any] = {}
        brought = 0
        for number, version in read:
            packed = self._saves[number]() if number in self._saves else None
            if packed is None:
                packed = tape.tensor(number, version)
                if packed is None or packed.is_inference() or not packed.untyped_storage().data_ptr():
                    return None
                if not (packed.is_leaf and packed.requires_grad) and not lasts(packed.untyped_storage()):
                    brought += packed.untyped_storage().nbytes()
            sources[number] = packed
        if 2 * brought > tensor.untyped_storage().nbytes():
            return None  # it would hold more than it lets go of
        recipe = Recipe(tape, value, calls, sources, bytes_made, tensor)
        return recipe if recipe.depth <= LONGEST_CHAIN else None

    def run_all(self) -> None:
        """Before parameters change: what lives is computed now."""
        for again in list(self._live):
            again.compute()

    def _before_write(self, storage: int) -> None:
        for again in list(self._live):
            if storage in again.watched:
                again.compute()

    def add(self, again: "Again") -> None:
        self._live.add(again)

    def remove(self, again: "Again") -> None:
        self._live.discard(again)


class Recipe:
    """sources: by value, a tensor, or what autograd keeps of a save. bytes: of all results of its calls. kind: what all
    recipes like it have in common. depth: of the chain of results, each computed from the one before. of: the tensor
    that it makes."""

    __slots__ = ("bytes", "calls", "depth", "kind", "layout", "sources", "tape", "value")

    def __init__(self, tape: Any, value: int, calls: "list[int]", sources: "dict[int, Any]", size: int,
                 of: Any) -> None:
        self.tape = tape
        self.value = value
        self.calls = calls
        self.sources = sources
        self.bytes = size
        self.layout = _layout(of)
        self.kind = (*tape.names(calls), of.dtype, of.dim(), of.numel().bit_length())
        self.depth: int = 1 + max((source.content.depth for source in sources.values()
                              if isinstance(source, Away) and isinstance(source.content, Again)), default=0)

    def saves(self, passing: Pass) -> "list[int]":
        """The numbers of the pass's saves that it begins with."""
        return [source.tracked.number for source in self.sources.values()
                if isinstance(source, (Kept, Away)) and source.tracked.passing is passing]

    def run(self) -> Any:
        """The tensor. Raises RuntimeError if it has another layout."""
        have = {number: source.tensor if isinstance(source, Kept) else source.view() if isinstance(source, Away)
                else source for number, source in self.sources.items()}
        tensor = self.tape.replay(self.calls, have, self.value)
        if _layout(tensor) != self.layout:
            raise RuntimeError(f"hotpack: {list(tensor.size())} was computed again with another layout; "
                               "HOTPACK_RECOMPUTE=0 moves saved tensors instead")
        return tensor


def _layout(tensor: Any) -> "tuple[Any, ...]":
    return (tensor.dtype, tensor.device, tensor.size(), tensor.stride(), tensor.storage_offset(),
            tensor.untyped_storage().nbytes())


class Checks:
    """Which kinds of recipes give the same bits. A program may have filled a tensor by what is no operator, such as a
    kernel of its own, which no recorder sees: so each kind is compared with a copy of what was saved, first. trusting:
    nothing is compared, as on the simulated device, where values mean nothing."""

    def __init__(self, torch: Any, trusting: bool) -> None:
        self._torch = torch
        self._trusting = trusting
        self.right: set[Any] = set()
        self.known: set[str] = set()  # those of an earlier run, as texts
        self.wrong: set[Any] = set()

    def trusts(self, recipe: Recipe) -> bool:
        if self.known and recipe.kind not in self.right and str(recipe.kind) in self.known:
            self.right.add(recipe.kind)
        return self._trusting or recipe.kind in self.right

    def compare(self, recipe: Recipe, storage: Any) -> bool:
        """storage: the copy. Remembers the answer."""
        torch = self._torch
        try:
            made = recipe.run().untyped_storage()
            same = bool(torch.equal(whole_of(torch, made), whole_of(torch, storage)))
        except torch.OutOfMemoryError:  # nothing is known
            return False
        except RuntimeError:
            same = False
        (self.right if same and recipe.kind not in self.wrong else self.wrong).add(recipe.kind)
        if not same:
            self.right.discard(recipe.kind)
        return same


class Again(Absent):
    """A storage that is computed again from its first unpack to its last. watched: addresses of the storages that it
    reads and that may change."""

    def __init__(self, recorder: Recorder, entry: Saved, recipe: Recipe) -> None:
        super().__init__(recorder.torch, entry)
        self._recorder = recorder
        self._recipe: Optional[Recipe] = recipe
        self.depth: int = recipe.depth
        self._versions: list[tuple[Any, Any]] = []
        self.watched: set[int] = set()
        for number, source in recipe.sources.items():
            if isinstance(source, Kept):
                self._watch(source.tensor)
            elif not isinstance(source, Away):  # which is a copy, or computed before its own sources change
                held = recipe.sources[number] = source if source.is_leaf else source.detach()
                self._watch(held)
        recorder.add(self)

    def _watch(self, tensor: Any) -> None:
        key = key_of(tensor.untyped_storage())
        self._versions.append((tensor, version_of(tensor)))
        if key not in self.watched:
            self.watched.add(key)
            self._recorder.module.watch(key)

    def compute(self) -> None:
        """Runs the recipe now, and keeps the result; or the storage itself, where the program still has it."""
        if self._recipe is None or not self.saves:
            return
        original = self.original()
        if original is not None:
            self._arrival = Arrival(original)
        elif self._arrival is None:
            self._arrival = self._bring()
        self._release()

    def _bring(self) -> Arrival:
        recipe = self._recipe
        if recipe is None:  # it was computed because of a change, and let go since
            raise RuntimeError("hotpack: a saved tensor is gone whose sources have changed")
        for tensor, version in self._versions:
            if version_of(tensor) != version:
                raise RuntimeError("hotpack: a tensor that a saved one is computed from has changed in place without "
                                   "an operator of PyTorch; HOTPACK_RECOMPUTE=0 moves saved tensors instead")
        tensor = recipe.run()
        self._recorder.computed += self._entry.bytes
        return Arrival(tensor.untyped_storage())

    def _release(self) -> None:
        """Its sources are not needed any more."""
        for key in self.watched:
            self._recorder.module.unwatch(key)
        self.watched = set()
        self._versions = []
        self._recipe = None

    def _returns(self) -> bool:
        return self._recipe is not None

    def _drop(self) -> None:
        self._release()
        self._recorder.remove(self)
