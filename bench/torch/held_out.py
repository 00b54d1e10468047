#!/usr/bin/env python3
"""Ten more training jobs whose steps differ, for which no setting of envelopes was chosen: used as varying.py is.

    hotpack run --simulate --trace detection.trace -- python bench/torch/held_out.py detection
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator

import varying  # in this folder
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint
from varying import WORDS, Convolutions, Encoder, device_randint, language_loss, learn, torch


def detection() -> Iterator[None]:
    """Images of any shape, each with another number of boxes, or none."""
    model, box_head = Convolutions(24).cuda(), nn.Linear(96, 4).cuda()
    optimizer = torch.optim.SGD([*model.parameters(), *box_head.parameters()], lr=0.01, momentum=0.9)
    while True:
        x = torch.randn(8, 3, random.randrange(96, 225, 8), random.randrange(96, 225, 8), device="cuda")
        for block in model.blocks:
            x = block(x)
        losses = []
        for image in x:
            boxes = 16 * random.randint(0, 40)
            if boxes > 0:
                features = image.flatten(1).t()
                found = box_head(features[device_randint(features.shape[0], boxes)])
                losses.append(functional.smooth_l1_loss(found, torch.randn(boxes, 4, device="cuda")))
        learn(optimizer, torch.stack(losses).mean())
        yield


def mixed_precision() -> Iterator[None]:
    """Half precision with a scaler and clipping, over sentences of any length."""
    model = Encoder(256, 5).cuda()
    optimizer, scaler = torch.optim.AdamW(model.parameters()), torch.amp.GradScaler("cuda")
    while True:
        with torch.autocast("cuda", dtype=torch.float16):
            loss = language_loss(model, device_randint(WORDS, 24, random.randint(20, 140)))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        yield


def policy_gradient() -> Iterator[None]:
    """Sequences are generated up to a drawn length, then learnt from in two passes of two batches."""
    model = Encoder(192, 3).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        with torch.no_grad():
            ids = device_randint(WORDS, 16, 4)
            for _ in range(random.randint(6, 20)):
                ids = torch.cat([ids, model(ids)[:, -1:].argmax(-1)], 1)
        for part in [*ids.split(8)] * 2:
            learn(optimizer, language_loss(model, part))
        yield


def checkpoints() -> Iterator[None]:
    """Layers are computed again in the backward pass; lengths come from buckets."""
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    while True:
        ids = device_randint(WORDS, 12, random.choice([48, 64, 80, 96, 128, 160, 200]))
        x = model.embedding(ids)
        for layer in model.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        learn(optimizer, functional.cross_entropy(model.head(x).flatten(0, 1), ids.flatten()))
        yield


def graphs() -> Iterator[None]:
    """Messages along the edges of graphs with any number of nodes and edges."""
    layers = nn.ModuleList(nn.Linear(128, 128) for _ in range(4)).cuda()
    head = nn.Linear(128, 10).cuda()
    optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()])
    while True:
        nodes = random.randint(2000, 9000)
        x = torch.randn(nodes, 128, device="cuda")
        source, target = device_randint(nodes, 2, nodes * random.randint(3, 8))
        for layer in layers:
            x = torch.relu(x + torch.zeros_like(x).index_add(0, target, layer(x)[source]))
        learn(optimizer, functional.cross_entropy(head(x), device_randint(10, nodes)))
        yield


def diffusion() -> Iterator[None]:
    """Images of three sizes, averaged weights, and every twelfth step a few turns of sampling."""
    encoder = Convolutions(32).cuda().blocks
    decoder = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in [(128, 64), (64, 32), (32, 3)]).cuda()
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.AdamW(parameters)
    average = [parameter.detach().clone() for parameter in parameters]

    def denoise(x):
        for layer in encoder:
            x = layer(x)
        for layer in decoder:
            x = torch.relu(layer(x))
        return x

    step = 0
    while True:
        size = random.choice([64, 96, 128])
        x = torch.randn(12, 3, size, size, device="cuda")
        learn(optimizer, functional.mse_loss(denoise(x + torch.randn_like(x)), x))
        step += 1
        with torch.no_grad():
            torch._foreach_mul_(average, 0.99)
            torch._foreach_add_(average, [parameter.detach() for parameter in parameters], alpha=0.01)
            if step % 12 == 0:
                sample = torch.randn(32, 3, 128, 128, device="cuda")
                for _ in range(random.randint(3, 6)):
                    sample = sample - 0.1 * denoise(sample)
        yield


class Adapter(nn.Module):
    """A frozen layer and what is learnt of it, of low rank (Hu 2021)."""

    def __init__(self, base: nn.Linear):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down, self.up = nn.Linear(base.in_features, 8, bias=False), nn.Linear(8, base.out_features, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def adapters() -> Iterator[None]:
    """A frozen model with adapters, four batches of any length a step."""
    model = Encoder(384).requires_grad_(False)
    for layer in model.layers:
        layer.linear1, layer.linear2 = Adapter(layer.linear1), Adapter(layer.linear2)
    model.cuda()
    optimizer = torch.optim.AdamW([parameter for parameter in model.parameters() if parameter.requires_grad])
    while True:
        for _ in range(4):
            (language_loss(model, device_randint(WORDS, 8, random.randint(40, 160))) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


def contrastive() -> Iterator[None]:
    """Two views of batches of three sizes, and a queue of earlier ones that is cut at a drawn length."""
    model, projection = Convolutions(28).cuda(), nn.Linear(112, 64).cuda()
    optimizer = torch.optim.SGD([*model.parameters(), *projection.parameters()], lr=0.1)
    queue = torch.empty(0, 64, device="cuda")

    def view(batch: int):
        x = torch.randn(batch, 3, 96, 96, device="cuda")
        for block in model.blocks:
            x = block(x)
        return functional.normalize(projection(x.mean((2, 3))), dim=1)

    while True:
        batch = random.choice([24, 32, 40])
        first, others = view(batch), torch.cat([view(batch), queue])
        learn(optimizer, functional.cross_entropy(first @ others.t(), torch.arange(batch, device="cuda")))
        queue = others.detach()[: random.randint(256, 2048)]
        yield


def epochs() -> Iterator[None]:
    """Epochs of thirteen steps, the last of fewer images; an evaluation after each, its last batch shorter, too."""
    model = Convolutions(40).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def images(count: int):
        return torch.randn(count, 3, 112, 112, device="cuda")

    while True:
        for batch in [32] * 12 + [9]:
            learn(optimizer, functional.cross_entropy(model(images(batch)), device_randint(100, batch)))
            if batch == 9:
                model.eval()
                with torch.no_grad():
                    for count in (64, 64, 64, 21):
                        model(images(count)).argmax(1).sum().item()
                model.train()
            yield


def translation() -> Iterator[None]:
    """Source and target of any length; the batch is as large as the longer one allows."""
    model = nn.Transformer(256, 4, 3, 3, 512, batch_first=True).cuda()
    embedding, head = nn.Embedding(WORDS, 256).cuda(), nn.Linear(256, WORDS).cuda()
    optimizer = torch.optim.Adam([*model.parameters(), *embedding.parameters(), *head.parameters()])
    while True:
        source, target = random.randint(10, 60), random.randint(10, 60)
        batch = 1600 // max(source, target)
        given, wanted = device_randint(WORDS, batch, source), device_randint(WORDS, batch, target)
        mask = nn.Transformer.generate_square_subsequent_mask(target, device="cuda")
        out = head(model(embedding(given), embedding(wanted), tgt_mask=mask, tgt_is_causal=True))
        learn(optimizer, functional.cross_entropy(out.flatten(0, 1), wanted.flatten()))
        yield


JOBS = (detection, mixed_precision, policy_gradient, checkpoints, graphs, diffusion, adapters, contrastive, epochs, translation)

if __name__ == "__main__":
    varying.JOBS.clear()
    varying.JOBS.update({job.__name__: job for job in JOBS})
    sys.exit(varying.main(sys.argv[1:], "held_out.py"))
