"""What is computed again: recipes of this pass, never of an earlier one, in which a number may have been another.

A recipe's sources are there in backward anyway: parameters and buffers, what the program brought, and saves of the pass
that are kept or moved. If one of them is about to change, the recipe is run before.
"""

import weakref
from collections.abc import Callable
from typing import Any, Optional

from .._saved_tensors import version_of
from .content import Absent, Away, Kept
from .host import Arrival
from .passes import Pass, Saved
from .tensors import key_of


class Recorder:
    """One thread's tape, and what of it is needed. computed: bytes that were computed again."""

    def __init__(self, torch: Any, module: Any) -> None:
        self.torch = torch
        self.module = module
        self.computed = 0
        self.failed: Optional[str] = None
        self._tape: Any = None
        self._saves: dict[int, Any] = {}  # by value: a weak reference to what autograd keeps of a save
        self._live: weakref.WeakSet[Again] = weakref.WeakSet()
        module.on_write(self._before_write)

    def start(self) -> None:
        """Records this thread's operators, with a new tape."""
        self._tape = self.module.Tape()
        self._saves = {}
        self.module.record(self._tape)

    def stop(self) -> None:
        self.module.record(None)
        self._tape = None
        self.run_all()

    def clear(self) -> None:
        """No graph holds a save: the tape begins anew with the next operator. From any thread."""
        if self._tape is not None:
            self._saves = {}
            self._tape.clear()

    def note(self, tensor: Any, packed: Any) -> None:
        """A save that is kept or moved: recipes may begin with it."""
        if self._tape is not None:
            value = self._tape.find(tensor)
            if value >= 0:
                self._saves[value] = weakref.ref(packed)

    def recipe(self, tensor: Any, lasts: "Callable[[Any], bool]") -> "Optional[Recipe]":
        """None: it cannot be computed again from what is there. lasts(storage): the program keeps it over steps."""
        tape = self._tape
        if tape is None:
            return None
        value = tape.find(tensor)
        if value < 0 or value in self._saves:
            return None
        have = {number for number, packed in self._saves.items() if packed() is not None}
        found = tape.recipe(value, have)
        if found is None:
            return None
        calls, read, bytes_made = found
        sources: dict[int, Any] = {}
        brought = 0
        for number, version in read:
            packed = self._saves[number]() if number in have else None
            if packed is None:
                packed = tape.tensor(number, version)
                if packed is None or packed.is_inference() or not packed.untyped_storage().data_ptr():
                    return None
                if not (packed.is_leaf and packed.requires_grad) and not lasts(packed.untyped_storage()):
                    brought += packed.untyped_storage().nbytes()
            sources[number] = packed
        if 2 * brought > tensor.untyped_storage().nbytes():
            return None  # it would hold more than it lets go of
        return Recipe(tape, value, calls, sources, bytes_made)

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
    """sources: by value, a tensor, or what autograd keeps of a save. bytes: of all results of its calls."""

    __slots__ = ("bytes", "calls", "sources", "tape", "value")

    def __init__(self, tape: Any, value: int, calls: "list[int]", sources: "dict[int, Any]", size: int) -> None:
        self.tape = tape
        self.value = value
        self.calls = calls
        self.sources = sources
        self.bytes = size

    def saves(self, passing: Pass) -> "list[int]":
        """The numbers of the pass's saves that it begins with."""
        return [source.tracked.number for source in self.sources.values()
                if isinstance(source, (Kept, Away)) and source.tracked.passing is passing]


class Again(Absent):
    """A storage that is computed again from its first unpack to its last. watched: addresses of the storages that it
    reads and that may change."""

    def __init__(self, recorder: Recorder, entry: Saved, recipe: Recipe, tensor: Any) -> None:
        super().__init__(recorder.torch, entry)
        self._recorder = recorder
        self._recipe: Optional[Recipe] = recipe
        self._meta = (tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset())
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
        """Runs the recipe now, and keeps the result."""
        if self._recipe is not None and self.saves and self.original() is None:
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
        have = {number: self._source(source) for number, source in recipe.sources.items()}
        tensor = recipe.tape.replay(recipe.calls, have, recipe.value)
        if (tensor.dtype, tensor.size(), tensor.stride(), tensor.storage_offset()) != self._meta or (
                tensor.untyped_storage().nbytes() != self._entry.bytes):
            raise RuntimeError(f"hotpack: {list(tensor.size())} was computed again with another layout; "
                               "HOTPACK_RECOMPUTE=0 moves saved tensors instead")
        self._recorder.computed += self._entry.bytes
        return Arrival(tensor.untyped_storage())

    @staticmethod
    def _source(source: Any) -> Any:
        return source.tensor if isinstance(source, Kept) else source.view() if isinstance(source, Away) else source

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
