"""Runs a test under a Python that has PyTorch: torch_python.py BUILD_DIRECTORY SCRIPT [ARGUMENTS]. Exit code 77, with the
reason on stdout, where there is none: CTest counts that as skipped."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "torch"))
from cells import Failure, find_python  # noqa: E402

try:
    python = find_python(Path(sys.argv[1]))
except Failure as failure:
    print(f"skipped: {failure}")
    sys.exit(77)
os.environ["HOTPACK_TORCH_PYTHON"] = python
os.execv(python, [python, *sys.argv[2:]])
