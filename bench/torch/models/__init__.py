"""The models by name. Each file has a family and lists its tasks, with its own definitions. Nothing is downloaded."""

from __future__ import annotations

from . import alexnet, googlenet, gpt2, inception_resnet, llama, moe, resnet, seq2seq, unet, vgg, vit
from .task import Batch, HostSource, Task, parameter_count

_FAMILIES = (alexnet, googlenet, resnet, inception_resnet, seq2seq, vgg, unet, gpt2, llama, vit, moe)

TASKS: dict[str, Task] = {task.name: task for family in _FAMILIES for task in family.TASKS}

__all__ = ["Batch", "HostSource", "TASKS", "Task", "parameter_count"]
