"""Waits for the step that is to be recorded, records it, and writes the document."""

import atexit
import contextlib
import os
import sys
from typing import Any, Optional

from .. import _marks, _snapshot
from .._errors import Error
from .._simulate import simulated
from .._steps import Steps
from . import costs, document
from .blocks import Events
from .kinds import Kinds
from .recorder import Observer, Recorder


class Session:
    """From record_graph() to the program's end. Steps are counted as hotpack counts iterations (_steps.py)."""

    def __init__(self, torch: Any, path: str, step: int, gpu: "Optional[str]", observer: "Optional[Observer]" = None,
                 silent_without_steps: bool = False) -> None:
        self._torch = torch
        self._path = path
        self._wanted = step
        self._gpu = costs.choose(gpu)
        self._observer = observer
        self._silent_without_steps = silent_without_steps
        self._hooks: list[Any] = []
        self._steps = Steps()
        self._ended = 0  # steps
        self._by_hand = False
        self._optimizers: list[Any] = []
        self._recorder: Optional[Recorder] = None
        self._kinds: Optional[Kinds] = None
        self._left: Optional[Recorder] = None  # has recorded, and is not off the stacks of modes and hooks yet
        self._events: Optional[Events] = None  # of the current step
        self._seen: list[dict[str, Any]] = []
        self._text: Optional[str] = None
        self._written = 0
        self._device: Any = None
        self._process = os.getpid()
        self.done = False
        self.failed: Optional[str] = None

    def start(self) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._hooks = [register_optimizer_step_pre_hook(self._before_update),
                       register_optimizer_step_post_hook(self._after_update), _marks.on_step(self._marked)]
        atexit.register(self.close)
        if self._of_hotpack() and _snapshot.wanted_entries() == 0:  # so that the first step's peak is known
            self._events = Events(0)
            self._events.start()

    def _before_update(self, optimizer: Any, _arguments: object, _keywords: object) -> None:
        if self._recorder is not None and self._recorder.on:
            self._recorder.updating = True
            self._kinds_of().begin_update(optimizer)

    def _after_update(self, optimizer: Any, _arguments: object, _keywords: object) -> None:
        if not any(optimizer is known for known in self._optimizers):
            self._optimizers.append(optimizer)
        if self._recorder is not None and self._recorder.on:
            self._recorder.updating = False
            self._kinds_of().end_update(optimizer)
        if _marks.marked_by_hand():
            return
        if self._steps.ends_iteration(optimizer) or self._ended == 0:
            self._step_ended()

    def _marked(self) -> None:
        """hotpack.step(): it ends the steps from now on, and optimizers' no more."""
        if not self._by_hand and self._recorder is None:
            self._ended = 0
            self._seen.clear()
        self._by_hand = True
        self._step_ended()

    def _kinds_of(self) -> Kinds:
        assert self._kinds is not None
        return self._kinds

    def _step_ended(self) -> None:
        if os.getpid() != self._process:
            return
        self._ended += 1
        if self._left is not None and self._left.stop():
            self._left = None
        if self._recorder is not None:
            try:
                self._finish(self._recorder)
            except Exception as error:  # the program itself must go on
                self._fail(str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}")
        else:
            self._note_step()
        if self._ended == self._wanted - 1:
            try:
                self._begin()
            except Exception as error:
                if self._recorder is not None:
                    self._recorder.stop()
                self._fail(str(error) if isinstance(error, Error) else f"{type(error).__name__}: {error}")
        elif self._torch.cuda.is_initialized():
            self._events = self._events_of(self._torch.cuda.current_device())

    def _events_of(self, device: int, needed: bool = False) -> "Optional[Events]":
        """Begins the events of the next step, if hotpack's allocator is on. A program that records them itself
        (torch.cuda.memory) keeps its own unless they are needed for the graph."""
        if not self._of_hotpack():
            return None
        if not needed and _snapshot.wanted_entries() > 0:
            if self._events is not None:
                self._events.stop()
            return None
        events = self._events if self._events is not None and self._events.device == device else Events(device)
        events.start()
        return events

    def _of_hotpack(self) -> bool:
        from .. import _torch

        return _torch.enabled()

    def _begin(self) -> None:
        torch = self._torch
        on_gpu = torch.cuda.is_initialized()
        self._device = torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
        self._recorder = Recorder(torch, self._observer)
        self._kinds = Kinds(self._recorder)
        self._events = self._recorder.blocks = self._events_of(self._device.index, True) if on_gpu else None
        if on_gpu and not simulated():
            self._recorder.timers = costs.Timers(torch)
        self._kinds.add_given(self._optimizers)
        self._recorder.start()

    def _finish(self, recorder: Recorder) -> None:
        kinds = self._kinds_of()
        self._recorder = self._kinds = None
        if recorder.error is None:
            kinds.mark(self._optimizers)
        count = self._events.count() if self._events is not None else 0
        self._left = None if recorder.stop() else recorder
        if recorder.error is not None:
            self._note_step()
            raise Error(recorder.error)
        events = self._events.take(count) if self._events is not None else None
        blocks = None
        if self._events is not None and events is not None:
            blocks = self._events.blocks(events, recorder.operators)
        measured = recorder.timers is not None
        if measured:
            self._torch.cuda.synchronize()
        step = document.Step(recorder, kinds, self._ended, self._device, blocks, self._gpu, measured)
        self._seen.append({"step": self._ended, "peak": step.peak()["bytes"], "end": step.end()})
        self._text = document.write_text(step, step.facts("hotpack" if blocks is not None else None, simulated()))
        self.done = True
        self._write()

    def _note_step(self) -> None:
        """The peak of a step that is not recorded, as far as it is known."""
        entry: dict[str, Any] = {"step": self._ended, "peak": None, "end": None}
        on_gpu = self._torch.cuda.is_initialized()
        if on_gpu and self._events is not None and self._events.device == self._torch.cuda.current_device():
            events = self._events.take(self._events.count())
            if events is not None:
                entry["peak"], entry["end"] = self._events.summary(events)
        elif on_gpu:
            entry["end"] = self._allocated()
        self._seen.append(entry)

    def _allocated(self) -> "Optional[int]":
        try:
            return int(self._torch.cuda.memory_allocated())
        except Exception:
            return None

    def _write(self) -> None:
        assert self._text is not None
        path = os.path.realpath(self._path)  # a link's target is replaced
        direct = os.path.exists(path) and not os.path.isfile(path)  # a pipe, a device
        partial = path if direct else f"{path}.partial.{os.getpid()}"
        try:
            with open(partial, "w") as file:
                file.write(self._text)
                file.write(document.end_text(self._seen))
            if not direct:
                os.replace(partial, path)
            self._written = len(self._seen)
        except OSError as error:
            self._fail(f"{self._path}: cannot be written: {error.strerror}")
            if not direct:
                with contextlib.suppress(OSError):
                    os.unlink(partial)

    def close(self) -> None:
        """At the program's end, or before another session."""
        if os.getpid() != self._process or not self._hooks:
            return
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        atexit.unregister(self.close)
        if self._recorder is not None and self._recorder.on:
            self._recorder.stop()
        if self.done:
            if self._written < len(self._seen):
                self._write()
        elif self.failed is None and not (self._silent_without_steps and self._ended == 0):
            steps = f"{self._ended} step{'' if self._ended == 1 else 's'}"
            self._fail(f"the program ended after {steps} (an optimizer's, or hotpack.step()), before the end of step "
                       f"{self._wanted}")

    def _fail(self, reason: str) -> None:
        self.failed = reason
        print(f"hotpack: no graph: {reason}", file=sys.stderr)


_session: Optional[Session] = None


def start(path: "str | os.PathLike[str]", step: int, gpu: "Optional[str]",
          observer: "Optional[Observer]" = None, silent_without_steps: bool = False) -> Session:
    """Raises Error, in one line, as record_graph()."""
    global _session
    try:
        import torch
    except ImportError as error:
        raise Error(f"a graph is recorded of PyTorch, which cannot be imported here: {error}") from None
    if step < 2:
        raise Error(f"step {step}: the first step makes the optimizer's state, so that recording begins with step 2")
    name = os.path.abspath(os.fspath(path))  # the program may change its directory
    folder = os.path.dirname(name)
    if os.path.isdir(name) or not os.access(folder, os.W_OK):
        raise Error(f"{os.fspath(path)}: cannot be written: " + ("a directory" if os.path.isdir(name) else
                                                                  "no writable directory"))
    if _session is not None and not _session.done and _session.failed is None:
        raise Error("a graph is being recorded already")
    if _session is not None:
        _session.close()
    _session = Session(torch, name, step, gpu, observer, silent_without_steps)
    _session.start()
    return _session
