"""The training loop: batches, steps, evaluations, and measurements."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

import torch
import torch.utils.checkpoint
from models import Batch, HostSource, Task
from settings import SIMULATED_DEVICE
from torch import nn

_OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01),
}

_LAST_STEPS = 9  # whose time on the device is taken


class Loop:
    """One run. It can run only once."""

    def __init__(self, task: Task, options: argparse.Namespace):
        self.losses: list[float] = []  # one a step, the mean over its batches
        self.rows = options.batch or (task.tiny_batch if options.tiny else task.batch)
        self.optimizer_name = options.optimizer or task.optimizer
        self._task, self._options = task, options
        self._device = torch.device(options.device)
        self._times: list[float] = []  # seconds a step
        self._ends: list[torch.cuda.Event] = []  # of the steps, if the device's time is wanted
        self._train_source, self._test_source = HostSource(options.seed), HostSource(options.seed + 1)
        if options.no_cudnn:
            torch.backends.cudnn.enabled = False
            torch.backends.cuda.enable_cudnn_sdp(False)  # attention asks for cuDNN whatever the line above says

    def run(self) -> dict[str, object]:
        """Trains, and returns the figures."""
        torch.manual_seed(self._options.seed)
        with self._device:
            model = self._task.build(self._options.tiny)
        model.checkpoint = self._options.checkpoint
        if hasattr(model, "routing"):
            model.routing = self._options.routing or ("host" if self.is_simulated else "device")
        if self._options.inference:
            for _ in range(self._options.steps):
                with self._range():
                    self._infer(model)
            return self._figures()
        optimizer = _OPTIMIZERS[self.optimizer_name](model.parameters())
        scaler = torch.amp.GradScaler(self._device.type, enabled=self._options.precision == "amp")
        every = self._options.evaluate_every
        for _ in range(self._options.epochs):
            model.train()
            for step in range(1, self._options.steps + 1):
                with self._range():
                    self._step(model, optimizer, scaler)
                if every is not None and step % every == 0:
                    self._evaluate(model)
            if self._options.epochs > 1:
                self._evaluate(model)
        return self._figures()

    @property
    def is_static(self) -> bool:
        """Every training step makes the same requests in the same order."""
        return self._task.static

    @property
    def is_simulated(self) -> bool:
        return self._device.type == "cuda" and torch.cuda.get_device_name() == SIMULATED_DEVICE

    def _autocast(self) -> AbstractContextManager:
        types = {"amp": torch.float16, "bf16": torch.bfloat16}
        if self._options.precision not in types:
            return nullcontext()
        return torch.autocast(self._device.type, types[self._options.precision])

    def _range(self) -> AbstractContextManager:
        return torch.cuda.nvtx.range("step") if self._options.ranges else nullcontext()

    def _draw(self, source: HostSource, count: int) -> list[Batch]:
        batches = [self._task.draw(source, self.rows, self._options.tiny) for _ in range(count)]
        if self._options.pin and self._device.type == "cuda":
            return [tuple(_map_tensors(batch, torch.Tensor.pin_memory)) for batch in batches]
        return batches

    def _to_device(self, batch: Batch) -> Batch:
        return tuple(_map_tensors(batch, lambda part: part.to(self._device, non_blocking=self._options.pin)))

    def _step(self, model: nn.Module, optimizer: torch.optim.Optimizer, scaler: torch.amp.GradScaler) -> None:
        batches = self._draw(self._train_source, self._options.accumulate)
        start = time.perf_counter()
        optimizer.zero_grad()
        total = 0.0
        for batch in batches:
            inputs = self._to_device(batch)
            with self._autocast():
                loss = self._task.loss(model, inputs) / len(batches)
            scaler.scale(loss).backward()
            total += loss.item()
        scaler.step(optimizer)
        scaler.update()
        if self._options.device_times:
            self._ends.append(torch.cuda.Event(enable_timing=True))
            self._ends[-1].record()
        if self._device.type == "cuda":
            torch.cuda.synchronize()
        self._times.append(time.perf_counter() - start)
        self.losses.append(total)

    @torch.no_grad()
    def _infer(self, model: nn.Module) -> None:
        (batch,) = self._draw(self._test_source, 1)
        model.eval()
        start = time.perf_counter()
        with self._autocast():
            answer = (self._task.infer or _forward)(model, self._to_device(batch))
        self.losses.append(float(answer.flatten()[0].item()))  # waits for the device, as a user of the answer does
        self._times.append(time.perf_counter() - start)

    @torch.no_grad()
    def _evaluate(self, model: nn.Module) -> None:
        model.eval()
        for batch in self._draw(self._test_source, self._options.evaluation_batches):
            with self._autocast():
                self._task.loss(model, self._to_device(batch))
        model.train()

    def _figures(self) -> dict[str, object]:
        return {
            "steps": len(self.losses),
            "first_loss": self.losses[0],
            "last_loss": self.losses[-1],
            "step_ms": round(1000 * statistics.median(self._times[self._options.warm_up:]), 3),
            "step_mean_ms": round(1000 * statistics.fmean(self._times[self._options.warm_up:]), 3),
            "device_step_ms": self._device_step(),
            "torch_reserved_peak": self._torch_figure("max_memory_reserved"),
            "torch_allocated_peak": self._torch_figure("max_memory_allocated"),
        }

    def _device_step(self) -> float | None:
        """The median of the last steps, from end to end on the device. None: not wanted."""
        ends = self._ends[-_LAST_STEPS:]
        return statistics.median(begin.elapsed_time(end) for begin, end in zip(ends, ends[1:])) if len(ends) > 1 else None

    def _torch_figure(self, name: str) -> int | None:
        """Bytes; None if PyTorch's own allocator is not in use, or has no such figure."""
        if self._device.type != "cuda" or self._options.allocator not in ("default", "expandable", "async"):
            return None
        return getattr(torch.cuda, name)()


def _forward(model: nn.Module, batch: Batch) -> torch.Tensor:
    """The model's output for the inputs alone; labels come last."""
    answer = model(*batch[:-1])
    return answer[0] if isinstance(answer, tuple) else answer


def _map_tensors(batch: Batch, function) -> Iterator[object]:
    return (function(part) if isinstance(part, torch.Tensor) else part for part in batch)
