#!/usr/bin/env python3
"""Trains models of timm and transformers as their users have them, of full size and with random weights.

    hotpack record --simulate --graph step.json -- python bench/torch/library.py convnext_tiny
    python bench/torch/library.py list

Exit codes: 0, 2 (bad use), 4 (a package is missing). Both print one line on stderr.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import settings  # in this folder; imports no PyTorch

Step = Callable[[Any], Any]  # from a model to the loss of a batch
MISSING = 4  # the exit code where a package is


def _image_model(name: str, rows: int) -> tuple[Any, Step]:
    import timm
    import torch

    model = timm.create_model(name, pretrained=False)

    def loss(model: Any) -> Any:
        answers = model(torch.randn(rows, 3, 224, 224, device="cuda"))
        return torch.nn.functional.cross_entropy(answers, torch.zeros(rows, dtype=torch.long, device="cuda"))

    return model, loss


def _language_model(kind: str, configuration: str, rows: int, words: int, **changes: object) -> tuple[Any, Step]:
    import torch
    import transformers

    model = getattr(transformers, kind)(getattr(transformers, configuration)(**changes))

    def loss(model: Any) -> Any:
        tokens = torch.ones(rows, words, dtype=torch.long, device="cuda")
        return model(input_ids=tokens, labels=tokens).loss

    return model, loss


MODELS: dict[str, Callable[[], tuple[Any, Step]]] = {
    "convnext_tiny": lambda: _image_model("convnext_tiny", 32),
    "swin_tiny": lambda: _image_model("swin_tiny_patch4_window7_224", 32),
    "efficientnet_b0": lambda: _image_model("efficientnet_b0", 64),
    "bert_base": lambda: _language_model("BertForMaskedLM", "BertConfig", 16, 512),
    "t5_small": lambda: _language_model("T5ForConditionalGeneration", "T5Config", 16, 512, decoder_start_token_id=0),
    "opt_125m": lambda: _language_model("OPTForCausalLM", "OPTConfig", 4, 1024),
}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="library.py", description="Trains one of the models; MODEL list names them.")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--steps", type=int, default=4, help="optimizer steps (4)")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        settings.fail(f"--steps {options.steps}: not a positive number")
    if options.model == "list":
        print("\n".join(MODELS))
        return 0
    if options.model not in MODELS:
        settings.fail(f"{options.model} is no model; there are {', '.join(MODELS)}")
    torch = settings.import_torch()
    if not torch.cuda.is_available():
        settings.fail("no CUDA device here (hotpack run --simulate -- brings a simulated one)")
    torch.manual_seed(1)
    try:
        model, loss = MODELS[options.model]()
    except ImportError as error:
        print(f"library.py: {options.model}: {error}", file=sys.stderr)
        return MISSING
    model.cuda().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(options.steps):
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    reserved = torch.cuda.max_memory_reserved() if torch.cuda.memory.get_allocator_backend() == "native" else 0
    print(f"torch_reserved_peak: {reserved or 'unknown'}")
    settings.drain_autograd(torch)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
