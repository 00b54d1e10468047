"""record.py RECORDER SCRIPT [ARGUMENTS]: runs the script with RECORDER (recorder.cc, compiled) between PyTorch's allocator
and its tensors. At the end one line on stderr says how many blocks the checker was told of."""

import atexit
import ctypes
import os
import runpy
import sys


def main() -> None:
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
    runpy.run_path(script, run_name="__main__")


main()
