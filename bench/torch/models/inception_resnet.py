"""Inception-ResNet-v2 (Szegedy et al. 2016), without the auxiliary classifier."""

from __future__ import annotations

import torch
from torch import nn

from .task import checkpointed, image_task


class Conv(nn.Sequential):
    def __init__(self, channels: int, out: int, size, stride: int = 1, padding=0):
        super().__init__(nn.Conv2d(channels, out, size, stride, padding, bias=False), nn.BatchNorm2d(out, eps=0.001),
                         nn.ReLU(inplace=True))


class Branches(nn.Module):
    """Branches of one input, concatenated in the channels."""

    def __init__(self, *branches: nn.Module):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Residual(nn.Module):
    """x + scale × (1 × 1 convolution of the branches), then ReLU unless it is the last."""

    def __init__(self, channels: int, branches: Branches, joined: int, scale: float, relu: bool = True):
        super().__init__()
        self.branches, self.up, self.scale, self.relu = branches, nn.Conv2d(joined, channels, 1), scale, relu

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x + self.scale * self.up(self.branches(x))
        return nn.functional.relu(y, inplace=True) if self.relu else y


def _block35(w) -> Residual:
    c = w(320)
    return Residual(c, Branches(
        Conv(c, w(32), 1),
        nn.Sequential(Conv(c, w(32), 1), Conv(w(32), w(32), 3, padding=1)),
        nn.Sequential(Conv(c, w(32), 1), Conv(w(32), w(48), 3, padding=1), Conv(w(48), w(64), 3, padding=1)),
    ), w(32) * 2 + w(64), 0.17)


def _block17(w) -> Residual:
    c = w(1088)
    return Residual(c, Branches(
        Conv(c, w(192), 1),
        nn.Sequential(Conv(c, w(128), 1), Conv(w(128), w(160), (1, 7), padding=(0, 3)),
                      Conv(w(160), w(192), (7, 1), padding=(3, 0))),
    ), 2 * w(192), 0.10)


def _block8(w, last: bool) -> Residual:
    c = w(2080)
    return Residual(c, Branches(
        Conv(c, w(192), 1),
        nn.Sequential(Conv(c, w(192), 1), Conv(w(192), w(224), (1, 3), padding=(0, 1)),
                      Conv(w(224), w(256), (3, 1), padding=(1, 0))),
    ), w(192) + w(256), 1.0 if last else 0.20, relu=not last)


class InceptionResNet(nn.Module):
    def __init__(self, classes: int = 1000, divide: int = 1, repeats: tuple[int, int, int] = (10, 20, 10)):
        """`divide`: every width is divided by it (at most 16)."""
        super().__init__()
        self.checkpoint = False

        def w(width: int) -> int:
            return width // divide

        self.stem = nn.Sequential(
            Conv(3, w(32), 3, 2), Conv(w(32), w(32), 3), Conv(w(32), w(64), 3, padding=1), nn.MaxPool2d(3, 2),
            Conv(w(64), w(80), 1), Conv(w(80), w(192), 3), nn.MaxPool2d(3, 2))
        mixed5 = Branches(
            Conv(w(192), w(96), 1),
            nn.Sequential(Conv(w(192), w(48), 1), Conv(w(48), w(64), 5, padding=2)),
            nn.Sequential(Conv(w(192), w(64), 1), Conv(w(64), w(96), 3, padding=1), Conv(w(96), w(96), 3, padding=1)),
            nn.Sequential(nn.AvgPool2d(3, 1, 1, count_include_pad=False), Conv(w(192), w(64), 1)))
        mixed6 = Branches(
            Conv(w(320), w(384), 3, 2),
            nn.Sequential(Conv(w(320), w(256), 1), Conv(w(256), w(256), 3, padding=1), Conv(w(256), w(384), 3, 2)),
            nn.MaxPool2d(3, 2))
        mixed7 = Branches(
            nn.Sequential(Conv(w(1088), w(256), 1), Conv(w(256), w(384), 3, 2)),
            nn.Sequential(Conv(w(1088), w(256), 1), Conv(w(256), w(288), 3, 2)),
            nn.Sequential(Conv(w(1088), w(256), 1), Conv(w(256), w(288), 3, padding=1), Conv(w(288), w(320), 3, 2)),
            nn.MaxPool2d(3, 2))
        few, many, last = repeats
        self.blocks = nn.ModuleList(
            [mixed5] + [_block35(w) for _ in range(few)] + [mixed6] + [_block17(w) for _ in range(many)] + [mixed7] +
            [_block8(w, block + 1 == last) for block in range(last)] + [Conv(w(2080), w(1536), 1)])
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(w(1536), classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = checkpointed(block, x, enabled=self.checkpoint)
        return self.classifier(torch.flatten(self.pool(x), 1))


TASKS = [image_task("inception_resnet", lambda tiny: InceptionResNet(10, 16, (1, 1, 2)) if tiny else InceptionResNet(),
                    16, 299, 96, uses_cudnn=True)]
