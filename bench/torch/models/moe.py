"""A decoder whose feed-forward layers are a mixture of experts: each token goes to the best two, and the sizes of the
experts' tensors follow from the data.

Routing on the `device` sorts the tokens by the router's output and reads the counts back, as real routers do. On the
simulated device no value is computed, and every token would go to the same expert. So the counts are then drawn on the
`host` with the batch: as unequal, as varying, and the same in every run. The sizes and the order of all requests are
those of such real counts. The router's own layers run as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .task import Batch, HostSource, Task, checkpointed


@dataclass(frozen=True)
class MoeSize:
    layers: int = 6
    heads: int = 8
    width: int = 512
    feed: int = 2048
    experts: int = 8
    chosen: int = 2  # experts a token
    vocabulary: int = 32000
    length: int = 512


TINY = MoeSize(layers=2, heads=2, width=32, feed=64, experts=4, vocabulary=100, length=16)


class Mixture(nn.Module):
    def __init__(self, size: MoeSize):
        super().__init__()
        self.chosen = size.chosen
        self.router = nn.Linear(size.width, size.experts, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(size.width, size.feed), nn.GELU(), nn.Linear(size.feed, size.width))
            for _ in range(size.experts))

    def forward(self, x: torch.Tensor, counts: list[int] | None) -> torch.Tensor:
        """`x`: tokens × width. `counts`: tokens per expert, with the sum tokens × chosen; None: the router decides."""
        weights, experts = torch.topk(torch.softmax(self.router(x), -1), self.chosen, -1)
        order = torch.argsort(experts.flatten(), stable=True)  # places in tokens × chosen, expert by expert
        if counts is None:
            counts = torch.bincount(experts.flatten(), minlength=len(self.experts)).tolist()
        tokens = order // self.chosen
        scale = weights.flatten()[order].unsqueeze(1)
        y = torch.zeros_like(x)
        for expert, places, factor in zip(self.experts, tokens.split(counts), scale.split(counts)):
            if places.numel() > 0:
                y = y.index_add(0, places, (expert(x[places]) * factor).to(y.dtype))
        return y


class Block(nn.Module):
    def __init__(self, size: MoeSize):
        super().__init__()
        self.heads = size.heads
        self.norm1, self.norm2 = nn.LayerNorm(size.width), nn.LayerNorm(size.width)
        self.attention, self.project = nn.Linear(size.width, 3 * size.width), nn.Linear(size.width, size.width)
        self.mixture = Mixture(size)

    def forward(self, x: torch.Tensor, counts: list[int] | None) -> torch.Tensor:
        rows, length, width = x.shape
        query, key, value = (part.view(rows, length, self.heads, width // self.heads).transpose(1, 2)
                             for part in self.attention(self.norm1(x)).split(width, 2))
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.mixture(self.norm2(x).flatten(0, 1), counts).view_as(x)


class MixtureDecoder(nn.Module):
    def __init__(self, size: MoeSize = MoeSize()):
        super().__init__()
        self.checkpoint = False
        self.routing = "device"  # or "host": the batch's counts are followed
        self.tokens = nn.Embedding(size.vocabulary, size.width)
        self.positions = nn.Embedding(size.length, size.width)
        self.blocks = nn.ModuleList(Block(size) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, tokens: torch.Tensor, counts: list[list[int]]) -> torch.Tensor:
        """`counts`: a list per layer, used if `routing` is "host"."""
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block, drawn in zip(self.blocks, counts):
            x = checkpointed(block, x, drawn if self.routing == "host" else None, enabled=self.checkpoint)
        return nn.functional.linear(self.norm(x), self.tokens.weight)


def _draw(source: HostSource, rows: int, tiny: bool) -> Batch:
    size = TINY if tiny else MoeSize()
    tokens = source.integers(0, size.vocabulary, (rows, size.length + 1))
    counts = [source.shares(rows * size.length * size.chosen, size.experts) for _ in range(size.layers)]
    return tokens, counts


def _loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    tokens, counts = batch
    logits = model(tokens[:, :-1], counts)
    return nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


TASKS = [Task("moe", lambda tiny: MixtureDecoder(TINY if tiny else MoeSize()), _draw, _loss, 8, 4, static=False,
              shapes=f"{MoeSize().length} tokens, {MoeSize().experts} experts")]
