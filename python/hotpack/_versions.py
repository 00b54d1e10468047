"""What hotpack works with. docs/pytorch.md has the same table, and says what of it has been tried."""

import os
import platform
from types import ModuleType

from ._errors import Error

TORCH_FROM = (2, 4)   # the optional hooks of CUDAPluggableAllocator that hotpack needs
TORCH_TRIED = (2, 15)
CUDA_FROM = 12
CUDA_TRIED = 13
DRIVER_FROM = 12000   # cuDriverGetVersion
GLIBC_FROM = (2, 34)
SIMULATED_CUDA = 13   # of the simulated runtime's soname, libcudart.so.13


def _numbers(text: str) -> "tuple[int, int]":
    parts = text.split("+")[0].split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (IndexError, ValueError):
        return 0, 0


def check_platform() -> None:
    if os.name != "posix" or platform.system() != "Linux" or platform.machine() != "x86_64":
        raise Error(f"hotpack runs on Linux on x86-64, not on {platform.system()} {platform.machine()}")
    name, version = platform.libc_ver()
    if name == "glibc" and _numbers(version) < GLIBC_FROM:
        raise Error(f"hotpack needs glibc {GLIBC_FROM[0]}.{GLIBC_FROM[1]} or later; this is {version}")


def check_torch(torch: ModuleType, simulated: bool) -> None:
    """Error, in one line, if this PyTorch cannot be served."""
    if _numbers(torch.__version__) < TORCH_FROM:
        raise Error(f"hotpack needs PyTorch {TORCH_FROM[0]}.{TORCH_FROM[1]} or later; this is {torch.__version__}")
    if torch.version.cuda is None:
        raise Error(f"this PyTorch ({torch.__version__}) is built without CUDA; install a CUDA build")
    cuda = _numbers(torch.version.cuda)[0]
    if cuda < CUDA_FROM:
        raise Error(f"hotpack needs a PyTorch for CUDA {CUDA_FROM} or later; this one is for CUDA {torch.version.cuda}")
    if simulated and cuda != SIMULATED_CUDA:
        raise Error(f"the simulated device needs a PyTorch for CUDA {SIMULATED_CUDA}; this one is for CUDA "
                    f"{torch.version.cuda}")


def check_driver(version: int) -> None:
    if version < DRIVER_FROM:
        raise Error(f"hotpack needs an NVIDIA driver for CUDA {DRIVER_FROM // 1000} or later; this one is for CUDA "
                    f"{version // 1000}.{version % 1000 // 10}")
