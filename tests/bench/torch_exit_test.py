"""The end of a PyTorch program after a backward pass, with an autograd thread that is slow (the preloaded
held_autograd_thread.cc): settings.drain_autograd keeps the process from aborting. Arguments: the build directory, then
unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON)."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
HOLDER = BUILD / "tests" / "bench" / "libheld_autograd_thread.so"
PROGRAM = """
import ctypes
import sys
import time
import torch
import settings

class Failing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return torch.empty(1 << 44, device="cuda")

def step():
    x = torch.ones(4, device="cuda", requires_grad=True)
    (Failing.apply(x) + 1).sum().backward()

if sys.argv[1] == "infer":
    torch.ones(4, device="cuda")
    settings.drain_autograd(torch)
    print(settings._has_autograd_thread())
    sys.exit(3)
try:
    step()
except torch.OutOfMemoryError:
    print("out of memory", settings._has_autograd_thread())
if sys.argv[1] == "drain":
    settings.drain_autograd(torch)

class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

if len(sys.argv) > 2:
    # This thread keeps the interpreter's lock, whoever requests it, until the shutdown has begun, which deletes `late`.
    late = Late()
    sys.setswitchinterval(1000)
    ctypes.PyDLL(sys.argv[2]).let_autograd_thread_go()
sys.exit(3)
"""

# A user's script, with a module of its own whose name bench/torch has too. It does not wait for the thread. Before the
# second pass the thread has waited for work, so it is held after it for certain.
SCRIPT = """
import settings
import time
import torch
x = torch.ones(4, device="cuda", requires_grad=True)
for _ in range(2):
    (x + 1).sum().backward()
    time.sleep(0.2)
"""
# The last of all handlers at exit lets the thread go, while this one keeps the interpreter's lock as above.
LATE = """
import atexit, ctypes, runpy, sys, time

class Late:
    def __del__(self, sleep=time.sleep):
        sleep(0.2)

sys.modules["late"] = Late()
sys.setswitchinterval(1000)
atexit.register(ctypes.PyDLL(sys.argv[1]).let_autograd_thread_go)
"""
# Plays the script.
PLAY = LATE + """
sys.path[0] = sys.argv[2]
del sys.argv[:2]
runpy.run_path(sys.argv[0] + "/play_script.py", run_name="__main__")
"""


def python(*arguments: object, path: str) -> subprocess.CompletedProcess:
    simgpu = BUILD / "lib" / "simgpu"
    environment = {**os.environ, "LD_PRELOAD": f"{HOLDER} {simgpu / 'libcudart.so.13'}", "LD_LIBRARY_PATH": str(simgpu),
                   "PYTHONPATH": str(ROOT / path), "HOTPACK_HOME": str(BUILD)}
    return subprocess.run([sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True, timeout=200)


def run(*arguments: str) -> subprocess.CompletedProcess:
    return python("-c", PROGRAM, *arguments, path="bench/torch")


class ExitTest(unittest.TestCase):
    def test_a_drained_thread_lets_the_process_end(self):
        done = run("drain")
        self.assertEqual((done.returncode, done.stdout), (3, "out of memory True\n"), done.stderr)

    def test_a_thread_that_requests_the_lock_before_the_shutdown_lets_the_process_end(self):
        """Python ends a thread that waits for its lock when the shutdown begins, also one that drain_autograd's own pass
        has held up."""
        done = run("drain", str(HOLDER))
        self.assertEqual((done.returncode, done.stdout), (3, "out of memory True\n"), done.stderr)

    def test_a_script_that_is_played_need_not_drain_the_thread(self):
        for way in ("run", "enable"):
            with self.subTest(way), tempfile.TemporaryDirectory() as folder:
                script, figures = Path(folder, "script.py"), Path(folder, "figures.json")
                script.write_text(SCRIPT)
                Path(folder, "settings.py").touch()
                done = python("-c", PLAY, HOLDER, ROOT / "bench" / "torch", way, figures, script, path="python")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertGreater(json.loads(figures.read_text())["live"], 0)

    def test_no_thread_is_started_where_there_is_none(self):
        """A thread that has just begun would be ended in its start."""
        done = run("infer")
        self.assertEqual((done.returncode, done.stdout), (3, "False\n"), done.stderr)

    def test_a_thread_that_is_not_drained_aborts_the_process(self):
        """The fault itself. If this fails, PyTorch or Python has mended it, and drain_autograd may go."""
        done = python("-c", LATE + SCRIPT, HOLDER, path="bench/torch")
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        self.assertIn("terminate called without an active exception", done.stderr)


if __name__ == "__main__":
    unittest.main()
