"""What a budget says: bytes, a share of what the step would take, or of its activations."""

import re
from typing import Optional, Union

from .._errors import Error

# As HOTPACK_LIMIT has them (preload/process/option_table.cc).
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "KiB": 1 << 10, "kB": 10**3, "M": 1 << 20, "MiB": 1 << 20,
          "MB": 10**6, "G": 1 << 30, "GiB": 1 << 30, "GB": 10**9, "T": 1 << 40, "TiB": 1 << 40, "TB": 10**12}
_OFF = ("", "0", "none")

Given = Union[str, int, None]


class Amount:
    """bytes: of the device's memory, else None. share: in (0, 1] of the step's peak, or of its activations'."""

    __slots__ = ("activations", "bytes", "share", "text")

    def __init__(self, text: str, count: "Optional[int]", share: float, activations: bool) -> None:
        self.text = text
        self.bytes = count
        self.share = share
        self.activations = activations

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Amount) and (self.bytes, self.share, self.activations) == (
            other.bytes, other.share, other.activations)

    def of(self, plain: int) -> int:
        """The budget in bytes. plain: what the step, or its activations, would take."""
        return self.bytes if self.bytes is not None else int(plain * self.share)


def parse(given: Given) -> "Optional[Amount]":
    """None: no budget ("0", "none", "" or None). Raises Error, in one line, for anything else that is none."""
    if given is None or str(given).strip() in _OFF:
        return None
    text = str(given).strip()
    wrong = Error(f"the budget {text!r} is no size (7.5GiB), share of the step (60%) or of its activations "
                  "(activations:50%)")
    if isinstance(given, (bool, float)):
        raise wrong
    share = re.fullmatch(r"(activations:)?(\d{1,3}(?:\.\d{0,9})?)%", text)
    if share is not None:
        if not 0 < float(share[2]) <= 100:
            raise wrong
        return Amount(text, None, float(share[2]) / 100, share[1] is not None)
    size = re.fullmatch(r"(\d{1,16}(?:\.\d{0,9})?)([A-Za-z]*)", text)
    if size is None or size[2] not in _UNITS or not 1 <= float(size[1]) * _UNITS[size[2]] <= 1e18:
        raise wrong
    return Amount(text, int(float(size[1]) * _UNITS[size[2]]), 1.0, False)


def size_text(count: int) -> str:
    """As `hotpack run` prints sizes: 1.4 GiB."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
