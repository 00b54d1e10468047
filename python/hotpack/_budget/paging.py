"""Optimizer state on the host between steps. What the program reads in optimizer.state, or saves, is the host's tensor:
its values are right at any time."""

import weakref
from collections import deque
from typing import Any, Optional

from .host import Streams
from .tensors import MIN_BYTES


class _Pages:
    """Of one optimizer. host: by parameter's id and name. ahead: device tensors that are on their way."""

    __slots__ = ("ahead", "host", "left")

    def __init__(self) -> None:
        self.host: dict[tuple[int, str], Any] = {}
        self.ahead: dict[tuple[int, str], Any] = {}
        self.left = 0  # bytes that may stay on the device in this step


class Pager:
    """resident: bytes of state that stay on the device, those of the first slices; None: all."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._device = device
        self._pages: weakref.WeakKeyDictionary[Any, _Pages] = weakref.WeakKeyDictionary()
        self._streams = Streams(torch)
        self._sent: deque[list[tuple[Any, Any]]] = deque()  # by slice: device tensors that are copied out, and events
        self.resident: Optional[int] = 0
        self.moved = 0  # bytes to the host
        self.state_bytes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # of what may be paged

    def begin(self, optimizer: Any) -> None:
        """Of a step."""
        pages = self._pages.setdefault(optimizer, _Pages())
        pages.left = -1 if self.resident is None else self.resident
        self.state_bytes[optimizer] = 0

    def bring(self, optimizer: Any, part: "list[Any]") -> None:
        """The state of these parameters is on the device from now on."""
        pages = self._pages.get(optimizer)
        if pages is None:
            return
        self._fetch(optimizer, part)
        for parameter in part:
            state = optimizer.state.get(parameter)
            for name in list(state or ()):
                arrived = pages.ahead.pop((id(parameter), name), None)
                if arrived is not None:
                    tensor, event = arrived
                    if event is not None:
                        self._torch.cuda.current_stream(parameter.device).wait_event(event)
                    state[name] = tensor

    def bring_ahead(self, optimizer: Any, part: "list[Any]") -> None:
        """The copies begin; bring() waits for them."""
        if self._device == "cuda":
            self._fetch(optimizer, part)

    def _fetch(self, optimizer: Any, part: "list[Any]") -> None:
        pages = self._pages[optimizer]
        for parameter in part:
            for name, value in (optimizer.state.get(parameter) or {}).items():
                key = (id(parameter), name)
                host = pages.host.get(key)
                if host is None or value is not host or key in pages.ahead:
                    continue
                pages.ahead[key] = self._copy_in(value, parameter.device)

    def _copy_in(self, value: Any, device: Any) -> "tuple[Any, Any]":
        torch = self._torch
        if self._device != "cuda":
            return value.clone(), None
        back = self._streams.of(device)[1]
        tensor = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=device)
        back.wait_stream(torch.cuda.current_stream(device))  # the memory's earlier use
        with torch.cuda.stream(back):
            tensor.copy_(value, non_blocking=True)
        event = torch.cuda.Event()
        event.record(back)
        return tensor, event

    def send(self, optimizer: Any, part: "list[Any]") -> None:
        """The state of these parameters goes to the host, but for what may stay."""
        pages = self._pages[optimizer]
        self._sent.append([])
        for parameter in part:
            state = optimizer.state.get(parameter) or {}
            movable = [(name, value) for name, value in state.items() if self._may_go(value, parameter)]
            size = sum(value.numel() * value.element_size() for _, value in movable)
            self.state_bytes[optimizer] += size
            if pages.left < 0 or size <= pages.left:
                pages.left -= size if pages.left >= 0 else 0
                for name, _ in movable:
                    pages.host.pop((id(parameter), name), None)
                continue
            pages.left = 0
            for name, value in movable:
                state[name] = self._copy_out(pages, (id(parameter), name), value)
        if len(self._sent) > 1:
            self._let_go()

    def _may_go(self, value: Any, parameter: Any) -> bool:
        torch = self._torch
        return (type(value) is torch.Tensor and value.device == parameter.device and value.layout is torch.strided
                and value.numel() * value.element_size() >= MIN_BYTES and not value.is_quantized
                and _dense(value))

    def _copy_out(self, pages: _Pages, key: "tuple[int, str]", value: Any) -> Any:
        torch = self._torch
        self.moved += value.numel() * value.element_size()
        host = pages.host.get(key)
        if host is None or host.size() != value.size() or host.stride() != value.stride() or host.dtype != value.dtype:
            host = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype,
                                       pin_memory=self._device == "cuda")
            pages.host[key] = host
        if self._device != "cuda":
            host.copy_(value)
            return host
        out = self._streams.of(value.device)[0]
        out.wait_stream(torch.cuda.current_stream(value.device))
        with torch.cuda.stream(out):
            host.copy_(value, non_blocking=True)
        event = torch.cuda.Event()
        event.record(out)
        self._sent[-1].append((value, event))
        return host

    def _let_go(self) -> None:
        """Of the slice that was sent first: the memory's next user waits for the copies."""
        for value, event in self._sent.popleft():
            self._torch.cuda.current_stream(value.device).wait_event(event)

    def end(self, optimizer: Any) -> None:
        """Of a step: the host's tensors are whole."""
        pages = self._pages[optimizer]
        for tensor, event in pages.ahead.values():  # of slices that an exception left out
            if event is not None:
                self._torch.cuda.current_stream(tensor.device).wait_event(event)
        pages.ahead.clear()
        while self._sent:
            for _, event in self._sent.popleft():
                event.synchronize()


def _dense(value: Any) -> bool:
    """Its strides cover its memory once, so that a tensor of these strides holds it."""
    expected = 1
    for stride, size in sorted(zip(value.stride(), value.size())):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True
