"""bench/paper with PyTorch: Figure 2 of PyTorch's own requests, Figure 3's refusal and its --smoke. Arguments: the build
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
sys.path.insert(0, str(ROOT / "bench" / "torch"))
from cells import has_gpu  # noqa: E402

NO_CUDNN = () if (BUILD / "lib" / "simgpu" / "libcudnn.so.9").exists() else ("--no-cudnn",)


def run(program: str, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(ROOT / "bench" / "paper" / program), "--build", str(BUILD), *NO_CUDNN, *arguments],
                          capture_output=True, text=True, timeout=550, env=os.environ)


class TorchTest(unittest.TestCase):
    def take(self, program: str, *arguments: str, name: str = "") -> dict:
        with tempfile.TemporaryDirectory() as scratch:
            done = run(program, "--smoke", "--out", scratch, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            return json.loads(Path(scratch, f"{name or program}.json").read_text())

    def test_figure2_of_pytorchs_requests(self):
        rows = {(row["network"], row["mode"]): row for row in self.take("figure2", "--events", "pytorch", name="figure2_pytorch")["rows"]}
        self.assertEqual(len(rows), 4)
        for row in rows.values():
            self.assertLessEqual(row["live"], min(row["naive"], row["orig"], row["hotpack"]))
        training, inference = rows["alexnet", "training"], rows["alexnet", "inference"]
        self.assertGreater(training["retained"], inference["retained"])  # momenta
        self.assertGreater(training["carried"], 0)                       # gradients
        self.assertEqual(inference["carried"], 0)

    @unittest.skipIf(has_gpu(sys.executable), "there is a GPU here")
    def test_figure3_without_a_gpu_is_refused_in_one_line(self):
        done = run("figure3", "--quick")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (2, "", "figure3: no GPU here: its times cannot be simulated\n"))

    def test_figure3_runs_to_its_end(self):
        document = self.take("figure3")
        self.assertEqual(len(document["rows"]), 4)
        self.assertEqual((document["warm_up"], document["measured"]), (2, 2))
        for row in document["rows"]:
            self.assertGreater(min(row["orig_ms"], row["opt_ms"]), 0)


if __name__ == "__main__":
    unittest.main()
