"""The jobs whose steps differ (bench/torch/varying.py), on the simulated device. Arguments: the build directory, then
unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON)."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
SCRIPT = ROOT / "bench" / "torch" / "varying.py"
# All jobs in one process: the peak of live memory is another in some two steps of each.
STEPS = """
import random, sys
sys.path.insert(0, sys.argv[1])
import varying
torch = varying.torch
for name, job in varying.JOBS.items():
    peaks = set()
    torch.manual_seed(1)
    random.seed(1)
    steps = job()
    for _ in range(11):
        torch.cuda.reset_peak_memory_stats()
        next(steps)
        peaks.add(torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated())
    steps.close()
    print(name, len(peaks))
varying.settings.drain_autograd(torch)
"""


def simulated(*command: str) -> subprocess.CompletedProcess:
    return subprocess.run([BUILD / "bin" / "hotpack", "run", "--simulate", "--", sys.executable, *command],
                          env={**os.environ, "HOTPACK": "0"}, capture_output=True, text=True, timeout=500)


class VaryingTest(unittest.TestCase):
    def test_steps_differ(self):
        done = simulated("-c", STEPS, str(SCRIPT.parent))
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = dict(line.split() for line in done.stdout.splitlines())
        self.assertEqual(len(counts), 10)
        for name, count in counts.items():
            self.assertGreater(int(count), 1, name)

    def test_a_seed_repeats(self):
        first, second = (simulated(str(SCRIPT), "layer_drop", "--steps", "3", "--seed", "7") for _ in range(2))
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertEqual(first.stdout, second.stdout)

    def test_bad_use_is_one_line(self):
        for arguments in (["nothing"], ["layer_drop", "--steps", "0"], ["layer_drop"]):
            done = subprocess.run([sys.executable, SCRIPT, *arguments], env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
