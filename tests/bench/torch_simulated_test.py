"""PyTorch itself on the simulated device, by bench/torch/compare with small models: the table has all its figures, the
checker nothing to report, and what is the same in every step is served by script. Arguments: the build directory, then
unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON)."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
MODELS = ("resnet50", "gpt2_small", "moe")
CUDNN = (BUILD / "lib" / "simgpu" / "libcudnn.so.9").exists()
NO_CUDNN = () if CUDNN else ("--no-cudnn",)


def run(program: list[str], **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(program, env={**os.environ, **environment}, capture_output=True, text=True, timeout=500)


def compare(*arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess, dict]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "rows.json")
        done = run([sys.executable, str(ROOT / "bench" / "torch" / "compare"), "--simulate", "--build", str(BUILD),
                    "--json", str(path), *NO_CUDNN, *arguments], **environment)
        return done, json.loads(path.read_text()) if path.exists() else {}


class CompareTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.done, cls.written = compare(*MODELS, "--tiny", "--steps", "60", "--peers")

    def test_all_cells_ran(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        self.assertEqual([row["job"] for row in self.written["rows"]], list(MODELS))
        for model in MODELS:
            self.assertIn(f"| {model}", self.done.stdout)

    def test_the_figures_can_be_right(self):
        for row in self.written["rows"]:
            with self.subTest(row["job"]):
                stats, train = row["hotpack"], row["train"]
                self.assertEqual(row["reports"], 0)
                self.assertGreater(stats["requests"], 1000)
                self.assertGreaterEqual(stats["reserved_peak"], stats["live_peak"])
                for allocator in ("default", "expandable"):
                    self.assertGreaterEqual(train[allocator]["torch_reserved_peak"], train[allocator]["torch_allocated_peak"])
                    # The same requests reach either allocator: what is live at most is the same but for the rounding.
                    self.assertLess(abs(train[allocator]["torch_allocated_peak"] - stats["live_peak"]), 2 << 20)
                self.assertGreater(sum(row["launches_known_and_not"]), 1000)

    def test_other_allocators_on_the_same_requests(self):
        self.assertIn("| one cudaMalloc a request |", self.done.stdout)
        for row in self.written["rows"]:
            with self.subTest(row["job"]):
                peers, stats = row["peers"], row["hotpack"]
                self.assertEqual(set(peers), {"cudamalloc", "chainer", "pytorch", "pytorch-expandable", "best-fit", "first-fit", "async"})
                self.assertEqual(peers["cudamalloc"], min(peers.values()))
                self.assertEqual(peers["async"], row["train"]["async"]["torch_reserved_peak"])
                self.assertGreater(peers["async"], row["train"]["async"]["torch_allocated_peak"] - 1)
                if row["static"]:  # the recording is of the hotpack run, so what is live in its last step was live in that run
                    self.assertLessEqual(peers["cudamalloc"], stats["live_peak"])
                    self.assertGreaterEqual(stats["reserved_steady"], peers["cudamalloc"])

    def test_repeating_steps_are_served_by_script(self):
        for row in self.written["rows"]:
            if not row["static"]:
                continue
            with self.subTest(row["job"]):
                stats = row["hotpack"]
                self.assertGreater(stats["requests_steady"], 0)
                self.assertGreaterEqual(stats["planned_steady"], 0.99 * stats["requests_steady"])


class LargestBatchTest(unittest.TestCase):
    def test_the_most_rows_fit_and_one_more_does_not(self):
        # A row is hundreds of MiB here, so that the search begins where it ends, and the row's own runs are its first ones.
        done, written = compare("unet", "--batch", "1", "--steps", "3", "--largest-batch", SIMGPU_MEMORY="900M")
        self.assertEqual(done.returncode, 0, done.stderr)
        (found,) = written["rows"][0]["largest_batch"]
        self.assertEqual(found["capacity"], 900 << 20)
        self.assertEqual(set(found["rows"]), {"default", "expandable", "hotpack"})
        for allocator, rows in found["rows"].items():
            self.assertIn(f"{allocator}: {rows} rows fit\n", done.stderr)
            self.assertIn(f"{allocator}: {rows + 1} rows do not fit\n", done.stderr)
        self.assertGreaterEqual(found["rows"]["hotpack"], found["rows"]["default"])
        self.assertIn("The most rows a step that fit", done.stdout)


class UseTest(unittest.TestCase):
    def refused(self, program: list[str], word: str, code: int = 2, **environment: str) -> None:
        done = run(program, **environment)
        self.assertEqual(done.returncode, code, done.stderr)
        said = [line for line in done.stderr.splitlines() if not line.startswith("hotpack: ")]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(word, said[0])

    def train(self, *arguments: str) -> list[str]:
        return [str(BUILD / "bin" / "hotpack"), "run", "--simulate", "--", sys.executable,
                str(ROOT / "bench" / "torch" / "train.py"), "vit", "--tiny", *NO_CUDNN, *arguments]

    def test_too_little_memory_is_said_and_has_its_own_code(self):
        self.refused(self.train("--allocator", "preload"), "out of memory", 3, PYTORCH_NO_CUDA_MEMORY_CACHING="1",
                     SIMGPU_MEMORY="32M")

    def test_two_allocators_at_once(self):
        done = run(self.train("--allocator", "hotpack", "--steps", "5"), HOTPACK_HOME=str(BUILD))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("allocator: hotpack", done.stdout)
        self.refused(self.train("--allocator", "hotpack"), "libhotpack_torch.so.0 is missing", HOTPACK_HOME="/nowhere")
        self.refused(self.train("--allocator", "default"), "PYTORCH_NO_CUDA_MEMORY_CACHING is set",
                     PYTORCH_NO_CUDA_MEMORY_CACHING="1")

    def test_rmm_is_refused_whether_it_is_there_or_not(self):
        for allocator in ("rmm-pool", "rmm-arena"):
            self.refused(self.train("--allocator", allocator), "the simulated device", PYTHONPATH="/nowhere")

    def test_compare_says_what_it_cannot_do(self):
        program = [sys.executable, str(ROOT / "bench" / "torch" / "compare"), "--simulate", "--build", str(BUILD)]
        self.refused([*program, "resnet51"], "resnet51 is no model")
        self.refused([*program, "--losses", "vit"], "needs a GPU")
        self.refused([*program, "--capacity", "16G", "vit"], "goes with --largest-batch")
        self.refused([*program, "--largest-batch", "--capacity", "16Q", "vit"], "--capacity")
        self.refused([*program, "--steps", "0"], "not a positive number")
        self.refused([*program[:-1], "/nowhere", "vit"], "is not built")


if __name__ == "__main__":
    unittest.main()
