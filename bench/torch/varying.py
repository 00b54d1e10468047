#!/usr/bin/env python3
"""Ten training jobs whose steps differ, as users write them: what a plan for repeated iterations does not cover.

    python bench/torch/varying.py beam_search --steps 40
    hotpack run --simulate --trace beam_search.trace -- python bench/torch/varying.py beam_search

Each takes what its step depends on from the seed, so that two runs ask for the same memory. Exit codes: 0, 2 (bad use: one
line on stderr).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator

import settings  # in this folder; imports no PyTorch

torch = settings.import_torch()
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

WORDS = 4000


def device_randint(high: int, *shape: int):
    return torch.randint(0, high, shape, device="cuda")


class Encoder(nn.Module):
    """Words in, logits out; `skip` leaves layers out."""

    def __init__(self, width: int = 256, layers: int = 6):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, WORDS)

    def forward(self, ids, skip: frozenset[int] = frozenset()):
        x = self.embedding(ids)
        for index, layer in enumerate(self.layers):
            if index not in skip:
                x = layer(x)
        return self.head(x)


class Convolutions(nn.Module):
    def __init__(self, width: int = 32):
        super().__init__()
        widths = [3, width, 2 * width, 4 * width]
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2))
            for a, b in zip(widths, widths[1:], strict=False))
        self.head = nn.Linear(4 * width, 100)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def learn(optimizer, loss) -> None:
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def language_loss(model, ids, **options):
    return functional.cross_entropy(model(ids, **options).flatten(0, 1), ids.flatten())


def image_step(model, optimizer, size: int) -> None:
    images = torch.randn(16, 3, size, size, device="cuda")
    learn(optimizer, functional.cross_entropy(model(images), device_randint(100, 16)))


def evaluation_larger() -> Iterator[None]:
    """An evaluation every ten steps asks for more than training: three times the batch."""
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step = 0
    while True:
        learn(optimizer, language_loss(model, device_randint(WORDS, 16, 128)))
        step += 1
        if step % 10 == 0:
            model.eval()
            with torch.no_grad():
                for _ in range(3):
                    language_loss(model, device_randint(WORDS, 96, 128)).item()
            model.train()
        yield


def growing_lengths() -> Iterator[None]:
    """A curriculum: sentences grow from step to step."""
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    length = 32
    while True:
        learn(optimizer, language_loss(model, device_randint(WORDS, 16, length)))
        length += 4
        yield


def image_sizes() -> Iterator[None]:
    """Multi-scale training: images of another size every other step."""
    model = Convolutions().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    while True:
        size = random.randrange(64, 193, 16)
        for _ in range(2):
            image_step(model, optimizer, size)
            yield


def recurrent_steps() -> Iterator[None]:
    """A recurrent cell over time steps whose number is another in each batch."""
    embedding, cell, head = nn.Embedding(WORDS, 256).cuda(), nn.LSTMCell(256, 256).cuda(), nn.Linear(256, WORDS).cuda()
    optimizer = torch.optim.Adam([*embedding.parameters(), *cell.parameters(), *head.parameters()])
    while True:
        ids = device_randint(WORDS, 32, random.randint(10, 40))
        state, losses = None, []
        for t in range(ids.shape[1] - 1):
            state = cell(embedding(ids[:, t]), state)
            losses.append(functional.cross_entropy(head(state[0]), ids[:, t + 1]))
        learn(optimizer, torch.stack(losses).mean())
        yield


def beam_search() -> Iterator[None]:
    """Training, and every fifth step a beam search whose sequences grow and end at different lengths."""
    model = Encoder(layers=3).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    step = 0
    while True:
        learn(optimizer, language_loss(model, device_randint(WORDS, 16, 64)))
        step += 1
        if step % 5 == 0:
            with torch.no_grad():
                beams = device_randint(WORDS, 4, 1)
                for _ in range(random.randint(8, 24)):
                    scores = functional.log_softmax(model(beams)[:, -1], -1)
                    _, best = scores.flatten().topk(4)
                    beams = torch.cat([beams[best // WORDS % 4], (best % WORDS)[:, None]], 1)
        yield


def accumulation_changes() -> Iterator[None]:
    """The number of batches an optimizer step is another from step to step."""
    model = Encoder(layers=4).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    while True:
        for _ in range(random.choice((1, 2, 4))):
            language_loss(model, device_randint(WORDS, 16, 96)).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield


class NotFinite(Exception):
    pass


def early_exit() -> Iterator[None]:
    """An exception ends every seventh step or so in the middle: in the forward pass, before or after the loss."""
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def hook(*_):
        if random.random() < 0.025:
            raise NotFinite

    for layer in model.layers:
        layer.register_forward_hook(hook)
    while True:
        try:
            learn(optimizer, language_loss(model, device_randint(WORDS, 16, 128)))
        except NotFinite:
            optimizer.zero_grad()
            continue
        yield


def two_models() -> Iterator[None]:
    """Two models in turn, of which the second is stepped a drawn number of times."""
    first, second = Encoder(layers=4).cuda(), Convolutions().cuda()
    optimizers = [torch.optim.AdamW(first.parameters()), torch.optim.SGD(second.parameters(), lr=0.01, momentum=0.9)]
    while True:
        learn(optimizers[0], language_loss(first, device_randint(WORDS, 16, 96)))
        yield
        for _ in range(random.randint(1, 3)):
            image_step(second, optimizers[1], 96)
            yield


def layer_drop() -> Iterator[None]:
    """Each layer is left out of a step with a chance of one fifth (Fan 2020)."""
    model = Encoder(layers=8).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    while True:
        skip = frozenset(i for i in range(8) if random.random() < 0.2)
        learn(optimizer, language_loss(model, device_randint(WORDS, 16, 96), skip=skip))
        yield


def longer_loops() -> Iterator[None]:
    """A loop over a shared layer, now and then longer than ever before (a recurrent transformer)."""
    embedding, head = nn.Embedding(WORDS, 256).cuda(), nn.Linear(256, WORDS).cuda()
    layer = nn.TransformerEncoderLayer(256, 4, 512, batch_first=True).cuda()
    optimizer = torch.optim.AdamW([*embedding.parameters(), *layer.parameters(), *head.parameters()])
    most = 4
    while True:
        most += random.random() < 0.3
        ids = device_randint(WORDS, 16, 64)
        x = embedding(ids)
        for _ in range(random.randint(2, most)):
            x = layer(x)
        learn(optimizer, functional.cross_entropy(head(x).flatten(0, 1), ids.flatten()))
        yield


JOBS: dict[str, Callable[[], Iterator[None]]] = {
    job.__name__: job
    for job in (evaluation_larger, growing_lengths, image_sizes, recurrent_steps, beam_search, accumulation_changes, early_exit,
                two_models, layer_drop, longer_loops)
}


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        print(f"{self.prog}: {message}", file=sys.stderr)
        sys.exit(2)


def main(arguments: list[str], program: str = "varying.py") -> int:
    parser = Parser(prog=program, description="Trains a job whose steps differ.",
                    epilog="; ".join(f"{name}: {job.__doc__}" for name, job in JOBS.items()))
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--steps", type=int, default=60, help="yields of the job: optimizer steps (60)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error(f"--steps {options.steps} is not a positive number")
    if not torch.cuda.is_available():
        parser.error("no CUDA device here (hotpack run --simulate -- brings a simulated one)")
    torch.manual_seed(options.seed)
    random.seed(options.seed)
    steps = JOBS[options.job]()
    for _ in range(options.steps):
        next(steps)
    print(f"live peak, MiB: {torch.cuda.max_memory_allocated() / 2**20:.1f}")
    print(f"reserved peak, MiB: {torch.cuda.max_memory_reserved() / 2**20:.1f}")
    settings.drain_autograd(torch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
