"""`%load_ext hotpack` and `%hotpack`, with a shell that has of IPython what they use."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

HOTPACK = str(Path(os.environ["HOTPACK_BUILD"]) / "bin" / "hotpack")

SHELL = """
magics = {}
class Shell:
    def register_magic_function(self, function, kind, name):
        assert kind == "line"
        magics[name] = function
import hotpack
"""
TRAIN = SHELL + """
hotpack.load_ipython_extension(Shell())
magics["hotpack"]("")
import torch
layer = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(layer.parameters(), 0.1)
for _ in range(8):
    layer(torch.zeros(64, 512).cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
magics["hotpack"]("")
"""
LATE = SHELL + """
import torch
torch.zeros(1).cuda()
magics_before = dict(magics)
hotpack.load_ipython_extension(Shell())
magics["hotpack"]("")
"""


class NotebookTest(unittest.TestCase):
    def run_it(self, script: str, *options: str) -> "list[str]":
        done = subprocess.run([HOTPACK, "run", "--simulate", "-q", *options, "--", sys.executable, "-c", script],
                              capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_the_magic_prints_the_figures(self):
        before, after = self.run_it(TRAIN)
        self.assertEqual(before, "hotpack: no request so far")
        self.assertRegex(after, r"^hotpack: now: live [0-9.]+ MiB, held [0-9.]+ MiB; held at most [0-9.]+ MiB, "
                                r"(held while served [0-9.]+ MiB, )?live peak [0-9.]+ MiB; [0-9.]+ % of [0-9]+ requests by the plan$")

    def test_too_late_is_one_line(self):
        lines = self.run_it(LATE, "--keep-caching")
        self.assertRegex(lines[0], "^hotpack: hotpack.enable\\(\\) must come before the first use of CUDA")
        self.assertEqual(lines[1:], ["hotpack: not enabled"])


if __name__ == "__main__":
    unittest.main()
