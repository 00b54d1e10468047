"""torch.cuda.nvtx under `hotpack run`: PyTorch's own ranges are iterations and in the recording. On the simulated device."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HOTPACK = Path(os.environ["HOTPACK_BUILD"], "bin", "hotpack")

TRAIN = """
import time
import torch
if torch.cuda.nvtx.range_push("probe") == -2:  # NVTX_NO_PUSH_POP_TRACKING: this PyTorch was built without NVTX
    raise SystemExit(77)
torch.cuda.nvtx.range_pop()
model = torch.nn.Sequential(torch.nn.Linear(256, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 100)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    with torch.cuda.nvtx.range(f"step {step}"):
        torch.cuda.nvtx.mark("begin")
        model(torch.ones(64, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    if step % 4 == 3:
        torch.cuda.nvtx.range_push("evaluation")
        with torch.no_grad():
            model(torch.ones(32, 256, device="cuda"))
        torch.cuda.nvtx.range_pop()
time.sleep(1)  # the autograd thread gives up the last graph
"""


class RangesTest(unittest.TestCase):
    def train(self, *options: str) -> "tuple[dict, str]":
        with tempfile.TemporaryDirectory() as scratch:
            trace = str(Path(scratch, "trace"))
            done = subprocess.run([HOTPACK, "run", "--simulate", "--trace", trace, *options, "--", sys.executable, "-c", TRAIN],
                                  capture_output=True, text=True, timeout=300)
            if done.returncode == 77:
                self.skipTest("this PyTorch was built without NVTX")
            self.assertEqual(done.returncode, 0, done.stderr)
            shown = subprocess.run([HOTPACK, "show", "--json", trace], capture_output=True, text=True, timeout=60)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            events = subprocess.run([HOTPACK, "export", trace, "--format", "event-csv", "-o", trace + ".csv"],
                                    capture_output=True, text=True, timeout=60)
            self.assertEqual(events.returncode, 0, events.stderr)
            rows = [line.split(",") for line in Path(trace + ".csv").read_text().splitlines()]
            self.marks = [row[1] for row in rows if row[0] == "mark"]
            return json.loads(shown.stdout), done.stderr

    def test_ranges_are_iterations_and_interruptions(self):
        shown, said = self.train("--iteration-range", "step *", "--interrupt-range", "evaluation")
        self.assertEqual(shown["ranges"], {"begun": 1 + 12 + 3, "marks": 12})
        self.assertNotIn("matched", said)
        self.assertEqual(shown["marks"], 12)
        self.assertEqual(self.marks, (["step"] * 4 + ["interrupt", "resume"]) * 3)

    def test_without_patterns_they_are_only_recorded(self):
        for options, marks in (((), 11), (("--compatibility",), 0)):  # the optimizer's steps, once hotpack knows it
            with self.subTest(options):
                shown, _ = self.train(*options)
                self.assertEqual(shown["ranges"], {"begun": 1 + 12 + 3, "marks": 12})
                self.assertEqual(shown["marks"], marks)


if __name__ == "__main__":
    unittest.main()
