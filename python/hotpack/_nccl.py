"""The NCCL backend of torch.distributed.

From 2.15 on PyTorch has two. The newer one (`nccl2`), which the name "nccl" stands for there, asks the allocator for a
snapshot and for its events. PyTorch refuses both to every pluggable allocator, and its process groups end the process:
their destructor throws. The older one asks for neither.
"""

import os
from types import ModuleType
from typing import Any, NoReturn

from ._errors import Error

_CHOICE = "TORCH_DIST_USE_NCCL2"  # PyTorch's own choice between the two; where it is set, nothing changes here


def use_older_backend(torch: ModuleType) -> None:
    """From now on "nccl" is the older backend, and the newer ones raise Error instead of ending the process. O(1)."""
    if os.environ.get(_CHOICE) or not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d

    register = getattr(distributed_c10d, "_register_builtin_nccl_as_legacy", None)
    if register is None or not hasattr(distributed_c10d, "ProcessGroupNCCL"):
        return
    register()
    for name in ("ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):
        if hasattr(distributed_c10d, name):
            setattr(distributed_c10d, name, _refuse)


def _refuse(*_arguments: Any, **_keywords: Any) -> NoReturn:
    raise Error('this NCCL backend of PyTorch works with no pluggable allocator; use "nccl", which is the older one '
                "after hotpack.enable()")
