"""GoogLeNet (Szegedy et al. 2014) with batch normalisation and its two auxiliary classifiers, which count in training.

The third branch has a 3 × 3 convolution where the paper has 5 × 5, as in the widely published weights; the parameter
count is theirs.
"""

from __future__ import annotations

import torch
from torch import nn

from .task import checkpointed, image_task


def _conv(channels: int, out: int, size: int, **more) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, out, size, bias=False, **more), nn.BatchNorm2d(out, eps=0.001),
                         nn.ReLU(inplace=True))


class Inception(nn.Module):
    def __init__(self, channels: int, one: int, reduce3: int, three: int, reduce5: int, five: int, pool: int):
        super().__init__()
        self.branches = nn.ModuleList([
            _conv(channels, one, 1),
            nn.Sequential(_conv(channels, reduce3, 1), _conv(reduce3, three, 3, padding=1)),
            nn.Sequential(_conv(channels, reduce5, 1), _conv(reduce5, five, 3, padding=1)),
            nn.Sequential(nn.MaxPool2d(3, 1, 1, ceil_mode=True), _conv(channels, pool, 1)),
        ])
        self.channels = one + three + five + pool

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Auxiliary(nn.Module):
    def __init__(self, channels: int, width: int, hidden: int, classes: int):
        super().__init__()
        self.reduce = nn.Sequential(nn.AdaptiveAvgPool2d(4), _conv(channels, width, 1))
        self.classifier = nn.Sequential(nn.Linear(width * 16, hidden), nn.ReLU(inplace=True), nn.Dropout(0.7),
                                        nn.Linear(hidden, classes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(torch.flatten(self.reduce(x), 1))


_MODULES = (  # (the paper's table 1), None: a pool
    (64, 96, 128, 16, 32, 32), (128, 128, 192, 32, 96, 64), None,
    (192, 96, 208, 16, 48, 64), (160, 112, 224, 24, 64, 64), (128, 128, 256, 24, 64, 64), (112, 144, 288, 32, 64, 64),
    (256, 160, 320, 32, 128, 128), None, (256, 160, 320, 32, 128, 128), (384, 192, 384, 48, 128, 128),
)
_AUXILIARY_BEFORE = (4, 7)  # positions in _MODULES: after 4a and 4d


class GoogLeNet(nn.Module):
    def __init__(self, classes: int = 1000, divide: int = 1):
        """`divide`: every width is divided by it."""
        super().__init__()
        self.checkpoint = False
        first, second = 64 // divide, 192 // divide
        self.stem = nn.Sequential(
            _conv(3, first, 7, stride=2, padding=3), nn.MaxPool2d(3, 2, ceil_mode=True), _conv(first, first, 1),
            _conv(first, second, 3, padding=1), nn.MaxPool2d(3, 2, ceil_mode=True))
        modules: list[nn.Module] = []
        auxiliaries: list[nn.Module] = []
        channels = second
        for position, widths in enumerate(_MODULES):
            if position in _AUXILIARY_BEFORE:
                auxiliaries.append(Auxiliary(channels, 128 // divide, 1024 // divide, classes))
            if widths is None:
                modules.append(nn.MaxPool2d(3 if position == 2 else 2, 2, ceil_mode=True))
                continue
            modules.append(Inception(channels, *(width // divide for width in widths)))
            channels = modules[-1].channels
        self.inceptions, self.auxiliaries = nn.ModuleList(modules), nn.ModuleList(auxiliaries)
        self.pool, self.dropout = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.2)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, images: torch.Tensor):
        x, others = self.stem(images), []
        for position, module in enumerate(self.inceptions):
            if self.training and position in _AUXILIARY_BEFORE:
                others.append(self.auxiliaries[_AUXILIARY_BEFORE.index(position)](x))
            x = checkpointed(module, x, enabled=self.checkpoint)
        answer = self.classifier(self.dropout(torch.flatten(self.pool(x), 1)))
        return (answer, tuple(others)) if self.training else answer


TASKS = [image_task("googlenet", lambda tiny: GoogLeNet(10, 8) if tiny else GoogLeNet(), 64, 224, 64, uses_cudnn=True)]
