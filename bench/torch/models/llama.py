"""A decoder in the manner of Llama: RMSNorm, rotary positions, SwiGLU, grouped-query attention, no biases."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .task import Batch, HostSource, Task, checkpointed, language_loss


@dataclass(frozen=True)
class LlamaSize:
    layers: int = 16
    heads: int = 16
    groups: int = 4  # heads of keys and values
    width: int = 1024
    feed: int = 2816
    vocabulary: int = 32000
    length: int = 1024


TINY = LlamaSize(layers=2, heads=4, groups=2, width=32, feed=88, vocabulary=100, length=16)


def rotate(x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
    """Turns each pair (x[i], x[i + half]) of the last dimension by its position's angle."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], -1)


class Attention(nn.Module):
    def __init__(self, size: LlamaSize):
        super().__init__()
        self.heads, self.groups = size.heads, size.groups
        self.head_width = size.width // size.heads
        self.query = nn.Linear(size.width, size.width, bias=False)
        self.key = nn.Linear(size.width, size.groups * self.head_width, bias=False)
        self.value = nn.Linear(size.width, size.groups * self.head_width, bias=False)
        self.out = nn.Linear(size.width, size.width, bias=False)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape

        def split(y: torch.Tensor, heads: int) -> torch.Tensor:
            return y.view(rows, length, heads, self.head_width).transpose(1, 2)

        query = rotate(split(self.query(x), self.heads), cosine, sine)
        key = rotate(split(self.key(x), self.groups), cosine, sine)
        value = split(self.value(x), self.groups)
        repeats = self.heads // self.groups
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


class FeedForward(nn.Module):
    def __init__(self, size: LlamaSize):
        super().__init__()
        self.gate = nn.Linear(size.width, size.feed, bias=False)
        self.up = nn.Linear(size.width, size.feed, bias=False)
        self.down = nn.Linear(size.feed, size.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, size: LlamaSize):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(size.width, eps=1e-5), nn.RMSNorm(size.width, eps=1e-5)
        self.attention, self.feed = Attention(size), FeedForward(size)

    def forward(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), cosine, sine)
        return x + self.feed(self.norm2(x))


class Llama(nn.Module):
    def __init__(self, size: LlamaSize = LlamaSize()):
        super().__init__()
        self.checkpoint = False
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.width, eps=1e-5)
        self.head = nn.Linear(size.width, size.vocabulary, bias=False)
        half = size.width // size.heads // 2
        angles = torch.outer(torch.arange(size.length).float(), 10000.0 ** (-torch.arange(half).float() / half))
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens)
        length = tokens.shape[1]
        cosine, sine = self.cosine[:length], self.sine[:length]
        for block in self.blocks:
            x = checkpointed(block, x, cosine, sine, enabled=self.checkpoint)
        return self.head(self.norm(x))


def _draw(source: HostSource, rows: int, tiny: bool) -> Batch:
    size = TINY if tiny else LlamaSize()
    return (source.integers(0, size.vocabulary, (rows, size.length + 1)),)


TASKS = [Task("llama", lambda tiny: Llama(TINY if tiny else LlamaSize()), _draw, language_loss, 4, 4,
              shapes=f"{LlamaSize().length} tokens")]
