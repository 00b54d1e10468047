"""The C libraries: where they are, and their functions.

The functions of hotpack.h are those of libhotpack_preload.so if it is loaded (`hotpack run`), else of libhotpack.so.
"""

import ctypes
import functools
import os
import re
from pathlib import Path
from typing import Any, TypeVar

from ._errors import Error

_HERE = Path(__file__).resolve().parent


class Extent(ctypes.Structure):
    """hotpack_extent: a live block, or a run of addresses that has memory."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("planned", ctypes.c_int32),
        ("arena", ctypes.c_int32),
    ]


class TorchStat(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("current", "peak", "allocated", "freed")]


class TorchStats(ctypes.Structure):
    """hotpack_torch_stats."""

    _fields_ = [
        ("allocation", TorchStat * 3),
        ("allocated_bytes", TorchStat * 3),
        ("requested_bytes", TorchStat * 3),
        ("segment", TorchStat),
        ("reserved_bytes", TorchStat),
        ("num_ooms", ctypes.c_uint64),
        ("fraction", ctypes.c_double),
    ]


class TorchEvent(ctypes.Structure):
    """hotpack_torch_event."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("stream", ctypes.c_uint64),
        ("time_us", ctypes.c_int64),
        ("action", ctypes.c_int32),
        ("device", ctypes.c_int32),
    ]


class TorchSegment(ctypes.Structure):
    """hotpack_torch_segment: memory of a private pool."""

    _fields_ = [
        ("address", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("live", ctypes.c_uint64),
        ("pool", ctypes.c_uint64 * 2),
    ]


_Kind = TypeVar("_Kind", bound=ctypes.Structure)


def _directories() -> list[Path]:
    """The folders of native files, with bin/ and lib/: $HOTPACK_HOME, the installed package, a checkout's build."""
    chosen = os.environ.get("HOTPACK_HOME")
    if chosen:
        return [Path(chosen)]
    return [_HERE / "native", _HERE.parent.parent / "build"]


def find(relative: str) -> Path:
    """The native file of this path ("bin/hotpack", "lib/libhotpack.so.0"); Error if there is none."""
    for directory in _directories():
        if (directory / relative).exists():
            return directory / relative
    places = ", ".join(str(directory / relative) for directory in _directories())
    raise Error(f"{Path(relative).name} is missing ({places}); install the package again (pip install .), or build it "
                "with tools/test and set HOTPACK_HOME to the build folder")


def _load(name: str) -> ctypes.CDLL:
    path = find(f"lib/{name}")
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Error(f"{path} cannot be loaded: {error}") from None


def preloaded() -> bool:
    """True under `hotpack run`: the driver's entry points are hooked, and its hotpack_* functions are those to call."""
    return hasattr(ctypes.CDLL(None), "hotpack_version")


@functools.cache
def stats_type() -> type[ctypes.Structure]:
    """hotpack_stats, as the installed hotpack.h has it; docs/statistics.md explains each member."""
    header = find("include/hotpack.h")
    members = re.search(r"typedef struct hotpack_stats \{(.*?)\} hotpack_stats;", header.read_text(), re.DOTALL)
    if members is None:
        raise Error(f"{header} has no hotpack_stats; install the package again (pip install .)")
    kinds = {"uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64}
    fields = [(name, kinds[kind]) for kind, name in re.findall(r"(u?int64_t) (\w+);", members[1])]
    return type("Stats", (ctypes.Structure,), {"_fields_": fields})


@functools.cache
def core() -> ctypes.CDLL:
    """The functions of hotpack.h."""
    library = ctypes.CDLL(None) if preloaded() else _load("libhotpack.so.0")
    if not hasattr(library, "hotpack_keep_streams"):
        raise Error("the libhotpack_preload.so that is loaded is older than this package")
    library.hotpack_get_stats.argtypes = [ctypes.c_void_p, ctypes.c_size_t]  # of stats_type()
    library.hotpack_trim.restype = ctypes.c_uint64
    library.hotpack_save_plan.argtypes = [ctypes.c_char_p]
    for name in ("hotpack_list_blocks", "hotpack_list_mapped"):
        function = getattr(library, name)
        function.argtypes = [ctypes.c_int, ctypes.POINTER(Extent), ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    return library


@functools.cache
def torch_library() -> ctypes.CDLL:
    """libhotpack_torch.so."""
    core()  # the same libhotpack.so for both
    library = _load("libhotpack_torch.so.0")
    library.hotpack_torch_get_stats.argtypes = [ctypes.c_int, ctypes.POINTER(TorchStats), ctypes.c_size_t]
    library.hotpack_torch_record.argtypes = [ctypes.c_uint64, ctypes.c_int]
    for name, kind in (("events", TorchEvent), ("live", TorchEvent)):
        function = getattr(library, f"hotpack_torch_{name}")
        function.argtypes = [ctypes.POINTER(kind), ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    library.hotpack_torch_segments.argtypes = [ctypes.c_int, ctypes.POINTER(TorchSegment), ctypes.c_size_t]
    library.hotpack_torch_segments.restype = ctypes.c_size_t
    return library


def fetch(kind: "type[_Kind]", function: Any, *arguments: Any) -> "list[_Kind]":
    """All that a `function(*arguments, out, capacity) -> count` has to say, as a list of `kind`."""
    capacity = 0
    while True:
        out = (kind * capacity)()
        count = function(*arguments, out, capacity)
        if count <= capacity:
            return list(out[:count])
        capacity = count + count // 8


def version() -> str:
    number = core().hotpack_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
