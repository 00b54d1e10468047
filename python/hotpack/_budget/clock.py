"""What the work of a device takes."""

import time
from typing import Any

UNKNOWN_RATE = 12e9  # of a link to the host that was not measured, bytes a second: PCIe 4 under load


class Clock:
    """Moments: of the host on a CPU, of the current stream on a GPU."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._cuda = device == "cuda"

    def now(self) -> Any:
        """The present moment. On a GPU: when the stream gets there."""
        if not self._cuda:
            return time.perf_counter()
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def between(self, begin: Any, end: Any) -> float:
        """Seconds. Waits for a GPU to get to the end. Moments of two GPUs have none: 0."""
        if not self._cuda:
            return float(end - begin)
        if begin.device != end.device:
            return 0.0
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def sum(self, spans: "list[tuple[Any, Any]]") -> float:
        """Seconds of all (begin, end)."""
        return sum(self.between(begin, end) for begin, end in spans)


class Rates:
    """Of a link to the host, in bytes a second each way. overlaps: copies and kernels run at the same time."""

    __slots__ = ("back", "out", "overlaps")

    def __init__(self, out: float, back: float, overlaps: bool) -> None:
        self.out = out
        self.back = back
        self.overlaps = overlaps
