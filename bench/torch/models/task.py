"""The interface of a model to the training loop: how to build it, its batches, and its loss.

A `Task` is one line of the table that `compare` prints. Batches are made on the host from a seed, so that two runs have
the same ones. Nothing is read from a disk or a network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

Batch = tuple  # of host tensors, and of plain numbers and lists that stay on the host


class HostSource:
    """Batches' contents, drawn on the host. Not thread-safe.

    Images are windows into one stretch of noise, because drawing tens of millions of numbers per step would take longer
    than the step.
    """

    _NOISE = 1 << 22

    def __init__(self, seed: int):
        self._generator = torch.Generator().manual_seed(seed)
        self._noise: torch.Tensor | None = None

    def integers(self, low: int, high: int, shape: tuple[int, ...]) -> torch.Tensor:
        """int64, each at least `low` and below `high`."""
        return torch.randint(low, high, shape, generator=self._generator)

    def integer(self, low: int, high: int) -> int:
        return int(self.integers(low, high, (1,)))

    def images(self, rows: int, channels: int, side: int) -> torch.Tensor:
        """float32, rows × channels × side × side."""
        if self._noise is None:
            self._noise = torch.randn(self._NOISE, generator=self._generator)
        count = rows * channels * side * side
        start = self.integer(0, self._NOISE)
        repeats = (start + count + self._NOISE - 1) // self._NOISE
        return self._noise.repeat(repeats)[start : start + count].view(rows, channels, side, side)

    def shares(self, total: int, parts: int) -> list[int]:
        """Returns `parts` numbers with the sum `total`, about as unequal as a router's."""
        weights = torch.rand(parts, generator=self._generator) + 0.5
        cuts = (weights.cumsum(0) / weights.sum() * total).long().tolist()
        cuts[-1] = total
        return [end - begin for begin, end in zip([0] + cuts[:-1], cuts)]


@dataclass(frozen=True)
class Task:
    name: str
    build: Callable[[bool], nn.Module]  # argument: tiny
    draw: Callable[[HostSource, int, bool], Batch]  # source, rows, tiny
    loss: Callable[[nn.Module, Batch], torch.Tensor]  # the batch as it lies on the device
    batch: int  # rows, at full size
    tiny_batch: int
    static: bool = True  # every step asks for the same sizes in the same order
    optimizer: str = "adamw"
    uses_cudnn: bool = False  # has convolutions or recurrent layers, for which cuDNN is asked if it is there
    shapes: str = ""  # what a row is, in words
    infer: Callable[[nn.Module, Batch], torch.Tensor] | None = None  # if not the model's answer to the batch without labels


def image_task(name: str, build: Callable[[bool], nn.Module], batch: int, side: int, tiny_side: int, **more) -> Task:
    """A classifier of RGB images. In training the model may answer with a pair: its output and auxiliary ones."""

    def classes(tiny: bool) -> int:
        return 10 if tiny else 1000

    def draw(source: HostSource, rows: int, tiny: bool) -> Batch:
        images = source.images(rows, 3, tiny_side if tiny else side)
        return images, source.integers(0, classes(tiny), (rows,))

    def loss(model: nn.Module, batch: Batch) -> torch.Tensor:
        images, labels = batch
        answer = model(images)
        main, others = answer if isinstance(answer, tuple) else (answer, ())
        total = nn.functional.cross_entropy(main, labels)
        for other in others:
            total = total + 0.3 * nn.functional.cross_entropy(other, labels)
        return total

    return Task(name, build, draw, loss, batch, tiny_batch=4, optimizer=more.pop("optimizer", "sgd"),
                shapes=f"3 x {side} x {side}", **more)


def language_loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Cross entropy of each next token; the batch is one tensor of rows × (length + 1) token numbers."""
    (tokens,) = batch
    logits = model(tokens[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def checkpointed(module: nn.Module, *inputs: torch.Tensor, enabled: bool) -> torch.Tensor:
    """Returns `module(*inputs)`. With `enabled` its activations are recomputed in the backward pass instead of kept."""
    if not (enabled and module.training):
        return module(*inputs)
    return torch.utils.checkpoint.checkpoint(module, *inputs, use_reentrant=False)


def parameter_count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
