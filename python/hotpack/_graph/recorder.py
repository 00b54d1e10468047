"""Records the operators of one step, below autograd, with the values that they read, write and change.

torch.utils._python_dispatch.TorchDispatchMode sees every kernel with its exact arguments, in backward threads too.
Views make no operator. What a kernel calls itself is not seen.
"""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, Optional

from . import calls, places, saves, values
from .operators import Traits


class Operator:
    """reads, writes, updates: numbers of values. updates: read and changed in place. until: the allocator's events
    before and after it (blocks.py)."""

    __slots__ = ("bytes", "call", "cost", "flops", "forward", "name", "node", "phase", "place", "reads", "results",
                 "statistics", "timer", "traits", "until", "updates", "workspace", "writes")

    def __init__(self, name: str, traits: "Optional[Traits]", phase: str) -> None:
        self.name = name
        self.traits = traits
        self.phase = phase
        self.place = places.NOWHERE
        self.node: Optional[str] = None  # of autograd, that runs
        self.forward: Optional[int] = None  # the operator whose backward this is
        self.reads: list[int] = []
        self.writes: list[int] = []
        self.updates: list[int] = []
        self.statistics: list[int] = []  # running means: changed too, but no result depends on them
        self.call: Optional[dict[str, Any]] = None
        self.results: Optional[list[Any]] = None
        self.flops = 0.0
        self.bytes = 0
        self.cost = 0
        self.timer: Any = None
        self.until = (0, 0)
        self.workspace = 0


class Observer:
    """What wants to look on. Tests keep contents by it."""

    def before(self, operator: Operator, tensors: "list[Any]") -> None:
        """tensors: the operator's arguments, before it runs; `operator` has no number yet."""

    def after(self, operator: Operator, results: "list[Any]") -> None:
        """results: the tensors that it returned."""


class Recorder:
    """Between start() and stop(). Not for several threads at once; autograd's come one at a time."""

    def __init__(self, torch: Any, observer: "Optional[Observer]" = None) -> None:
        self.torch = torch
        self.operators: list[Operator] = []
        self.tensors: list[tuple[Any, ...]] = []  # (value, dtype, size, stride, offset)
        self.values = values.Values(lambda: len(self.operators) - 1)
        self.modules = places.Modules(torch)
        self.saves = saves.Saves(torch, self.values.find, lambda: len(self.operators), self._sequence, self.quiet,
                                 self._note_task)
        self.blocks: Any = None  # blocks.Events
        self.timers: Any = None  # costs.Timers
        self.updating = False  # an optimizer steps
        self.on = False
        self.error: Optional[str] = None
        self.last_backward = -1
        self._lines = places.Lines(torch)
        self._observer = observer
        self._tensor_numbers: dict[tuple[Any, ...], int] = {}
        self._traits: dict[Any, Traits] = {}
        # By an autograd node's number: its forward operator, if it is none that makes a view.
        self._by_sequence: dict[int, tuple[Optional[int], places.Place]] = {}
        self._newest = self._sequence()
        self._task = -1
        self._quiet = 0
        self._mode: Any = None
        self._flops = _flop_formulas()
        self.gradients: set[int] = set()  # values that AccumulateGrad took

    # Autograd's counter: the number of the node that was made last.
    def _sequence(self) -> int:
        function = getattr(self.torch._C._autograd, "_get_sequence_nr", None)
        return int(function()) - 1 if function is not None else -1

    @contextlib.contextmanager
    def quiet(self) -> "Iterator[None]":
        """Operators within it are not recorded."""
        self._quiet += 1
        try:
            yield
        finally:
            self._quiet -= 1

    def start(self) -> None:
        self.on = True
        self.modules.start()
        self.saves.start()
        self._mode = _mode_class()(self)
        self._mode.__enter__()

    def stop(self) -> bool:
        """Ends the recording. False: modes or hooks of the program lie above this one's, which stay and do nothing
        until a later call."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        self.on = False
        self.values.close()
        self.modules.stop()
        gone = self.saves.stop()
        if self._mode is not None and _get_current_dispatch_mode() is self._mode:
            self._mode.__exit__(None, None, None)
            self._mode = None
        return gone and self._mode is None

    def run(self, func: Any, types: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]") -> Any:
        if not self.on or self._quiet:
            return func(*args, **kwargs)
        if any(not _is_plain(self.torch, kind) for kind in types):
            return NotImplemented  # a subclass makes operators on plain tensors, which come here
        traits = self._traits.get(func)
        if traits is None:
            traits = self._traits[func] = Traits(self.torch, func)
        try:
            arguments = self._tensors_in(args, kwargs)
            operator = self._begin(func, traits, args, kwargs, arguments)
        except Exception as error:
            self._give_up(error)
            return func(*args, **kwargs)
        number = len(self.operators) - 1
        try:
            out = func(*args, **kwargs)
        except BaseException:
            self._failed(operator)
            raise
        try:
            self._end(operator, number, func, args, kwargs, arguments, out)
        except Exception as error:
            self._give_up(error)
        return out

    def _give_up(self, error: Exception) -> None:
        """A fault of this recorder: the program goes on without it."""
        self.error = f"{type(error).__name__}: {error}"
        self.on = False

    def _tensors_in(self, *nested: Any) -> "list[Any]":
        found: list[Any] = []
        stack = list(nested)
        stack.reverse()
        while stack:
            item = stack.pop()
            if isinstance(item, self.torch.Tensor):
                found.extend(_parts(item))
            elif isinstance(item, (list, tuple)):
                stack.extend(reversed(item))
            elif isinstance(item, dict):
                stack.extend(reversed(list(item.values())))
        return found

    def _begin(self, func: Any, traits: Traits, args: "tuple[Any, ...]", kwargs: "dict[str, Any]",
               arguments: "list[Any]") -> Operator:
        torch = self.torch
        self._note_task()
        task = self._task
        phase = "backward" if task != -1 else "update" if self.updating else "forward"
        for tensor in arguments:  # what the program brought meanwhile, such as a batch
            if self.values.find(tensor) is None:
                self._add_input(tensor, phase)
        operator = Operator(traits.name, traits, phase)
        node = torch._C._current_autograd_node() if task != -1 else None
        self._locate(operator, node)
        try:
            operator.call = {"op": str(func), "args": calls.encode(torch, list(args), self.tensor_number)}
            if kwargs:
                operator.call["kwargs"] = {name: calls.encode(torch, item, self.tensor_number)
                                           for name, item in kwargs.items()}
            if torch.is_grad_enabled():  # a few kernels return more then
                operator.call["grad"] = True
        except calls.NotRepeatable:
            operator.call = None
        self._uses(operator, traits, args, kwargs, arguments)
        if node is not None and node.name().endswith("AccumulateGrad"):
            parameter = self.values.find(node.variable)
            for tensor in arguments:
                value = self.values.find(tensor)
                if value is not None and value is not parameter:
                    self.gradients.add(value.number)
        self.operators.append(operator)
        if self._observer is not None:
            with self.quiet():
                self._observer.before(operator, arguments)
        if self.timers is not None and not torch.cuda.is_current_stream_capturing():
            operator.timer = self.timers.begin()
        operator.until = (self.blocks.count() if self.blocks is not None else 0, 0)
        return operator

    def _add_input(self, tensor: Any, phase: str) -> None:
        value, new = self.values.find_or_add(tensor, len(self.operators), None)
        if value is None or not new:
            return
        operator = Operator("input", None, phase)
        operator.place = places.Place(self.modules.current(), *self._lines.here())
        operator.writes = [value.number]
        value.place = operator.place
        if self.blocks is not None:
            value.seen_at = self.blocks.count()
            operator.until = (value.seen_at, value.seen_at)
        self.operators.append(operator)

    def _locate(self, operator: Operator, node: Any) -> None:
        """Module and line; of a backward operator those of its forward operator."""
        module = self.modules.current()
        newest = self._sequence()
        if node is not None:
            operator.node = node.name()
            variable = getattr(node, "variable", None) if operator.node.endswith("AccumulateGrad") else None
            if variable is not None:
                value = self.values.find(variable)
                operator.place = value.place if value is not None and value.place is not None else places.NOWHERE
                return
            found = self._by_sequence.get(node._sequence_nr())
            if found is not None and module is None:  # else a module runs again, for a checkpoint
                operator.forward, operator.place = found
                return
        operator.place = places.Place(module, *self._lines.here())
        for number in range(max(self._newest + 1, newest - 64), newest + 1):
            self._by_sequence[number] = (len(self.operators), operator.place)
        self._newest = newest

    def _uses(self, operator: Operator, traits: Traits, args: "tuple[Any, ...]", kwargs: "dict[str, Any]",
              arguments: "list[Any]") -> None:
        changed: dict[int, bool] = {}  # value: whether all of it is overwritten
        changing: set[int] = set()  # tensors

        def change(argument: Any, whole: bool) -> None:
            for tensor in self._tensors_in(argument):
                value = self.values.find(tensor)
                if value is not None:
                    changing.add(id(tensor))
                    whole_value = whole and values.rounded(tensor.numel() * tensor.element_size()) == value.bytes
                    changed[value.number] = changed.get(value.number, True) and whole_value

        for number, name, whole in traits.writes:
            change(args[number] if number < len(args) else kwargs.get(name), whole)
        operator.statistics = self._statistics(traits, args)
        read: dict[int, None] = {}
        for tensor in arguments:
            value = self.values.find(tensor)
            if value is None:
                continue
            value.touched = True
            operator.bytes += tensor.numel() * tensor.element_size()
            if id(tensor) not in changing and not traits.metadata_only:
                read[value.number] = None
        operator.writes = [number for number, whole in changed.items() if whole and number not in read]
        operator.updates = [number for number in changed if number not in operator.writes]
        operator.reads = [number for number in read if number not in changed and number not in operator.statistics]

    def _statistics(self, traits: Traits, args: "tuple[Any, ...]") -> "list[int]":
        if traits.statistics is None:
            return []
        numbers, training = traits.statistics
        if training is not None and not (len(args) > training and args[training]):
            return []
        found = [self.values.find(tensor) for number in numbers if number < len(args)
                 for tensor in self._tensors_in(args[number])]
        return [value.number for value in found if value is not None]

    def _end(self, operator: Operator, number: int, func: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]",
             arguments: "list[Any]", out: Any) -> None:
        if operator.timer is not None:
            self.timers.end(operator.timer)
        count = self.blocks.count() if self.blocks is not None else 0
        operator.until = (operator.until[0], count)
        results = self._tensors_in(out)
        made = False
        changing = operator.traits is not None and (operator.traits.writes or operator.traits.statistics)
        for tensor in results if not changing else results + arguments:
            value, new = self.values.find_or_add(tensor, number, number)
            if value is None:
                continue
            value.touched = True
            if new:
                made = True
                value.place = operator.place
                value.seen_at = count
                operator.writes.append(value.number)
        if not made and not (operator.updates or operator.writes or operator.statistics or
                             (operator.reads and not results)):
            if number == len(self.operators) - 1:  # a view, or nothing at all
                self._forget(operator, number)
                return
        for tensor in results:
            operator.bytes += tensor.numel() * tensor.element_size()
        if operator.call is not None:
            try:
                operator.results = calls.encode(self.torch, [out], self.tensor_number)
            except calls.NotRepeatable:
                operator.call = None
        operator.flops = self._count(func, args, kwargs, out)
        if operator.phase == "backward":
            self.last_backward = number
        if self._observer is not None:
            with self.quiet():
                self._observer.after(operator, results)

    def _forget(self, operator: Operator, number: int) -> None:
        """Views are no operators. Nodes that they made keep their place."""
        self.operators.pop()
        for sequence in range(self._newest, max(self._newest - 65, -1), -1):
            found = self._by_sequence.get(sequence)
            if found is None or found[0] != number:
                break
            self._by_sequence[sequence] = (None, found[1])

    def _failed(self, operator: Operator) -> None:
        operator.call = None
        if self.operators and self.operators[-1] is operator:
            self.operators.pop()

    def _count(self, func: Any, args: "tuple[Any, ...]", kwargs: "dict[str, Any]", out: Any) -> float:
        formula = self._flops.get(func._overloadpacket)
        if formula is None:
            return 0.0
        try:
            return float(formula(*args, **kwargs, out_val=out))
        except Exception:  # a formula for another form of the call
            return 0.0

    def tensor_number(self, tensor: Any) -> int:
        """The tensor's number in the table of tensors. Raises NotRepeatable."""
        value = self.values.find_or_add(tensor, len(self.operators) - 1, None)[0]
        if value is None or tensor.is_conj() or tensor.is_neg():
            raise calls.NotRepeatable(str(tensor.layout))
        key = (value.number, tensor.dtype, tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset())
        number = self._tensor_numbers.get(key)
        if number is None:
            number = self._tensor_numbers[key] = len(self.tensors)
            self.tensors.append(key)
        return number

    def forward_of(self, sequence: int) -> "Optional[int]":
        """The forward operator of the autograd node with this number."""
        found = self._by_sequence.get(sequence)
        return found[0] if found is not None else None

    def _note_task(self) -> None:
        task = self.torch._C._current_graph_task_id()
        if task != -1 and task != self._task:
            self._backward_begins()
        self._task = task

    def _backward_begins(self) -> None:
        """What autograd alone keeps now could go meanwhile; what the program names could not."""
        for storage, value in self.values.live_storages():
            if value.saves:
                held = saves.held_by_program(self.torch, storage, value)
                value.held = held if not value.held else True


@functools.cache
def _mode_class() -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self, recorder: Recorder) -> None:
            super().__init__()
            self._recorder = recorder

        def __torch_dispatch__(self, func: Any, types: Any, args: "tuple[Any, ...]" = (),
                               kwargs: "Optional[dict[str, Any]]" = None) -> Any:
            return self._recorder.run(func, types, args, kwargs or {})

    return Mode


def _is_plain(torch: Any, kind: Any) -> bool:
    return getattr(kind, "__torch_dispatch__", None) in (torch._C._disabled_torch_dispatch_impl,
                                                         torch.Tensor.__torch_dispatch__)


def _parts(tensor: Any) -> "list[Any]":
    """The tensors with memory of which this one is made."""
    import torch

    if tensor.layout is torch.strided:
        return [tensor]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return []


def _flop_formulas() -> "dict[Any, Any]":
    try:
        from torch.utils.flop_counter import flop_registry
    except ImportError:
        return {}
    formulas: dict[Any, Any] = flop_registry
    return formulas
