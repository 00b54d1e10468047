"""Plays a script with hotpack.enable() before its first line: enable_job.py STATS.json SCRIPT.

hotpack's statistics go to the file at exit, after the script's own handlers."""

import atexit
import json
import runpy
import sys
from pathlib import Path

import hotpack

if __name__ == "__main__":
    hotpack.enable()
    stats = Path(sys.argv[1])
    atexit.register(lambda: stats.write_text(json.dumps(hotpack.stats())))
    sys.argv = sys.argv[2:]
    sys.path[0] = str(Path(sys.argv[0]).resolve().parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
