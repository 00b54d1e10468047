"""U-Net (Ronneberger et al. 2015) with padded convolutions and batch normalisation: one class per pixel."""

from __future__ import annotations

import torch
from torch import nn

from .task import Batch, HostSource, Task, checkpointed

_CLASSES = 2


class DoubleConv(nn.Sequential):
    def __init__(self, channels: int, out: int):
        super().__init__(
            nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True),
            nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(inplace=True))


class UNet(nn.Module):
    def __init__(self, width: int = 64, depth: int = 4, classes: int = _CLASSES):
        super().__init__()
        self.checkpoint = False
        widths = [width << level for level in range(depth + 1)]
        self.first = DoubleConv(3, width)
        self.down = nn.ModuleList(DoubleConv(a, b) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths[-2::-1], widths[:0:-1]))
        self.join = nn.ModuleList(DoubleConv(2 * a, a) for a in widths[-2::-1])
        self.pool, self.last = nn.MaxPool2d(2), nn.Conv2d(width, classes, 1)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        levels = [self.first(images)]
        for down in self.down:
            levels.append(checkpointed(down, self.pool(levels[-1]), enabled=self.checkpoint))
        x = levels.pop()
        for up, join in zip(self.up, self.join):
            x = checkpointed(join, torch.cat([levels.pop(), up(x)], 1), enabled=self.checkpoint)
        return self.last(x)


def _draw(source: HostSource, rows: int, tiny: bool) -> Batch:
    side = 32 if tiny else 256
    return source.images(rows, 3, side), source.integers(0, _CLASSES, (rows, side, side))


def _loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


TASKS = [Task("unet", lambda tiny: UNet(4, 2) if tiny else UNet(), _draw, _loss, 16, 4, optimizer="adam",
              uses_cudnn=True, shapes="3 x 256 x 256")]
