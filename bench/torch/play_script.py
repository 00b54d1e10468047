"""Plays a script as it is, and writes figures to a file at exit: play_script.py run|enable FIGURES.json SCRIPT.

PyTorch's own answers, over all devices: held (max_memory_reserved, private pools of graphs included) and live
(max_memory_allocated), in bytes. `enable`: hotpack.enable() comes before the script's first line, and hotpack's statistics
are written too. The script's own handlers run before. Then PyTorch's autograd thread is drained (drain_autograd), since a
script need not do so: otherwise the process may abort at its end."""

import atexit
import json
import runpy
import sys
from pathlib import Path

from settings import drain_autograd

del sys.modules["settings"]  # the script may have one of its own


def write(path: Path, stats) -> None:
    cuda = sys.modules["torch"].cuda if "torch" in sys.modules else None
    devices = range(cuda.device_count() if cuda is not None and cuda.is_initialized() else 0)
    path.write_text(json.dumps({**stats(), "held": sum(cuda.max_memory_reserved(device) for device in devices),
                                "live": sum(cuda.max_memory_allocated(device) for device in devices)}))
    if cuda is not None:
        drain_autograd(sys.modules["torch"])


if __name__ == "__main__":
    way, path = sys.argv[1], Path(sys.argv[2])
    if way == "enable":
        import hotpack

        hotpack.enable()
        atexit.register(write, path, hotpack.stats)
    else:
        atexit.register(write, path, dict)
    sys.argv = sys.argv[3:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
