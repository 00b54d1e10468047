"""record.py RECORDER SCRIPT [ARGUMENTS]: runs the script with RECORDER (recorder.cc, compiled) between PyTorch's allocator
and its tensors. At the end one line on stderr says how many blocks the checker was told of."""

import atexit
import ctypes
import os
import runpy
import sys
import traceback
from typing import NoReturn


def run(script: str) -> int:
    """Returns what the script would exit with."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def end(status: int) -> NoReturn:
    """Ends the process without Python's own finalisation. That forces threads to exit which wait for the interpreter's
    lock, and one of them may be PyTorch's autograd thread that releases the last step's hooks: unwinding its C++ frames
    calls std::terminate. Here it waits, since PyDLL keeps the lock."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.PyDLL(None).exit(status)
    raise AssertionError("exit() returned")


def main() -> NoReturn:
    path, script = sys.argv[1:3]
    import torch

    torch.cuda.init()
    recorder = ctypes.CDLL(path)
    recorder.torch_blocks_attach.restype = ctypes.c_char_p
    recorder.torch_blocks_told.restype = ctypes.c_uint64
    if refused := recorder.torch_blocks_attach():
        sys.exit(f"torch_blocks: {refused.decode()}")
    atexit.register(lambda: print(f"torch_blocks: {recorder.torch_blocks_told()} blocks", file=sys.stderr, flush=True))
    sys.argv = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    end(run(script))


main()
