"""What an operator takes: measured by events on a GPU, else by a roofline of a named one."""

from typing import Any, Optional

from .._errors import Error

# Bytes and operations a nanosecond at the data sheets' peaks: memory, single precision (on tensor cores where PyTorch
# uses them only if allowed, without), half precision (bfloat16) on tensor cores without sparsity.
GPUS: dict[str, dict[str, Any]] = {
    # NVIDIA H100 Tensor Core GPU data sheet, 2024: SXM.
    "H100 SXM": {"bytes": 3350, "single": 67e3, "half": 989e3,
                 "source": "NVIDIA H100 Tensor Core GPU data sheet (SXM)"},
    # NVIDIA H200 Tensor Core GPU data sheet, 2024: SXM.
    "H200 SXM": {"bytes": 4800, "single": 67e3, "half": 989e3,
                 "source": "NVIDIA H200 Tensor Core GPU data sheet (SXM)"},
    # NVIDIA A100 Tensor Core GPU data sheet, 2022: 80 GB SXM.
    "A100 SXM": {"bytes": 2039, "single": 19.5e3, "half": 312e3,
                 "source": "NVIDIA A100 Tensor Core GPU data sheet (80 GB SXM)"},
    # NVIDIA L40S GPU data sheet, 2023.
    "L40S": {"bytes": 864, "single": 91.6e3, "half": 362.05e3, "source": "NVIDIA L40S GPU data sheet"},
    # NVIDIA Ada GPU architecture whitepaper, appendix A, 2023.
    "RTX 4090": {"bytes": 1008, "single": 82.6e3, "half": 165.2e3,
                 "source": "NVIDIA Ada GPU architecture whitepaper (GeForce RTX 4090)"},
    # NVIDIA T4 Tensor Core GPU data sheet, 2019.
    "T4": {"bytes": 320, "single": 8.1e3, "half": 65e3, "source": "NVIDIA T4 Tensor Core GPU data sheet"},
}
DEFAULT = "H100 SXM"


def choose(name: "Optional[str]") -> str:
    """The GPU of this name, without regard to case or spaces; its part before a space is enough. Raises Error."""
    if not name:
        return DEFAULT
    wanted = name.lower().replace(" ", "")
    for gpu in GPUS:
        if wanted in (gpu.lower().replace(" ", ""), gpu.lower().split(" ")[0]):
            return gpu
    raise Error(f"no GPU '{name}' is known; there are {', '.join(GPUS)}")


def roofline(gpu: str, flops: float, moved: int, half: bool) -> int:
    """Nanoseconds, at least 1: the longer of arithmetic and memory at their peaks (Williams, Waterman, Patterson 2009).

    flops: of the operator; moved: bytes of its operands, each once."""
    peak = GPUS[gpu]
    longer: float = max(flops / peak["half" if half else "single"], moved / peak["bytes"])
    return max(1, round(longer))


class Timers:
    """A pair of events around each operator. The device sleeps first, so that it finds the work in its queue, and the
    host's time is not measured."""

    _CYCLES = 100_000  # some 60 us: longer than the host takes to submit the operator under the recorder

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def begin(self) -> Any:
        self._torch.cuda._sleep(self._CYCLES)
        first, second = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        return first, second

    def end(self, timer: Any) -> None:
        timer[1].record()

    def nanoseconds(self, timer: Any) -> int:
        """After the device has been waited for."""
        milliseconds: float = timer[0].elapsed_time(timer[1])
        return max(1, round(milliseconds * 1e6))
