"""cuDNN's choice of algorithms by measurement, torch.backends.cudnn.benchmark.

For it PyTorch asks the allocator how large a free block is, which it refuses to ask of a pluggable one: the next
convolution would raise. So it stays off; algorithms are chosen by cuDNN's heuristics, as without it.
"""

import sys
from types import ModuleType

_said = False


def _say() -> None:
    global _said
    if not _said:
        print(
            "hotpack: torch.backends.cudnn.benchmark stays off: PyTorch's benchmark mode does not work with a "
            "pluggable allocator",
            file=sys.stderr,
            flush=True,
        )
    _said = True


def keep_benchmark_off(torch: ModuleType) -> None:
    """Turning it on does nothing from now on, and says so once."""
    turn = torch._C._set_cudnn_benchmark
    if torch._C._get_cudnn_benchmark():
        turn(False)
        _say()

    def set_benchmark(wanted: object) -> None:
        if wanted is True:
            _say()
        else:
            turn(wanted)

    torch._C._set_cudnn_benchmark = set_benchmark  # torch.backends.cudnn.flags
    attribute = vars(type(torch.backends.cudnn)).get("benchmark")
    if hasattr(attribute, "setter"):  # it has the function that was there when it was made
        attribute.setter = set_benchmark
