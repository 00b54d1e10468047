"""What a value is: parameter, buffer, optimizer_state, gradient, input, saved, temporary, workspace, other."""

from typing import Any, Optional

from .places import Place
from .recorder import Recorder
from .values import BEFORE, Value

# Of torch.optim: equal to the last bit if they run in slices of their parameters (docs/graph_format.md, Optimizers).
SLICED = frozenset(("ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam", "RAdam",
                    "RMSprop", "Rprop", "SGD"))


class Kinds:
    """Sets kind, name and module of the values that modules and optimizers own, while their tensors exist: at the
    step's begin, before each optimizer's step and at the end. finish() does the rest."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._torch = recorder.torch
        self._optimizers: dict[int, dict[str, Any]] = {}

    def add_given(self, optimizers: "list[Any]") -> None:
        """At the begin: values for all tensors on a GPU that Python knows, and for those of the optimizers."""
        import gc

        is_tensor: dict[type, bool] = {}
        with self._recorder.quiet(), self._torch.no_grad():
            for thing in gc.get_objects():
                kind = type(thing)
                if kind not in is_tensor:
                    is_tensor[kind] = issubclass(kind, self._torch.Tensor)
                if is_tensor[kind] and thing.device.type == "cuda":
                    value = self._add(thing)
                    if value is not None and kind is self._torch.nn.Parameter:
                        value.kind = "parameter"
                    self._add_gradient(thing)
            for optimizer in optimizers:
                for _, parameter, state in _states(self._torch, optimizer):
                    self._add(parameter)
                    self._add_gradient(parameter)
                    for _, tensor in state:
                        self._add(tensor)
            self.mark(optimizers)

    def _add(self, tensor: Any) -> "Optional[Value]":
        return self._recorder.values.find_or_add(_local(tensor), BEFORE, None)[0]

    def _add_gradient(self, tensor: Any) -> None:
        gradient = _gradient(tensor)
        if gradient is not None:
            self._add(gradient)

    def mark(self, optimizers: "list[Any]") -> None:
        """O(parameters)."""
        modules = self._recorder.modules
        modules.name_all()
        names: dict[int, str] = {}
        homes: dict[int, Any] = {}
        with self._recorder.quiet(), self._torch.no_grad():
            for kind, name, module, tensor in modules.tensors():
                names.setdefault(id(tensor), name)
                homes.setdefault(id(tensor), module)
                self._set(tensor, kind, name, module)
                gradient = _gradient(tensor)
                if gradient is not None:
                    self._set(gradient, "gradient", name + ".grad", module)
            for optimizer in optimizers:
                for number, (_, parameter, state) in enumerate(_states(self._torch, optimizer)):
                    name = names.get(id(parameter), f"parameter.{number}")
                    home = homes.get(id(parameter))
                    self._set(parameter, "parameter", name, home)
                    gradient = _gradient(parameter)
                    if gradient is not None:
                        self._set(gradient, "gradient", name + ".grad", home)
                    for key, tensor in state:
                        self._set(tensor, "optimizer_state", f"{name}.{key}", home)

    def _set(self, tensor: Any, kind: str, name: str, module: Any) -> None:
        value = self._recorder.values.find(_local(tensor))
        if value is None or (value.kind == "parameter" and kind != "parameter"):
            return
        value.kind, value.name = kind, name
        if module is not None:
            place = value.place
            value.place = Place(module, place.line if place is not None else None,
                                place.library_line if place is not None else None)

    def begin_update(self, optimizer: Any) -> None:
        """Before an optimizer's step, while gradients exist: the slices in which it can run."""
        self.mark([optimizer])
        find = self._recorder.values.find
        slices = []
        with self._recorder.quiet(), self._torch.no_grad():
            for group, parameter, state in _states(self._torch, optimizer):
                gradient = _gradient(parameter)
                slices.append((group, find(_local(parameter)), None if gradient is None else find(_local(gradient)),
                               [find(_local(tensor)) for _, tensor in state]))
        self._optimizers[id(optimizer)] = {"class": type(optimizer).__name__, "whole": _whole(self._torch, optimizer),
                                           "begin": len(self._recorder.operators), "slices": slices}

    def end_update(self, optimizer: Any) -> None:
        entry = self._optimizers.get(id(optimizer))
        if entry is not None:
            entry["end"] = len(self._recorder.operators)

    def optimizers(self) -> "list[dict[str, Any]]":
        """The optimizers' part of the document. After the values have their names."""
        listed = []
        for entry in self._optimizers.values():
            slices = []
            for group, parameter, gradient, state in entry["slices"]:
                part = {"group": group, "parameter": parameter.name if parameter is not None else None}
                if gradient is not None:
                    part["gradient"] = gradient.name
                part["state"] = [value.name for value in state if value is not None]
                slices.append(part)
            listed.append({"class": entry["class"], "whole": entry["whole"],
                           "operators": [entry["begin"], entry.get("end", len(self._recorder.operators))],
                           "slices": slices})
        return listed

    def finish(self, outside: "dict[int, int]") -> None:
        """outside: values that are not on the document's device."""
        for value in self._recorder.values.all:
            if value.kind is None:
                value.kind = self._kind(value, outside)
            if value.number in outside:
                value.held = None
            elif value.born == BEFORE:  # the optimizer's state alone can be paged (docs/graph_format.md, Optimizers)
                value.held = value.kind != "optimizer_state"
            elif value.kind in ("gradient", "temporary") or value.held is None:
                value.held = True  # a name of the program keeps it, or autograd's engine: nothing that a plan can undo

    def _kind(self, value: Value, outside: "dict[int, int]") -> str:
        if value.number in self._recorder.gradients:
            return "gradient"
        if value.maker is None:
            return "input" if value.touched else "other"
        maker = self._recorder.operators[value.maker]
        reads = maker.reads + maker.updates
        if maker.phase == "forward" and maker.place.module is None and all(number in outside for number in reads):
            if reads or value.saves:
                return "input"
        return "saved" if value.saves else "temporary"


def _states(torch: Any, optimizer: Any) -> "list[tuple[int, Any, list[tuple[str, Any]]]]":
    """(group, parameter, tensors of its state by name) of all parameters."""
    found = []
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            state = optimizer.state.get(parameter) or {}
            found.append((number, parameter, [(str(name), item) for name, item in state.items()
                                              if isinstance(item, torch.Tensor)]))
    return found


def _local(tensor: Any) -> Any:
    return getattr(tensor, "_local_tensor", tensor)  # of a DTensor


def _gradient(tensor: Any) -> Any:
    return tensor.grad if tensor.is_leaf and tensor.requires_grad else None


def _whole(torch: Any, optimizer: Any) -> "Optional[str]":
    """Why the optimizer's step cannot run in slices; None: it can."""
    kind = type(optimizer)
    if not kind.__module__.startswith("torch.optim.") or kind.__name__ not in SLICED:
        return f"{kind.__name__} has not been tried in slices"
    if any(group.get("capturable") for group in optimizer.param_groups):
        return "capturable"
    if any(hasattr(parameter, "_local_tensor") for group in optimizer.param_groups for parameter in group["params"]):
        return "sharded parameters"
    return None
