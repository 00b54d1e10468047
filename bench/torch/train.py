#!/usr/bin/env python3
"""A training loop as a user writes it, for the models in models/: the program whose memory `compare` measures.

    python bench/torch/train.py resnet50 --steps 30
    hotpack run --simulate -- python bench/torch/train.py gpt2_small

Inputs are made on the host from the seed and copied to the device in each step. Prints the figures of the run, one per
line. Exit codes: 0, 2 (bad use: one line on stderr), 3 (the device is out of memory).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import settings  # in this folder; imports no PyTorch


class Parser(argparse.ArgumentParser):
    def error(self, message: str):
        settings.fail(message)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = Parser(prog="train.py", description="Trains one of the models; MODEL list names them.")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--batch", type=positive, help="rows a step (by model)")
    parser.add_argument("--steps", type=positive, default=30, help="optimizer steps an epoch (30)")
    parser.add_argument("--epochs", type=positive, default=1, help="with more than one: an evaluation after each (1)")
    parser.add_argument("--optimizer", choices=("sgd", "adam", "adamw"), help="(by model)")
    parser.add_argument("--precision", choices=("fp32", "amp", "bf16"), default="fp32",
                        help="amp: float16 where it is safe, with a scaled loss; bf16: bfloat16 where it is safe (fp32)")
    parser.add_argument("--accumulate", type=positive, default=1, help="batches an optimizer step (1)")
    parser.add_argument("--evaluate-every", type=positive, metavar="N", help="evaluate after every N steps")
    parser.add_argument("--evaluation-batches", type=positive, default=2, metavar="N", help="batches an evaluation (2)")
    parser.add_argument("--inference", action="store_true",
                        help="no training: every step is one forward pass (seq2seq generates 100 words a sentence)")
    parser.add_argument("--warm-up", type=int, default=0, metavar="N", help="the first N of the steps are not timed (0)")
    parser.add_argument("--checkpoint", action="store_true", help="compute activations again instead of keeping them")
    parser.add_argument("--ranges", action="store_true", help="name each step to profilers (a range \"step\" of NVTX)")
    parser.add_argument("--pin", action="store_true", help="copy inputs from pinned memory, without waiting")
    parser.add_argument("--tiny", action="store_true", help="a model and a batch of the same kind, small enough for a test")
    parser.add_argument("--routing", choices=("device", "host"),
                        help="what routes tokens in a mixture of experts (host on the simulated device, else device)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--no-cudnn", action="store_true", help="convolutions and LSTMs by PyTorch's own kernels")
    parser.add_argument("--device-times", action="store_true", help="also write what the last steps take on the device, to --json")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--allocator", choices=settings.ALLOCATORS,
                        help="PyTorch's own, with expandable segments or without, or over cudaMallocAsync; hotpack.enable(); "
                             "the preloaded library that `hotpack run` brings; or RMM's pool or arena, on a GPU (default: what "
                             "the process was started with)")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="write each step's loss, in hexadecimal")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write settings and figures")
    options = parser.parse_args(arguments)
    if not 0 <= options.warm_up < options.steps:
        settings.fail(f"--warm-up {options.warm_up}: not below the {options.steps} steps")
    if options.inference and (options.epochs > 1 or options.accumulate > 1 or options.evaluate_every or options.precision == "amp"):
        settings.fail("--inference trains nothing: no epochs, accumulated batches, evaluations or scaled losses")
    if options.device_times and (options.device != "cuda" or options.inference):
        settings.fail("--device-times is for training on a device")
    for path in (options.losses, options.json):
        if path is not None and not path.parent.is_dir():
            settings.fail(f"{path}: no such directory")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    options.allocator = settings.choose_allocator(options.allocator, options.device)
    torch = settings.import_torch()
    settings.check_allocator(options.allocator, torch)
    from models import TASKS

    if options.model == "list":
        print("\n".join(TASKS))
        return 0
    if options.model not in TASKS:
        settings.fail(f"{options.model} is no model; there are {', '.join(TASKS)}")
    if options.device == "cuda" and not torch.cuda.is_available():
        settings.fail("no CUDA device here (hotpack run --simulate -- brings a simulated one)")
    hotpack = settings.enable_hotpack() if options.allocator == "hotpack" else None
    rmm = settings.enable_rmm(options.allocator, torch) if options.allocator in settings.RMM else None
    from loop import Loop

    loop = Loop(TASKS[options.model], options)
    try:
        figures = loop.run()
    except (torch.OutOfMemoryError, RuntimeError) as error:
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error).replace("_", " "):  # RMM's has _
            raise
        print(f"train.py: {str(error).splitlines()[0]}", file=sys.stderr)
        settings.drain_autograd(torch)
        return 3
    if hotpack is not None:
        figures["hotpack"] = hotpack.stats()
    elif "budget" in (brought := settings.stats_of_run()):
        figures["hotpack"] = brought
    if rmm is not None:
        figures["rmm"] = {"reserved_peak": rmm.allocation_counts.peak_bytes}
    report(options, loop, figures)
    settings.drain_autograd(torch)
    return 0


def report(options: argparse.Namespace, loop, figures: dict) -> None:
    described = settings.describe(options, loop)
    for name, value in described.items():
        print(f"{name}: {value}")
    for name in ("steps", "first_loss", "last_loss", "step_ms", "step_mean_ms", "torch_reserved_peak", "torch_allocated_peak"):
        value = figures[name]
        print(f"{name}: {'unknown' if value is None else value}")
    if options.losses is not None:
        options.losses.write_text("".join(f"{loss.hex()}\n" for loss in loop.losses))
    if options.json is not None:
        options.json.write_text(json.dumps({"settings": described, "figures": figures}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
