"""ViT-B/16 (Dosovitskiy et al. 2020)."""

from __future__ import annotations

import torch
from torch import nn

from .task import checkpointed, image_task


class Block(nn.Module):
    def __init__(self, width: int, heads: int, feed: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, feed), nn.GELU(), nn.Linear(feed, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.attention(self.norm1(x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.feed(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, side: int = 224, patch: int = 16, layers: int = 12, width: int = 768, heads: int = 12,
                 classes: int = 1000):
        super().__init__()
        self.checkpoint = False
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, (side // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width) for _ in range(layers))
        self.norm, self.classifier = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = checkpointed(block, x, enabled=self.checkpoint)
        return self.classifier(self.norm(x)[:, 0])


TASKS = [image_task("vit", lambda tiny: VisionTransformer(32, 8, 2, 32, 4, 10) if tiny else VisionTransformer(),
                    32, 224, 32, optimizer="adamw", uses_cudnn=True)]
