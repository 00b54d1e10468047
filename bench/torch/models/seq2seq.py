"""Sequence to sequence: LSTM encoder, LSTM decoder with dot-product attention (Luong et al. 2015).

A batch is padded to its longest sentence, so lengths, sizes and the number of requests differ from batch to batch. The
decoder goes word by word, fed with the right words. `seq2seq_bucketed` rounds lengths up to a few values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from .task import Batch, HostSource, Task


@dataclass(frozen=True)
class Seq2SeqSize:
    vocabulary: int = 20000
    width: int = 512
    layers: int = 2
    shortest: int = 5
    longest: int = 50


TINY = Seq2SeqSize(vocabulary=50, width=16, layers=1, shortest=2, longest=6)
_BUCKET = 10  # words
_GENERATED = 100  # words an inference answers with, as in Sekiyama et al. 2018, section 5.3


class Seq2Seq(nn.Module):
    def __init__(self, size: Seq2SeqSize = Seq2SeqSize()):
        super().__init__()
        self.checkpoint = False
        self.source = nn.Embedding(size.vocabulary, size.width)
        self.target = nn.Embedding(size.vocabulary, size.width)
        self.encoder = nn.LSTM(size.width, size.width, size.layers, batch_first=True)
        self.cells = nn.ModuleList(nn.LSTMCell(size.width, size.width) for _ in range(size.layers))
        self.combine = nn.Linear(2 * size.width, size.width)
        self.head = nn.Linear(size.width, size.vocabulary)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Token numbers, rows × words each; answers rows × target words × vocabulary."""
        memory, (hidden, cell) = self.encoder(self.source(source))
        states = list(zip(hidden.unbind(0), cell.unbind(0)))
        outputs = []
        for word in self.target(target).unbind(1):
            x = word
            for layer, lstm in enumerate(self.cells):
                states[layer] = lstm(x, states[layer])
                x = states[layer][0]
            weights = torch.softmax(torch.bmm(memory, x.unsqueeze(2)), 1)
            context = torch.bmm(weights.transpose(1, 2), memory).squeeze(1)
            outputs.append(torch.tanh(self.combine(torch.cat([x, context], 1))))
        return self.head(torch.stack(outputs, 1))

    def generate(self, source: torch.Tensor, words: int) -> torch.Tensor:
        """Token numbers, rows × words: each time the likeliest next one. Begins with token 0. For inference: where a
        training's `forward` keeps a word's tensors until the next word, this gives them back at once."""
        memory, (hidden, cell) = self.encoder(self.source(source))
        states = list(zip(hidden.unbind(0), cell.unbind(0)))
        answer = [source.new_zeros(len(source))]
        for _ in range(words):
            answer.append(self._likeliest(memory, states, self.target(answer[-1])))
        return torch.stack(answer[1:], 1)

    def _likeliest(self, memory: torch.Tensor, states: list, x: torch.Tensor) -> torch.Tensor:
        for layer, lstm in enumerate(self.cells):
            states[layer] = lstm(x, states[layer])
            x = states[layer][0]
        weights = torch.softmax(torch.bmm(memory, x.unsqueeze(2)), 1)
        context = torch.bmm(weights.transpose(1, 2), memory).squeeze(1)
        return self.head(torch.tanh(self.combine(torch.cat([x, context], 1)))).argmax(1)


def _loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    source, target = batch
    logits = model(source, target[:, :-1])
    return nn.functional.cross_entropy(logits.flatten(0, 1), target[:, 1:].flatten())


def _task(name: str, bucketed: bool) -> Task:
    def draw(source: HostSource, rows: int, tiny: bool) -> Batch:
        size = TINY if tiny else Seq2SeqSize()

        def words() -> int:  # of the longest of `rows` sentences
            count = int(source.integers(size.shortest, size.longest + 1, (max(1, rows // 16),)).max())
            bucket = 3 if tiny else _BUCKET
            return -(-count // bucket) * bucket if bucketed else count

        return (source.integers(0, size.vocabulary, (rows, words())),
                source.integers(0, size.vocabulary, (rows, words() + 1)))

    return Task(name, lambda tiny: Seq2Seq(TINY if tiny else Seq2SeqSize()), draw, _loss, 64, 4, static=False,
                optimizer="adam", uses_cudnn=True, infer=lambda model, batch: model.generate(batch[0], _GENERATED),
                shapes="5 to 50 words" + (", in tens" if bucketed else ""))


TASKS = [_task("seq2seq", False), _task("seq2seq_bucketed", True)]
