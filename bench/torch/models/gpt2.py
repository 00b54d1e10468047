"""GPT-2 (Radford et al. 2019): pre-norm decoder, learnt positions, tied embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .task import Batch, HostSource, Task, checkpointed, language_loss


@dataclass(frozen=True)
class Gpt2Size:
    layers: int = 12
    heads: int = 12
    width: int = 768
    vocabulary: int = 50257
    length: int = 1024
    dropout: float = 0.1


SMALL = Gpt2Size()
MEDIUM = Gpt2Size(layers=24, heads=16, width=1024)
TINY = Gpt2Size(layers=2, heads=2, width=32, vocabulary=100, length=16)


class Block(nn.Module):
    def __init__(self, size: Gpt2Size):
        super().__init__()
        self.size = size
        width = size.width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(size.dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        heads = self.size.heads
        query, key, value = (part.view(rows, length, heads, width // heads).transpose(1, 2)
                             for part in self.attention(self.norm1(x)).split(width, 2))
        mixed = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, dropout_p=self.size.dropout if self.training else 0.0)
        x = x + self.dropout(self.project(mixed.transpose(1, 2).reshape(rows, length, width)))
        return x + self.dropout(self.feed(self.norm2(x)))


class Gpt2(nn.Module):
    def __init__(self, size: Gpt2Size = SMALL):
        super().__init__()
        self.checkpoint = False
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.length, size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.dropout(self.tokens(tokens) + self.positions(places))
        for block in self.blocks:
            x = checkpointed(block, x, enabled=self.checkpoint)
        return nn.functional.linear(self.norm(x), self.tokens.weight)


def _task(name: str, size: Gpt2Size, batch: int) -> Task:
    def draw(source: HostSource, rows: int, tiny: bool) -> Batch:
        used = TINY if tiny else size
        return (source.integers(0, used.vocabulary, (rows, used.length + 1)),)

    return Task(name, lambda tiny: Gpt2(TINY if tiny else size), draw, language_loss, batch, 4,
                shapes=f"{size.length} tokens")


TASKS = [_task("gpt2_small", SMALL, 4), _task("gpt2_medium", MEDIUM, 2)]
