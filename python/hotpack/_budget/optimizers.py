"""Optimizer steps in slices: the state of a slice of parameters comes, is updated and goes again.

    step      slice 1   slice 2   slice 3   ...
    state in     1         2         3            one slice ahead
    state out              1         2            the temporaries of foreach are those of one slice

In the classes named here the update of a parameter reads only its own gradient and state, so the values are those of
the whole step. Hooks run once, and so does a closure.
"""

import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Optional

from .clock import Clock
from .paged_state import PagedState
from .paging import Pager

SLICED = ("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "RAdam", "RMSprop",
          "Rprop", "SGD", "SparseAdam")


class Slices:
    """slice_bytes: of the parameters of a slice; 0: a sixteenth of all. say(line) reports what is stepped whole. known:
    the optimizers that stepped."""

    def __init__(self, torch: Any, pager: Pager, slice_bytes: int, say: "Callable[[str], None]", clock: Clock) -> None:
        self._torch = torch
        self._pager = pager
        self._say = say
        self._clock = clock
        self._measures = False
        self._spans: list[tuple[Any, Any]] = []  # of moves of state, while they are measured
        self._said: set[str] = set()
        self._plain: Any = None  # PyTorch's own functions
        self._own: set[Any] = set()  # step functions that may run on a part of the parameters
        self._slice_bytes = slice_bytes
        self.on = True
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()
        self.calls = 0  # slices

    def install(self) -> None:
        """PyTorch wraps a class's step at its first instance, by Optimizer.profile_hook_step: so does this, inside."""
        optimizer = self._torch.optim.Optimizer
        for name in SLICED:
            found = getattr(self._torch.optim, name, None)
            if found is not None and "step" in vars(found):
                self._own.add(_innermost(found.step))
        plain = optimizer.profile_hook_step
        load = optimizer.load_state_dict
        save = optimizer.state_dict

        def profile_hook_step(function: Any) -> Any:
            return plain(self._sliced(function))

        @functools.wraps(load)
        def load_state_dict(of: Any, *arguments: Any, **keywords: Any) -> Any:
            result = load(of, *arguments, **keywords)  # puts all state on the device
            self._page_out(of)
            return result

        @functools.wraps(save)
        def state_dict(of: Any, *arguments: Any, **keywords: Any) -> Any:
            result = save(of, *arguments, **keywords)
            states = result.get("state")
            for name, state in states.items() if isinstance(states, dict) else ():
                if isinstance(state, PagedState):
                    states[name] = state.copy()
            return result

        self._plain = (plain, load, save)
        optimizer.profile_hook_step = staticmethod(profile_hook_step)
        optimizer.load_state_dict = load_state_dict
        optimizer.state_dict = state_dict
        self._wrap_again()

    def uninstall(self) -> None:
        """Steps are whole from now on, and the state comes back."""
        optimizer = self._torch.optim.Optimizer
        plain, optimizer.load_state_dict, optimizer.state_dict = self._plain
        optimizer.profile_hook_step = staticmethod(plain)
        self._wrap_again()
        self._pager.stop()
        for known in list(self.known):
            self._pager.bring(known, [parameter for group in known.param_groups for parameter in group["params"]])

    def _wrap_again(self) -> None:
        """The classes that have instances already."""
        optimizer = self._torch.optim.Optimizer
        for found in list(_subclasses(optimizer)):
            step = vars(found).get("step")
            if getattr(step, "hooked", False):
                found.step = optimizer.profile_hook_step(_innermost(step))
                found.step.hooked = True

    def _page_out(self, optimizer: Any) -> None:
        if self.on and self._why_whole(optimizer, _innermost(type(optimizer).step)) is None:
            parts = [part for _, part in self._slices(optimizer)]
            self._pager.begin(optimizer, parts)
            for part in parts:
                self._pager.send(optimizer, part)
            self._pager.end(optimizer)

    def _sliced(self, function: Any) -> Any:
        @functools.wraps(function)
        def step(optimizer: Any, *arguments: Any, **keywords: Any) -> Any:
            if not self.on or self._torch.compiler.is_compiling():
                return function(optimizer, *arguments, **keywords)
            self.known.add(optimizer)
            reason = self._why_whole(optimizer, function)
            if reason is not None:
                name = type(optimizer).__name__
                if name not in self._said:
                    self._said.add(name)
                    self._say(f"{name}'s state stays on the device, and its step is not sliced: {reason}")
                return function(optimizer, *arguments, **keywords)
            if self._pager.together >= _parameter_bytes(optimizer) and self._pager.may_step_whole(optimizer):
                return function(optimizer, *arguments, **keywords)
            return self._step(optimizer, function, *arguments, **keywords)

        step._hotpack_sliced = True  # type: ignore[attr-defined]
        return step

    def _step(self, optimizer: Any, function: Any, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with self._torch.enable_grad():
                loss = closure()
        groups = optimizer.param_groups
        whole = [group["params"] for group in groups]
        slices = self._together(optimizer)
        pager = self._pager
        try:
            for group in groups:
                group["params"] = []
            pager.begin(optimizer, [part for _, part in slices])
            for number, (group, part) in enumerate(slices):
                begin = self._moment()
                pager.bring(optimizer, part)
                pager.bring_ahead(optimizer, number + 1)
                self._span(begin)
                group["params"] = part
                function(optimizer)
                group["params"] = []
                self.calls += 1
                begin = self._moment()
                pager.send(optimizer, part)
                self._span(begin)
        finally:
            for group, params in zip(groups, whole):
                group["params"] = params
            begin = self._moment()
            pager.end(optimizer)
            self._span(begin)
        return loss

    def measure(self, on: bool) -> None:
        """Moves of state are measured from now on, or not."""
        self._measures = on

    def take_spans(self) -> "list[tuple[Any, Any]]":
        """(begin, end) of the moves since the last call."""
        spans, self._spans = self._spans, []
        return spans

    def _moment(self) -> Any:
        return self._clock.now() if self._measures else None

    def _span(self, begin: Any) -> None:
        if begin is not None:
            self._spans.append((begin, self._clock.now()))

    def _slices(self, optimizer: Any) -> "Iterator[tuple[Any, list[Any]]]":
        """(group, parameters) in order: as many as fit into a slice, at least one."""
        limit = self._slice_bytes or self._slice_of(optimizer)
        for group in optimizer.param_groups:
            part: list[Any] = []
            size = 0
            for parameter in group["params"]:
                count = _bytes(parameter)
                if part and size + count > limit:
                    yield group, part
                    part, size = [], 0
                part.append(parameter)
                size += count
            if part:
                yield group, part

    def _together(self, optimizer: Any) -> "list[tuple[Any, list[Any]]]":
        """The slices, with those in one whose state stays, as far as the device has room."""
        joined: list[tuple[Any, list[Any]]] = []
        left = 0  # bytes that the last one may take
        for group, part in self._slices(optimizer):
            stays = self._pager.together > 0 and self._pager.stays(optimizer, part)
            size = sum(map(_bytes, part))
            if stays and joined and joined[-1][0] is group and size <= left:
                joined[-1][1].extend(part)
                left -= size
            else:
                joined.append((group, part))
                left = self._pager.together - size if stays else 0
        return joined

    def parameter_bytes(self) -> int:
        """Of all optimizers that stepped."""
        return sum(map(_parameter_bytes, list(self.known)))

    @staticmethod
    def _slice_of(optimizer: Any) -> int:
        """A sixteenth of the parameters, from 1 to 64 MiB."""
        return min(max(_parameter_bytes(optimizer) // 16, 1 << 20), 64 << 20)

    def _why_whole(self, optimizer: Any, function: Any) -> "Optional[str]":
        if function not in self._own:
            return "it may read several parameters at once"
        kind = next(base for base in type(optimizer).__mro__ if _innermost(vars(base).get("step")) is function)
        if getattr(type(optimizer), "_init_group", None) is not getattr(kind, "_init_group", None):
            return "it has an _init_group of its own"
        for group in optimizer.param_groups:
            if group.get("capturable") or group.get("differentiable"):
                return "its step may be captured or differentiated"
            for parameter in group["params"]:
                if type(parameter) not in (self._torch.Tensor, self._torch.nn.Parameter):
                    return f"parameters are of type {type(parameter).__name__}"
        return None


def _parameter_bytes(optimizer: Any) -> int:
    return sum(_bytes(parameter) for group in optimizer.param_groups for parameter in group["params"])


def _bytes(parameter: Any) -> int:
    return int(parameter.numel() * parameter.element_size())


def _innermost(function: Any) -> Any:
    """The step function without PyTorch's wrapper for hooks and this module's."""
    while function is not None and ("hooked" in vars(function) or "_hotpack_sliced" in vars(function)):
        function = function.__wrapped__
    return function


def _subclasses(kind: Any) -> "Iterator[Any]":
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)
