"""VGG-16 without batch normalisation (Simonyan and Zisserman 2014, configuration D)."""

from __future__ import annotations

import torch
from torch import nn

from .task import checkpointed, image_task

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))  # channels, convolutions


class Vgg16(nn.Module):
    def __init__(self, classes: int = 1000, divide: int = 1):
        """`divide`: every width is divided by it."""
        super().__init__()
        self.checkpoint = False
        stages, channels = [], 3
        for width, convolutions in _STAGES:
            layers: list[nn.Module] = []
            for _ in range(convolutions):
                layers += [nn.Conv2d(channels, width // divide, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width // divide
            stages.append(nn.Sequential(*layers, nn.MaxPool2d(2)))
        self.stages = nn.ModuleList(stages)
        hidden = 4096 // divide
        self.pool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(channels * 49, hidden), nn.ReLU(inplace=True), nn.Dropout(0.5),
            nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(hidden, classes),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = images
        for stage in self.stages:
            x = checkpointed(stage, x, enabled=self.checkpoint)
        return self.classifier(torch.flatten(self.pool(x), 1))


TASKS = [image_task("vgg16", lambda tiny: Vgg16(10, 16) if tiny else Vgg16(), 32, 224, 32, uses_cudnn=True)]
