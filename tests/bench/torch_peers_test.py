"""The simulated PyTorch allocators against PyTorch itself, by bench/torch/peers_agree with small models on the simulated
device. Arguments: the build directory, then unittest's. Needs PyTorch (HOTPACK_TORCH_PYTHON)."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
MODELS = ("resnet50", "gpt2_small")
NO_CUDNN = () if (BUILD / "lib" / "simgpu" / "libcudnn.so.9").exists() else ("--no-cudnn",)


def peers_agree(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(ROOT / "bench" / "torch" / "peers_agree"), "--simulate", "--build", str(BUILD),
                           *NO_CUDNN, *arguments], env=os.environ, capture_output=True, text=True, timeout=500)


class AgreementTest(unittest.TestCase):
    def test_the_simulations_reserve_what_pytorch_does(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "rows.json")
            done = peers_agree(*MODELS, "--tiny", "--tight", "--check", "--json", str(path), "--keep", scratch)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
            self.assertIn("The same with less memory", done.stdout)
            rows = json.loads(path.read_text())["rows"]
            self.assertEqual([row["model"] for row in rows], list(MODELS))
            for row in rows:
                with self.subTest(row["model"]):
                    self.assertEqual(done.stdout.count(f"| {row['model']} "), 2)
                    self.assertEqual(set(row["real"]), {"default", "expandable"})
                    self.assertGreater(min(row["real"].values()), 2 << 20)
                    self.assertLessEqual(max(abs(off) for off in row["off"].values()), 0.02)
                    self.assertLess(row["tight"]["default"]["capacity"], row["real"]["default"])
                    self.assertGreater((Path(scratch) / f"{row['model']}.trace").stat().st_size, 1000)

    def test_wrong_use_is_one_line(self):
        for arguments, word in ((["nothing"], "is no model"), (["--steps", "0"], "not a positive number"),
                                (["--json", "/nowhere/a"], "no such directory"), (["--build", "/nowhere"], "is not built")):
            with self.subTest(word):
                done = peers_agree(*arguments)
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(word, done.stderr)


if __name__ == "__main__":
    unittest.main()
