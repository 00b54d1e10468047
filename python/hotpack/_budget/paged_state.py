"""An optimizer's state of one parameter, parts of which may be on their way to the host."""

from collections.abc import Iterator
from typing import Any


class PagedState(dict[Any, Any]):
    """Whoever gets a value waits for the copies. events: behind those that have not been waited for. Pickled and copied
    as a plain dict. Methods of dict itself do not wait: dict.items(state)."""

    __slots__ = ("events",)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.events: list[Any] = []

    def settle(self) -> None:
        """The host waits, so that what it has is whole."""
        events, self.events = self.events, []
        for event in events:
            event.synchronize()

    def __getitem__(self, name: Any) -> Any:
        if self.events:
            self.settle()
        return super().__getitem__(name)

    def __iter__(self) -> "Iterator[Any]":  # for dict(state) and {**state}, which else get the values by themselves
        return super().__iter__()

    def __reduce_ex__(self, _protocol: Any) -> Any:
        return dict, (self.copy(),)

    def copy(self) -> "dict[Any, Any]":
        return dict(self.items())

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()


def _settled(name: str) -> Any:
    plain = getattr(dict, name)

    def method(self: PagedState, *arguments: Any) -> Any:
        self.settle()
        return plain(self, *arguments)

    method.__name__ = method.__qualname__ = name
    return method


for _name in ("get", "items", "values", "pop", "popitem", "setdefault", "__eq__", "__ne__", "__repr__"):
    setattr(PagedState, _name, _settled(_name))
