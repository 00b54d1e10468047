"""Passes: the saves from the first one to the moment when no graph holds any; and kinds of passes, which have plans.

A pass is a forward and backward pass, of which an iteration may have several (accumulation, several optimizers). Its
saves are numbered. It follows the plan of a kind as long as each save has the number, operator, type and shape of the
kind's, or is smaller. What no kind has is moved, which needs the least memory.
"""

from typing import Any, Optional

KEEP, MOVE, AGAIN = "keep", "move", "again"


class Item:
    """What a save is known by. name: of the operator that made the tensor. bytes: of its storage."""

    __slots__ = ("bytes", "dtype", "name", "shape")

    def __init__(self, name: "Optional[str]", dtype: Any, shape: "tuple[int, ...]", size: int) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.bytes = size

    def covers(self, other: "Item") -> bool:
        """True if a plan that has this save serves `other` too: the same, or smaller."""
        return (self.name == other.name and self.dtype == other.dtype and len(self.shape) == len(other.shape)
                and self.bytes >= other.bytes)


class Saved:
    """A storage that a pass saves, at one version. Positions count the pass's saves and unpacks.

        born: first save      dropped: the program has let go      back: first unpack      last: last unpack
        ended: a graph let go of it without an unpack
    """

    __slots__ = ("back", "born", "bytes", "calls", "content", "dropped", "ended", "extra", "index", "last", "root",
                 "seconds", "sources", "treatment", "unchecked", "version", "weak")

    def __init__(self, index: int, size: int, weak: Any, root: Any, version: "Optional[int]", born: int) -> None:
        self.index = index
        self.bytes = size
        self.weak = weak  # StorageWeakRef
        self.root = root  # weak reference to the tensor whose views share a version counter
        self.version = version
        self.treatment = KEEP
        self.content: Any = None  # of what is not kept (content.py)
        self.sources: Optional[list[int]] = None  # storages that it can be computed from; None: it cannot
        self.extra = 0  # bytes of other results on the way
        self.calls: list[int] = []  # of the recorder's tape, that compute it
        self.seconds = 0.0  # of these calls
        self.unchecked: Any = None  # a recipe that was never compared
        self.born = born
        self.dropped: Optional[int] = None
        self.back: Optional[int] = None
        self.last: Optional[int] = None
        self.ended: Optional[int] = None


class Pass:
    """kind: whose plan is followed; None: none. observed: everything is moved, to see what the step takes so. begin,
    until, end: the meter's count at the start, each position and the end. spans: (position after it, begin, end) of
    each save and unpack, moments of a clock."""

    def __init__(self, kind: "Optional[Kind]", observed: bool, begin: int) -> None:
        self.kind = None if observed else kind
        self.observed = observed
        self.begin = self.end = begin
        self.follows = not observed
        self.left = False  # a save had no plan
        self.checked = False  # recipes were run and compared: it took more memory
        self.items: list[Item] = []
        self.of_item: list[int] = []  # the number of each save's storage
        self.saved: list[Saved] = []
        self.places: list[Any] = []  # of the storages' first saves in the program, if they are wanted
        self.by_key: dict[int, Saved] = {}
        self.live: set[int] = set()  # saves that a graph holds
        self.unpacked: list[int] = []  # saves in the order of their first unpack
        self.in_unpacked: set[int] = set()
        self.position = 0
        self.until: list[int] = []
        self.spans: list[tuple[int, Any, Any]] = []
        self.pending: list[Saved] = []  # not dropped yet
        self.ahead = 0  # of the plan's fetches: the next one

    def advance(self, count: int) -> int:
        """Ends a position. Returns the new one."""
        self.position += 1
        if self.observed:
            self.until.append(count)
            self.pending = [saved for saved in self.pending if not self._gone(saved)]
        return self.position

    def _gone(self, saved: Saved) -> bool:
        if saved.weak.expired():
            saved.dropped = self.position
            return True
        return False

    def within(self, count: int) -> bool:
        """True if its counts are those of one recording with so many loads."""
        counts = [self.begin, *self.until, self.end]
        return counts == sorted(counts) and self.end < count

    def durations(self, clock: Any) -> "list[float]":
        """Seconds at each position, from one save or unpack to the next. Waits for a GPU."""
        found = [0.0] * (self.position + 1)
        for (position, _, end), (_, begin, _) in zip(self.spans, self.spans[1:]):
            found[position] += max(0.0, clock.between(end, begin))
        return found

    def resident(self) -> int:
        """Bytes of saved storages that are on the device now."""
        return sum(saved.bytes for saved in self.saved if not saved.weak.expired())

    def unpack(self, number: int, count: int) -> None:
        """A graph's node gets save `number`, not for the first time perhaps."""
        if number in self.in_unpacked:
            return
        self.in_unpacked.add(number)
        self.unpacked.append(number)
        position = self.advance(count)
        saved = self.saved[self.of_item[number]]
        saved.last = position
        if saved.back is None:
            saved.back = position

    def forget(self, number: int) -> None:
        """No graph holds save `number` any more."""
        self.live.discard(number)
        if self.observed and number not in self.in_unpacked:
            self.saved[self.of_item[number]].ended = self.position

    def follow(self, item: Item, kinds: "Kinds") -> str:
        """The treatment of the save that comes next."""
        number = len(self.items)
        self.items.append(item)
        kind = self.kind
        if kind is None or number >= len(kind.items) or not kind.items[number].covers(item):
            kind = self.kind = kinds.find(self.items) if self.follows else None
        if kind is None or kind.plan is None:
            self.left = True
            return MOVE
        return str(kind.plan.treatments[kind.of_item[number]])


class Kind:
    """plan: None until it has been observed for long enough."""

    def __init__(self, items: "list[Item]", of_item: "list[int]") -> None:
        self.items = items
        self.of_item = of_item
        self.sight: Any = None  # policy.Sight
        self.plan: Any = None  # policy.Plan
        self.planned: Any = None  # the sight that the plan was made from
        self.passes = 0  # observed
        self.seconds: list[float] = []  # by storage, to compute it again, when operators were measured last
        self.places: list[str] = []  # by storage, if they are wanted
        self.saved = False  # its plan is an earlier run's, and was not followed yet

    def begins_with(self, items: "list[Item]") -> bool:
        return len(items) <= len(self.items) and all(mine.covers(other) for mine, other in zip(self.items, items))


class Kinds:
    """The last one used comes first."""

    _MOST = 32

    def __init__(self) -> None:
        self.all: list[Kind] = []

    def newest(self) -> "Optional[Kind]":
        return self.all[0] if self.all else None

    def find(self, items: "list[Item]") -> "Optional[Kind]":
        """One that serves a pass which begins with these saves."""
        return next((kind for kind in self.all if kind.begins_with(items)), None)

    def planned(self, done: Pass) -> "Optional[Kind]":
        """The kind whose plan serves such passes: of exactly these saves, or larger ones."""
        same = self.same(done)
        serving = [kind for kind in self.all if kind.plan is not None and kind.begins_with(done.items)]
        return same if same in serving else next(iter(serving), None)

    def use(self, kind: Kind) -> None:
        if kind in self.all:
            self.all.remove(kind)
        self.all.insert(0, kind)
        del self.all[self._MOST:]

    def seconds_like(self, kind: Kind, done: Pass) -> "list[float]":
        """Estimates for the pass's storages, from a kind with the same saves of other sizes. Empty: there is none."""
        for other in self.all:
            if other is not kind and len(other.seconds) == len(done.saved) and other.of_item == done.of_item:
                sizes: list[int] = [0] * len(done.saved)
                for item, index in zip(other.items, other.of_item):
                    sizes[index] = item.bytes
                return [seconds * entry.bytes / max(1, size)
                        for seconds, entry, size in zip(other.seconds, done.saved, sizes)]
        return []

    def same(self, done: Pass) -> "Optional[Kind]":
        """The kind of exactly these saves."""
        for kind in self.all:
            if len(kind.items) == len(done.items) and kind.of_item == done.of_item and all(
                    mine.shape == other.shape and mine.covers(other) and mine.bytes == other.bytes
                    for mine, other in zip(kind.items, done.items)):
                return kind
        return None
