"""The configurations of the paper's figures, and the recordings of them that a figure is made from.

Two sources of requests:
  chainer  the requests of Chainer 3, by tables of layers (bench/models, written by build/bin/paper_events). Nearest to
           the paper: its two optima agree to the byte. No program is run.
  pytorch  the requests of PyTorch when it trains models of the same names (bench/torch/train.py) under hotpack's
           recorder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "torch"))
from cells import SIMULATED_MEMORY, Failure, Job, Machine, find_python, has_gpu  # noqa: E402

INFERENCE, TRAINING = "inference", "training"
SOURCES = ("chainer", "pytorch")
SEQ2SEQ_STEPS = 10  # section 5.3: "immediately after processing 10 mini-batches"
CONVOLUTIONAL = {"chainer": ("alexnet", "googlenet", "resnet50", "inception_resnet_v1", "inception_resnet_v2"),
                 "pytorch": ("alexnet", "googlenet", "resnet50", "inception_resnet")}


@dataclass(frozen=True)
class Case:
    network: str
    mode: str
    batch: int
    steps: int

    @property
    def name(self) -> str:
        return f"{self.network}, {self.mode}" + (f", batch {self.batch}" if self.mode == TRAINING else "")

    @property
    def is_seq2seq(self) -> bool:
        return self.network.startswith("seq2seq")


def cases(source: str, size: str) -> list[Case]:
    """The configurations of Figures 2 and 4. `size`: "full", "quick" (one batch per network) or "smoke" (small
    networks, for a test)."""
    if size == "smoke":
        seq2seq = "seq2seq_tiny" if source == "chainer" else "seq2seq"
        return [Case("alexnet", INFERENCE, 1, 12), Case("alexnet", TRAINING, 2, 12),
                Case(seq2seq, INFERENCE, 1, 3), Case(seq2seq, TRAINING, 3, SEQ2SEQ_STEPS)]
    steps, found = 12, []  # by then hotpack serves all of them
    for network in CONVOLUTIONAL[source]:
        found += [Case(network, TRAINING, batch, steps) for batch in ((32,) if size == "quick" else (32, 64, 128))]
        found.append(Case(network, INFERENCE, 1, steps))
    found += [Case("seq2seq", TRAINING, batch, SEQ2SEQ_STEPS) for batch in ((32,) if size == "quick" else (32, 64, 128, 256))]
    return [*found, Case("seq2seq", INFERENCE, 1, 30)]


class Recorder:
    """Makes recordings. Raises Failure, also for a case whose requests cannot be recorded."""

    def __init__(self, options: argparse.Namespace, scratch: Path):
        self._options, self._scratch = options, scratch
        self._machine = None
        if options.events == "pytorch":
            python = find_python(options.build)
            # Memory alone counts, and that of the simulated device may be more than a card has.
            os.environ.setdefault("SIMGPU_MEMORY", SIMULATED_MEMORY)
            self._machine = Machine(python, options.build, True, "preload", options.timeout)
        elif not (options.build / "bin" / "paper_events").exists():
            raise Failure(f"{options.build / 'bin' / 'paper_events'} is not built")

    def take(self, case: Case) -> Path:
        path = self._scratch / f"{case.network}-{case.mode}-{case.batch}"
        if self._machine is None:
            path = path.with_name(path.name + ".csv")
            _run(self._options.build / "bin" / "paper_events", case.network, case.mode, case.batch, case.steps, path)
            return path
        path = path.with_name(path.name + ".trace")
        arguments = ["--batch", str(case.batch), "--steps", str(case.steps), "--ranges"]
        arguments += ["--tiny"] if self._options.size == "smoke" else []
        arguments += ["--no-cudnn"] if self._options.no_cudnn else []
        arguments += ["--inference"] if case.mode == INFERENCE else []
        self._machine.run(Job(case.network, tuple(arguments), case.mode), "hotpack", path)
        return path


def _run(program: Path, *arguments: object) -> str:
    done = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Failure(f"{program.name} {' '.join(map(str, arguments[:4]))}: {said[0]}")
    return done.stdout


def hotpack(options: argparse.Namespace, *arguments: object) -> str:
    """Returns the output of the built command. Raises Failure."""
    return _run(options.build / "bin" / "hotpack", *arguments)


def each(options: argparse.Namespace, recorder: Recorder, chosen: list[Case]) -> Iterator[tuple[Case, Path | Failure]]:
    for case in chosen:
        try:
            yield case, recorder.take(case)
        except Failure as failure:
            yield case, failure


__all__ = ["Case", "Failure", "Recorder", "cases", "each", "find_python", "has_gpu", "hotpack"]
