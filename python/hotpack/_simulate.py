"""The simulated device: real PyTorch without a GPU. Memory is real, arithmetic is not done."""

import ctypes
import functools
import os
import re
import sys
from pathlib import Path

from ._errors import Error
from ._library import find

_MARK = "_HOTPACK_STARTED_AGAIN"  # in the environment of the program that simulate() starts


class _Place(ctypes.Structure):  # Dl_info of <dlfcn.h>
    _fields_ = [
        ("file", ctypes.c_char_p),
        ("base", ctypes.c_void_p),
        ("symbol", ctypes.c_char_p),
        ("at", ctypes.c_void_p),
    ]


@functools.cache
def simulated() -> bool:
    """True if this process has the simulated CUDA runtime: preloaded, as NVIDIA's never is with the witness."""
    everything = ctypes.CDLL(None)
    if not hasattr(everything, "cudaGetDeviceCount"):
        return False
    place = _Place()
    function = ctypes.cast(everything.cudaGetDeviceCount, ctypes.c_void_p)
    everything.dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Place)]
    if everything.dladdr(function, ctypes.byref(place)) == 0 or not place.file:
        return False
    return (Path(os.fsdecode(place.file)).resolve().parent / "libsimgpu_witness.so").exists()


def driver_simulated(driver: ctypes.CDLL) -> bool:
    return hasattr(driver, "simgpuReports")


def _check_size(memory: str) -> None:
    """As the simulated device reads SIMGPU_MEMORY: units are powers of 1024."""
    size = re.fullmatch(r"(\d+(?:\.\d*)?)([KMGT]?)i?B?", memory, re.IGNORECASE)
    if size is None or float(size[1]) * 1024 ** " KMGT".index(size[2].upper() or " ") < 2 << 20:
        raise Error(f"hotpack.simulate(): memory={memory!r} is no size of at least 2M, such as '16G'")


def simulate(memory: "str | None" = None, devices: "int | None" = None) -> None:
    """Runs this program on a simulated device: starts it again under `hotpack run --simulate`.

    For the first lines of a script, before CUDA is used; what the script did before is done again. In a process that is
    simulated already it does nothing. memory: of each device ("80G"; default 16G). devices: how many. A line on stderr
    says what is not real (not with HOTPACK_QUIET=1).

    Raises Error for other values, and where a program cannot be started again (interactive sessions), or CUDA is in use
    already.
    """
    if memory is not None:
        _check_size(str(memory))
    if devices is not None and not 0 <= int(devices) <= 64:
        raise Error(f"hotpack.simulate(): devices={devices} is not from 0 to 64")
    if simulated():
        return
    if _MARK in os.environ:
        raise Error("hotpack.simulate(): this program was started again, but without the simulated runtime; is "
                    "LD_PRELOAD changed on the way?")
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise Error("hotpack.simulate() must come before the first use of CUDA: this process has a real device already")
    arguments = list(getattr(sys, "orig_argv", []))[1:]
    notebook = "ipykernel" in sys.modules
    if not arguments or hasattr(sys, "ps1") or arguments == ["-"] or arguments[0] == "-c" and notebook:
        raise Error("hotpack.simulate() starts the program again, which an interactive session cannot; use "
                    "hotpack run --simulate -- python ...")
    environment = dict(os.environ, **{_MARK: "1"})
    if memory is not None:
        environment["SIMGPU_MEMORY"] = str(memory)
    if devices is not None:
        environment["SIMGPU_DEVICES"] = str(devices)
    command = str(find("bin/hotpack"))
    sys.stdout.flush()
    if os.environ.get("HOTPACK_QUIET", "0") == "0":  # a loss of 0.0 looks like a broken model
        print("hotpack: simulated device: memory is real, values are zeros, times mean nothing", file=sys.stderr)
    sys.stderr.flush()
    os.execve(command, [command, "run", "--simulate", "--", sys.executable, *arguments], environment)
