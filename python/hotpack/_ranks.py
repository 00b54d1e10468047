"""The part of `hotpack need --ranks` in the program: its process groups become fake ones, so that one process is enough
for one rank of many. Nothing is sent. A collective gives this rank its own data back, as if all had the same.

Only with HOTPACK_NEED_RANKS in the environment. Nothing here imports torch at its own import.
"""

import os
from types import ModuleType
from typing import Any

_RANKS = "HOTPACK_NEED_RANKS"

_started = False


def wanted() -> int:
    """The number of ranks; 0: the program keeps its own process groups."""
    text = os.environ.get(_RANKS, "")
    return int(text) if text.isdigit() else 0


def _options(fake: Any) -> Any:
    """All ranks have the same data. An older PyTorch, without this option, leaves what is received as it was."""
    options = fake.FakeProcessGroup.Options()
    if hasattr(options, "simulate_uniform_ranks"):
        options.simulate_uniform_ranks = True
    return options


def start(torch: ModuleType) -> None:
    """When torch has been imported. Without torch.distributed: nothing."""
    global _started
    if _started or not torch.distributed.is_available():
        return
    _started = True
    import torch.distributed as distributed
    from torch.distributed import device_mesh, distributed_c10d
    from torch.testing._internal.distributed import fake_pg

    init, new_group = distributed_c10d.init_process_group, distributed_c10d.new_group

    def init_fake(*_arguments: Any, **keywords: Any) -> None:
        """Whatever backend, store and address were asked for. Rank and number are the environment's."""
        kept = {name: value for name, value in keywords.items() if name in ("timeout", "group_name")}
        if not distributed.is_initialized():
            init("fake", store=fake_pg.FakeStore(), rank=int(os.environ["RANK"]), world_size=wanted(),
                 pg_options=_options(fake_pg), **kept)

    def new_fake_group(ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None,
                       *more: Any, **keywords: Any) -> Any:
        keywords.pop("device_id", None)
        return new_group(ranks, timeout, "fake", _options(fake_pg), *more[:2], **keywords)

    for module in (distributed, distributed_c10d, device_mesh):
        for name, function in (("init_process_group", init_fake), ("new_group", new_fake_group)):
            if hasattr(module, name):
                setattr(module, name, function)
