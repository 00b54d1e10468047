"""An operator's call as JSON, so that it can be run again (docs/graph_format.md, Calls)."""

import math
from collections.abc import Callable
from typing import Any


class NotRepeatable(Exception):
    """An argument that JSON does not hold: a process group, a sparse tensor, an object of Python."""


def encode(torch: Any, argument: Any, tensor: "Callable[[Any], int]") -> Any:
    """tensor(t) returns the number of t in the table of tensors. Raises NotRepeatable."""
    if isinstance(argument, torch.Tensor):
        return {"t": tensor(argument)}
    if argument is None or isinstance(argument, (bool, str, int)):
        return argument
    if isinstance(argument, float):
        return argument if math.isfinite(argument) else {"float": str(argument)}
    if isinstance(argument, (list, tuple)):
        return [encode(torch, item, tensor) for item in argument]
    if isinstance(argument, complex):
        return {"complex": [encode(torch, argument.real, tensor), encode(torch, argument.imag, tensor)]}
    for kind, name in ((torch.dtype, "dtype"), (torch.device, "device"), (torch.layout, "layout"),
                       (torch.memory_format, "memory_format")):
        if isinstance(argument, kind):
            return {name: str(argument).replace("torch.", "")}
    if isinstance(argument, torch.Generator):
        return {"generator": str(argument.device)}
    raise NotRepeatable(type(argument).__name__)


def decode(torch: Any, argument: Any, tensor: "Callable[[int], Any]", device: "str | None" = None) -> Any:
    """The argument that encode() was given. device: replaces every device; generators become the default one."""
    if isinstance(argument, list):
        return [decode(torch, item, tensor, device) for item in argument]
    if not isinstance(argument, dict):
        return argument
    (kind, value), = argument.items()
    if kind == "t":
        return tensor(value)
    if kind == "float":
        return float(value)
    if kind == "complex":
        return complex(*(decode(torch, part, tensor) for part in value))
    if kind == "device":
        return torch.device(device or value)
    if kind == "generator":
        return None
    return getattr(torch, value)
