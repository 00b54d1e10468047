"""Optimizer state on the host between steps, or on the device for as long as there is room:

    step        ▇▇ update                              ▇▇ update
    state out       ▄▄▄▄▄▄▄▄ while forward begins: a program that reads a loss after its step does not wait
    on device   ▇▇▇▇▆▅▄▃▂▁                     ▁▂▃▅▆▇▇▇▇▇
    state in                                   ▄▄▄▄▄▄▄▄ while backward ends

What the program reads in optimizer.state, or saves, is whole and right at any time: the device's tensor for as long as
that is there, then the host's until the next step, and each reader waits for its copy."""

import itertools
import weakref
from collections import deque
from typing import Any, Optional

from .host import Streams
from .paged_state import PagedState
from .tensors import MIN_BYTES

_TOGETHER = 4 << 20  # bytes of small tensors that leave with one event
_SMALL = 256         # The smallest tensors stay: together this part of an optimizer's state, for copies cost calls.


class _Arriving:
    """A device tensor that a copy of `host` fills, at the host's version. event: behind it; None: it has ended."""

    __slots__ = ("bytes", "event", "host", "tensor", "version")

    def __init__(self, tensor: Any, host: Any) -> None:
        self.tensor = tensor
        self.event: Any = None
        self.host = host
        self.version = host._version
        self.bytes = _size(host)


class _Leaving:
    """A device tensor, which is in `state` until its memory is wanted, and the host's for its copy. ready: the event
    behind the update, at `version`. user: the update's stream, whose memory it is. copying: the copy has begun. event:
    behind it; None: it has ended."""

    __slots__ = ("bytes", "copying", "event", "host", "name", "pages", "ready", "state", "user", "value", "version")

    def __init__(self, pages: "_Pages", state: Any, name: str, value: Any, host: Any) -> None:
        self.pages = pages
        self.state = state
        self.name = name
        self.value = value
        self.host = host
        self.bytes = _size(value)
        self.ready: Any = None
        self.user: Any = None
        self.copying = False
        self.event: Any = None
        self.version = value._version


class _Pages:
    """Of one optimizer. host: by parameter's id and name. ahead: device tensors that are on their way. parts: the
    slices of its last step, `fetched` the number of parameters in them that fetch_until() is through with. sizes: bytes
    of what may move, in their order. small: bytes of the others. least: bytes below which a tensor stays. sent: bytes
    in this step so far, `expected` in the last one."""

    __slots__ = ("ahead", "ahead_bytes", "expected", "fetched", "host", "least", "left", "parts", "sent", "sizes",
                 "small")

    def __init__(self) -> None:
        self.host: dict[tuple[int, str], Any] = {}
        self.ahead: dict[tuple[int, str], _Arriving] = {}
        self.ahead_bytes = 0
        self.left: Optional[int] = 0  # bytes that may stay on the device in this step; None: all
        self.parts: list[list[Any]] = []
        self.fetched = 0
        self.sizes: list[int] = []
        self.small: list[int] = []
        self.least = 0
        self.sent = self.expected = 0

    def take(self, key: "tuple[int, str]") -> "Optional[_Arriving]":
        arriving = self.ahead.pop(key, None)
        if arriving is not None:
            self.ahead_bytes -= arriving.bytes
        return arriving


class Pager:
    """resident: bytes of state that stay on the device, those of the first slices; None: all.
    room: bytes of other state that may be on the device while an optimizer steps. Two slices do not count.
    after: bytes of other state that may be on the device when a step has ended.
    early: state may move while a pass runs. Only a GPU gains by it; tests set it on the CPU.
    together: bytes of parameters for whose update in one slice the device has room."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._device = device
        self._pages: weakref.WeakKeyDictionary[Any, _Pages] = weakref.WeakKeyDictionary()
        self._streams = Streams(torch)
        self._sent: deque[list[_Leaving]] = deque()  # by slice, the first one first
        self._waiting = 0  # bytes of these
        self._idle: deque[_Leaving] = deque()  # of these, those whose copies have not begun: the last ones
        self._idle_bytes = 0
        self._last: Optional[weakref.ref[Any]] = None  # the optimizer that stepped last
        self.early = device == "cuda"
        self.resident: Optional[int] = 0
        self.room = 0
        self.after = 0
        self.together = 0
        self.moved = 0  # bytes to the host
        self.state_bytes: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # of what may be paged

    def begin(self, optimizer: Any, parts: "list[list[Any]]") -> None:
        """Of a step, in these slices. What has not left stays."""
        pages = self._pages.setdefault(optimizer, _Pages())
        self._stay(pages)
        pages.left = None if self.resident is None else self._share(optimizer, self.resident)
        pages.parts = parts
        pages.sizes, pages.small = [], []
        pages.expected, pages.sent = pages.sent, 0
        pages.fetched = 0
        self._last = weakref.ref(optimizer)

    def _share(self, optimizer: Any, resident: int) -> int:
        """Of bytes that stay, by what optimizers had in their last steps."""
        state = sum(self.state_bytes.values())
        return resident * self.state_bytes.get(optimizer, 0) // state if state > 0 else resident

    def fitting(self, resident: int) -> int:
        """Bytes that stay if at most so many may: whole tensors. O(tensors)."""
        fits = 0
        for optimizer, pages in self._pages.items():
            left = self._share(optimizer, resident)
            for size in pages.sizes:
                if size > left:
                    break
                left -= size
                fits += size
        return fits

    def may_step_whole(self, optimizer: Any) -> bool:
        """True if its state is on the device, and stays there."""
        pages = self._pages.get(optimizer)
        return self.resident is None and pages is not None and not pages.host and optimizer in self.state_bytes

    def stays(self, optimizer: Any, part: "list[Any]") -> bool:
        """True if the state of these parameters was on the device after the last step."""
        pages = self._pages.get(optimizer)
        return (pages is not None and optimizer in self.state_bytes
                and all((id(parameter), name) not in pages.host
                        for parameter in part for name in optimizer.state.get(parameter) or ()))

    def stop(self) -> None:
        """What is on the device stays there."""
        for pages in self._pages.values():
            self._stay(pages)

    def _stay(self, pages: _Pages) -> None:
        sent, self._sent = self._sent, deque()
        for part in sent:
            for leaving in part:
                if leaving.pages is pages:
                    self._waiting -= leaving.bytes
                    self._wait(leaving.event, leaving.value)
            others = [leaving for leaving in part if leaving.pages is not pages]
            if others:
                self._sent.append(others)
        self._idle = deque(leaving for leaving in self._idle if leaving.pages is not pages)
        self._idle_bytes = sum(leaving.bytes for leaving in self._idle)

    def bring(self, optimizer: Any, part: "list[Any]") -> None:
        """The state of these parameters is on the device from now on."""
        pages = self._pages.get(optimizer)
        if pages is None:
            return
        self._fetch(pages, optimizer, part)
        waited = None
        for parameter in part:
            state = optimizer.state.get(parameter)
            if not isinstance(state, PagedState):
                continue
            for name in state:
                arrived = pages.take((id(parameter), name))
                if arrived is not None:
                    if arrived.event is not waited:
                        self._wait(arrived.event, arrived.tensor)
                    waited = arrived.event
                    state[name] = arrived.tensor
            state.events.clear()  # what comes back waits for them

    def _wait(self, event: Any, tensor: Any) -> None:
        if event is not None:
            self._torch.cuda.current_stream(tensor.device).wait_event(event)

    def bring_ahead(self, optimizer: Any, number: int) -> None:
        """The copies of slice `number` begin, and of those behind it for which there is room; bring() waits for
        them."""
        if not self.early:
            return
        pages = self._pages[optimizer]
        for following in range(number, len(pages.parts)):
            if following > number and self._waiting + pages.ahead_bytes >= self.room:
                return
            self._fetch(pages, optimizer, pages.parts[following])

    def fetch_until(self, size: int, room: int) -> None:
        """Begins to bring back so many bytes of state or a little more, in all since the last step, for the optimizer
        that stepped last. At most `room` bytes."""
        optimizer = self._last() if self._last is not None else None
        pages = self._pages.get(optimizer) if optimizer is not None else None
        if optimizer is None or pages is None or not self.early or pages.ahead_bytes >= size:
            return
        found: list[tuple[Any, str, Any]] = []
        ahead = pages.ahead_bytes
        for parameter in [parameter for part in pages.parts for parameter in part][pages.fetched:]:
            state = optimizer.state.get(parameter) or {}
            for name, value in dict.items(state):
                if self._is_away(pages, parameter, name, value):
                    if ahead >= size or ahead + _size(value) > room:
                        self._copy_in(pages, found)
                        return
                    found.append((parameter, name, state))
                    ahead += _size(value)
            pages.fetched += 1
        self._copy_in(pages, found)

    @staticmethod
    def _is_away(pages: _Pages, parameter: Any, name: str, value: Any) -> bool:
        """And no copy is on its way."""
        key = (id(parameter), name)
        return key not in pages.ahead and value is pages.host.get(key, pages)

    def _fetch(self, pages: _Pages, optimizer: Any, part: "list[Any]") -> None:
        """Again where the program has changed the host's tensor since."""
        found = []
        for parameter in part:
            state = optimizer.state.get(parameter) or {}
            for name, value in dict.items(state):
                key = (id(parameter), name)
                arriving = pages.ahead.get(key)
                if arriving is not None and (arriving.host is not value or arriving.version != value._version):
                    self._wait(arriving.event, arriving.tensor)
                    pages.take(key)
                if self._is_away(pages, parameter, name, value):
                    found.append((parameter, name, state))
        self._copy_in(pages, found)

    def _copy_in(self, pages: _Pages, found: "list[tuple[Any, str, Any]]") -> None:
        """Begins copies of (parameter, name, its state), with one event for each device."""
        torch = self._torch
        by_device: dict[Any, list[tuple[_Arriving, Any]]] = {}
        for parameter, name, state in found:
            value = dict.__getitem__(state, name)
            tensor = (torch.empty_strided(value.size(), value.stride(), dtype=value.dtype, device=parameter.device)
                      if self._device == "cuda" else value.clone())
            arriving = pages.ahead[id(parameter), name] = _Arriving(tensor, value)
            pages.ahead_bytes += arriving.bytes
            by_device.setdefault(parameter.device, []).append((arriving, state))
        for device, arrivals in by_device.items() if self._device == "cuda" else ():
            back = self._streams.of(device)[1]
            back.wait_stream(torch.cuda.current_stream(device))  # the memory's earlier use
            for event in {id(event): event for _, state in arrivals for event in state.events}.values():
                back.wait_event(event)
            with torch.cuda.stream(back):
                for arriving, _ in arrivals:
                    arriving.tensor.copy_(arriving.host, non_blocking=True)
            behind = torch.cuda.Event()
            behind.record(back)
            for arriving, _ in arrivals:
                arriving.event = behind

    def send(self, optimizer: Any, part: "list[Any]") -> None:
        """The state of these parameters goes to the host, but for what may stay."""
        pages = self._pages[optimizer]
        sent: list[_Leaving] = []
        for parameter in part:
            state = optimizer.state.get(parameter)
            movable = [(name, value) for name, value in dict.items(state) if self._may_go(value, parameter)
                       ] if type(state) in (dict, PagedState) else []
            pages.small += [size for size in (_size(value) for _, value in movable) if size < pages.least]
            pages.sizes += [size for size in (_size(value) for _, value in movable) if size >= pages.least]
            for name, value in movable:
                size = _size(value)
                if size < pages.least or pages.left is None or size <= pages.left:
                    pages.left = pages.left and (pages.left if size < pages.least else pages.left - size)
                    pages.host.pop((id(parameter), name), None)
                    continue
                pages.left = 0
                if type(state) is dict:
                    state = optimizer.state[parameter] = PagedState(state)
                sent.append(_Leaving(pages, state, name, value, self._host_tensor(pages, parameter, name, value)))
        self._mark_ready(sent)
        self._sent.append(sent)
        self._idle.extend(sent)
        size = sum(leaving.bytes for leaving in sent)
        self._waiting += size
        self._idle_bytes += size
        pages.sent += size
        self._copy_until(max(0, self._may_stay() - max(0, pages.expected - pages.sent)))
        while len(self._sent) > 1 and self._waiting + pages.ahead_bytes > self.room:
            self._let_leave(self._waiting - sum(leaving.bytes for leaving in self._sent[0]), 0)

    def _may_stay(self) -> int:
        return self.after if self.early else 0

    def _may_go(self, value: Any, parameter: Any) -> bool:
        torch = self._torch
        return (type(value) is torch.Tensor and value.device == parameter.device and value.layout is torch.strided
                and _size(value) >= MIN_BYTES and not value.is_quantized and _dense(value))

    def _host_tensor(self, pages: _Pages, parameter: Any, name: str, value: Any) -> Any:
        torch = self._torch
        key = (id(parameter), name)
        host = pages.host.get(key)
        if host is None or host.size() != value.size() or host.stride() != value.stride() or host.dtype != value.dtype:
            host = torch.empty_strided(value.size(), value.stride(), dtype=value.dtype,
                                       pin_memory=self._device == "cuda")
            pages.host[key] = host
        return host

    def _mark_ready(self, sent: "list[_Leaving]") -> None:
        """These are as they are behind all that the stream has now."""
        torch = self._torch
        of_device: dict[Any, tuple[Any, Any]] = {}
        for leaving in sent if self._device == "cuda" else ():
            device = leaving.value.device
            if device not in of_device:
                user = torch.cuda.current_stream(device)
                of_device[device] = (user, user.record_event())
            user, leaving.ready = of_device[device]
            leaving.user = leaving.user or user
        for leaving in sent:
            leaving.version = leaving.value._version

    def _copy_until(self, idle: int) -> None:
        """Begins copies until so many bytes or fewer have none."""
        together: list[_Leaving] = []
        while self._idle_bytes > idle:
            leaving = self._idle.popleft()
            self._idle_bytes -= leaving.bytes
            if together and together[0].value.device != leaving.value.device:
                self._copy_out(together)
                together = []
            together.append(leaving)
            if sum(each.bytes for each in together) >= _TOGETHER:
                self._copy_out(together)
                together = []
        self._copy_out(together)

    def _copy_out(self, together: "list[_Leaving]") -> None:
        """Of one device."""
        torch = self._torch
        changed = [leaving for leaving in together if leaving.value._version != leaving.version]
        if changed:  # by the program, since the update
            self._mark_ready(changed)
        ready = {id(leaving.ready): leaving.ready for leaving in together}
        behind = None
        if self._device == "cuda" and together:
            out = self._streams.of(together[0].value.device)[0]
            for event in ready.values():
                out.wait_event(event)
            with torch.cuda.stream(out):
                for leaving in together:
                    leaving.host.copy_(leaving.value, non_blocking=True)
            behind = torch.cuda.Event()
            behind.record(out)
        for leaving in together:
            if self._device != "cuda":
                leaving.host.copy_(leaving.value)
            leaving.copying, leaving.event = True, behind
            self.moved += leaving.bytes

    def let_stay(self, size: int, room: int = 0) -> None:
        """So many bytes of what was sent need not leave yet, the last ones. What is needed in part stays whole, within
        `room` bytes. The memory's next user waits for the others' copies. All copies begin."""
        if self._sent:
            self._copy_until(0)
            self._let_leave(size, room)

    def _let_leave(self, size: int, room: int) -> None:
        waited = None
        while self._sent:
            first = self._sent[0]
            if not first:
                self._sent.popleft()
            elif self._waiting > max(size, room) or self._waiting - first[0].bytes >= size:
                waited = self._leave(first.pop(0), waited)
            else:
                return

    def _leave(self, leaving: _Leaving, waited: Any) -> Any:
        """waited: the event that was waited for last. Returns that event."""
        while not leaving.copying:
            self._copy_until(self._idle_bytes - 1)
        value, state, name = leaving.value, leaving.state, leaving.name
        self._waiting -= leaving.bytes
        # Else the program has put another one there.
        if name in state and dict.__getitem__(state, name) is value:
            if value._version != leaving.version:  # or changed it
                self._copy_out([leaving])
            state[name] = leaving.host
            if leaving.event is not None and leaving.event not in state.events:
                state.events.append(leaving.event)
        if leaving.event is not None and leaving.event is not waited:
            leaving.user.wait_event(leaving.event)
        return leaving.event

    def end(self, optimizer: Any) -> None:
        """Of a step."""
        pages = self._pages[optimizer]
        pages.least = _least(pages.sizes + pages.small)
        pages.sizes = [size for size in pages.sizes if size >= pages.least]
        self.state_bytes[optimizer] = sum(pages.sizes)
        self._drop(pages)  # of slices that an exception left out
        self._copy_until(self._may_stay())
        self._let_leave(self._may_stay(), self.room)

    def drop_ahead(self) -> None:
        """What was fetched is not used: the memory's next user waits for the copies."""
        for pages in self._pages.values():
            self._drop(pages)

    def _drop(self, pages: _Pages) -> None:
        for arriving in pages.ahead.values():
            self._wait(arriving.event, arriving.tensor)
        pages.ahead.clear()
        pages.ahead_bytes = 0
        pages.fetched = 0


def _size(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def _least(sizes: "list[int]") -> int:
    """Tensors of fewer bytes than this are together at most 1/_SMALL of all."""
    left = sum(sizes) // _SMALL
    for size, same in itertools.groupby(sorted(sizes)):
        left -= sum(same)
        if left < 0:
            return size
    return 0


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
