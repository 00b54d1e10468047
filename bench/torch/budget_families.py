"""The models that `budget` trains, by family: small ones with random weights."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

Maker = Callable[[], tuple[Any, Callable[[Any], Any]]]  # of a model, and a function that draws a batch and returns the loss


class MissingPackage(Exception):
    """A family's package cannot be imported."""


def _package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingPackage(f"{name} cannot be imported: {error}") from None


def bench_models() -> dict[str, Maker]:
    from models import TASKS, HostSource

    def maker(task):
        def make():
            source = HostSource(1)
            return task.build(True), lambda model: task.loss(model, task.draw(source, task.tiny_batch, True))
        return make

    return {name: maker(task) for name, task in TASKS.items()}


def torchvision_models() -> dict[str, Maker]:
    import torch

    torchvision = _package("torchvision")

    def maker(name):
        def make():
            model = getattr(torchvision.models, name)(num_classes=10)

            def loss(model):
                answer = model(torch.randn(4, 3, 64, 64))
                return torch.nn.functional.cross_entropy(answer if isinstance(answer, torch.Tensor) else answer[0], torch.arange(4))

            return model, loss
        return make

    names = ("resnet18", "densenet121", "mobilenet_v3_small", "efficientnet_b0", "swin_t", "convnext_tiny", "regnet_y_400mf",
             "shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5")
    return {name: maker(name) for name in names}


def timm_models() -> dict[str, Maker]:
    import torch

    timm = _package("timm")
    drops = {"drop_rate": 0.1, "drop_path_rate": 0.1}  # classifier's dropout, and stochastic depth
    image = {"img_size": 64}
    settings: dict[str, dict[str, object]] = {
        "vit_tiny_patch16_224": {**image, "depth": 4, **drops, "attn_drop_rate": 0.1, "proj_drop_rate": 0.1},
        "resnet26d": drops,
        "convnext_atto": drops,
        "mixer": {**image, "patch_size": 8, "num_blocks": 3, "embed_dim": 128, "proj_drop_rate": 0.1, **drops},
        "mobilenetv3_small_050": {"drop_rate": 0.1},
        "ghostnet_050": {"drop_rate": 0.1},
    }

    def maker(name):
        def make():
            if name == "mixer":  # the named ones have a fixed size
                model = timm.models.mlp_mixer.MlpMixer(num_classes=10, **settings[name])
            else:
                model = timm.create_model(name, pretrained=False, num_classes=10, **settings[name])
            return model, lambda model: torch.nn.functional.cross_entropy(model(torch.randn(4, 3, 64, 64)), torch.arange(4))
        return make

    return {f"timm_{name}": maker(name) for name in settings}


def transformers_models() -> dict[str, Maker]:
    import torch

    hf = _package("transformers")

    wide = {"vocab_size": 128}
    configurations = {
        "hf_gpt2": (hf.GPT2LMHeadModel, lambda: hf.GPT2Config(n_layer=3, n_embd=64, n_head=4, n_positions=64, bos_token_id=0,
                                                             eos_token_id=0, **wide)),
        "hf_llama": (hf.LlamaForCausalLM, lambda: hf.LlamaConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=3,
                                                                num_attention_heads=4, num_key_value_heads=2, **wide)),
        "hf_bert": (hf.BertForMaskedLM, lambda: hf.BertConfig(hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
                                                             intermediate_size=128, **wide)),
        "hf_t5": (hf.T5ForConditionalGeneration, lambda: hf.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4,
                                                                    decoder_start_token_id=0, **wide)),
        "hf_opt": (hf.OPTForCausalLM, lambda: hf.OPTConfig(hidden_size=64, ffn_dim=128, num_hidden_layers=3, num_attention_heads=4,
                                                          max_position_embeddings=64, word_embed_proj_dim=64, **wide)),
    }

    def maker(kind, configuration):
        def make():
            def loss(model):
                tokens = torch.randint(2, 128, (4, 32))
                return model(input_ids=tokens, labels=tokens).loss

            return kind(configuration()), loss
        return make

    return {name: maker(*entry) for name, entry in configurations.items()}


FAMILIES = {"bench": bench_models, "torchvision": torchvision_models, "timm": timm_models, "transformers": transformers_models}
