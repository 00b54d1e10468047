"""Recorded steps (bench/torch/record_steps) and their plans (bench/planner steps), on the simulated device. Arguments: the build
directory, then unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON)."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
TORCH = ROOT / "bench" / "torch"


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True, timeout=500)


class StepsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name, "steps")

    def record(self, *models: str) -> subprocess.CompletedProcess:
        return run(sys.executable, TORCH / "record_steps", self.folder, *models, "--tiny", "--build", BUILD)

    def test_steps_are_recorded_and_planned(self):
        for model in ("resnet50", "llama"):  # the second run adds to the first
            done = self.record(model)
            self.assertEqual(done.returncode, 0, done.stderr)
        reserved = json.loads((self.folder / "reserved.json").read_text())
        self.assertEqual(list(reserved), ["resnet50", "llama"])
        for model, size in reserved.items():
            graph = json.loads((self.folder / f"{model}.json").read_text())
            self.assertEqual((graph["format"], graph["step"], graph["allocator"]), ("hotpack-step", 3, "hotpack"))
            self.assertLessEqual(graph["peak"]["bytes"], size)
        done = run(sys.executable, ROOT / "bench" / "planner", "steps", "--smoke", "--recorded", self.folder, "--build", BUILD)
        self.assertEqual(done.returncode, 0, done.stderr)
        for model in reserved:
            self.assertIn(f"| {model} ", done.stdout)

    def test_a_missing_package_is_one_line(self):
        packages = self.folder.parent / "packages"
        packages.mkdir()
        (packages / "timm.py").write_text('raise ImportError("there is none")\n')
        done = run(sys.executable, TORCH / "record_steps", self.folder, "convnext_tiny", "--build", BUILD, PYTHONPATH=str(packages))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "record_steps: convnext_tiny is left out: library.py: convnext_tiny: there is none\n")

    def test_bad_use_is_one_line(self):
        for command in ([TORCH / "record_steps"], [TORCH / "record_steps", self.folder, "nothing"], [TORCH / "library.py", "nothing"],
                        [TORCH / "library.py", "opt_125m", "--steps", "0"], [TORCH / "library.py", "opt_125m"]):
            done = run(sys.executable, *command, CUDA_VISIBLE_DEVICES="")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
