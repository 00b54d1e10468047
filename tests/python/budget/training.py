"""Small models trained with a budget and without: every value must have the same bits."""

import contextlib
import random

import torch
from hotpack._budget import amount, session

FUNCTIONAL = torch.nn.functional


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.Linear(32, 64)]
        for _ in range(4):
            layers += [torch.nn.ReLU(inplace=True), torch.nn.Dropout(0.2), torch.nn.Linear(64, 64), torch.nn.Tanh(),
                       torch.nn.Linear(64, 64)]
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).pow(2).mean()

    @staticmethod
    def batch():
        return torch.randn(64, 32)


class Conv(torch.nn.Module):
    """Batch norm, in-place relu, pooling, dropout, a skip connection."""

    def __init__(self, memory_format=torch.contiguous_format):
        super().__init__()
        self.first = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(inplace=True))
        self.second = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8))
        self.pool = torch.nn.MaxPool2d(2)
        self.last = torch.nn.Linear(8 * 36, 10)
        self.format = memory_format
        self.to(memory_format=memory_format)

    def forward(self, x):
        x = self.first(x.to(memory_format=self.format))
        x = FUNCTIONAL.relu_(self.second(x) + x)
        x = FUNCTIONAL.dropout(self.pool(x), 0.1, self.training)
        return FUNCTIONAL.cross_entropy(self.last(x.flatten(1)), torch.arange(8))

    @staticmethod
    def batch():
        return torch.randn(8, 3, 12, 12)


class ChannelsLast(Conv):
    def __init__(self):
        super().__init__(torch.channels_last)


class Transformer(torch.nn.Module):
    """q, k and v are views of one storage."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(64, 32)
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(32) for _ in range(4))
        self.qkv = torch.nn.ModuleList(torch.nn.Linear(32, 96) for _ in range(2))
        self.out = torch.nn.ModuleList(torch.nn.Linear(32, 32) for _ in range(2))
        self.mlp = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(32, 128), torch.nn.GELU(), torch.nn.Linear(128, 32))
                                       for _ in range(2))
        self.head = torch.nn.Linear(32, 64, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for layer in range(2):
            q, k, v = (part.view(*part.shape[:2], 4, 8).transpose(1, 2)
                       for part in self.qkv[layer](self.norms[2 * layer](x)).split(32, dim=-1))
            a = FUNCTIONAL.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1 if self.training else 0.0)
            x = x + FUNCTIONAL.dropout(self.out[layer](a.transpose(1, 2).reshape(x.shape)), 0.1, self.training)
            x = x + self.mlp[layer](self.norms[2 * layer + 1](x))
        logits = self.head(x)
        return FUNCTIONAL.cross_entropy(logits[:, :-1].reshape(-1, 64).float(), tokens[:, 1:].reshape(-1))

    @staticmethod
    def batch():
        return torch.randint(0, 64, (4, 24))


class Lstm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(16, 32, num_layers=2, dropout=0.1)
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.last(self.lstm(x)[0]).pow(2).mean()

    @staticmethod
    def batch():
        return torch.randn(12, 8, 16)


MODELS = {kind.__name__: kind for kind in (Mlp, Conv, ChannelsLast, Transformer, Lstm)}


@contextlib.contextmanager
def budget(text, chooser=None, slice_bytes=2048, recompute=False):
    """A budget for tensors of the CPU. Yields its session; None: without."""
    if text is None:
        yield None
        return
    found = session.Session(torch, amount.parse(text), "cpu", chooser, slice_bytes, recompute)
    found.start()
    if recompute and chooser is not None:  # from the first operator on
        found._record()
    try:
        yield found
    finally:
        found.stop()


def by_dice(seed, treatments):
    drawn = random.Random(seed)
    return lambda _passing, _item, _treatment: drawn.choice(treatments)


def train(kind, within, *, steps=5, autocast=False, optimizer=torch.optim.AdamW, step=None, **options):
    """What a training leaves: losses, gradients, weights, buffers, optimizer state, the generator's state; and the
    session. step(model, batch, number) returns the loss, after its backward."""
    torch.manual_seed(0)
    model = kind()
    with budget(within, **options) as found:
        updates = optimizer(model.parameters(), lr=1e-2)
        left = []
        for number in range(steps):
            batch = kind.batch()
            if step is not None:
                loss = step(model, batch, number)
            else:
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                    loss = model(batch)
                loss.backward()
            left.append(loss.detach().clone())
            left += [p.grad.clone() for p in model.parameters() if p.grad is not None]
            updates.step()
            updates.zero_grad()
            del loss
    left += [p.detach().clone() for p in model.parameters()] + [b.clone() for b in model.buffers()]
    state = updates.state_dict()["state"]
    left += [value.clone() for entry in state.values() for value in entry.values() if torch.is_tensor(value)]
    left.append(torch.get_rng_state())
    return left, found


def same(one, other):
    return len(one) == len(other) and all(
        a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b)) for a, b in zip(one, other))


def bits(tensor):
    return tensor.detach().contiguous().reshape(-1).view(torch.uint8)
