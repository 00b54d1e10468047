"""AlexNet in its one-tower form (Krizhevsky 2014, "One weird trick"): five convolutions, three linear layers."""

from __future__ import annotations

import torch
from torch import nn

from .task import checkpointed, image_task


class AlexNet(nn.Module):
    def __init__(self, classes: int = 1000, divide: int = 1):
        """`divide`: every width is divided by it."""
        super().__init__()
        self.checkpoint = False
        c1, c2, c3, c4, hidden = (n // divide for n in (64, 192, 384, 256, 4096))
        self.features = nn.Sequential(
            nn.Conv2d(3, c1, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(c1, c2, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
            nn.Conv2d(c2, c3, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(c3, c4, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(c4, c4, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2),
        )
        self.pool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            nn.Dropout(0.5), nn.Linear(c4 * 36, hidden), nn.ReLU(inplace=True),
            nn.Dropout(0.5), nn.Linear(hidden, hidden), nn.ReLU(inplace=True), nn.Linear(hidden, classes),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = checkpointed(self.features, images, enabled=self.checkpoint)
        return self.classifier(torch.flatten(self.pool(features), 1))


TASKS = [image_task("alexnet", lambda tiny: AlexNet(10, 8) if tiny else AlexNet(), 128, 224, 64, uses_cudnn=True)]
