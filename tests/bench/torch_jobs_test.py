"""bench/torch/jobs: scripts both ways on the simulated device. Arguments: the build directory, then unittest's. Needs PyTorch
(HOTPACK_TORCH_PYTHON)."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
TRAIN = """
import _size, os, torch
model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(12):
    model(torch.randn(_size.rows, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# A program that captures its steps, so many that its beginning hardly counts, and one that looks for the largest batch.
GRAPHS = """
import _size, torch
layers = [torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda() for _ in range(4)]
x = torch.randn(_size.rows, 1024, device="cuda", requires_grad=True)
graphed = torch.cuda.make_graphed_callables(tuple(layers), tuple((x,) for _ in layers))
optimizer = torch.optim.Adam([parameter for layer in layers for parameter in layer.parameters()])
for _ in range(300):
    y = torch.randn(_size.rows, 1024, device="cuda", requires_grad=True)
    for layer in graphed: y = layer(y)
    y.sum().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=False)
"""
LARGEST = """
import torch
rows = 1 << 20
while True:
    try:
        x = torch.zeros(rows, 64 << 10, device="cuda")
        break
    except torch.OutOfMemoryError:
        rows //= 2
"""
HOOKED = "any('libhotpack_preload' in line for line in open('/proc/self/maps'))"


def jobs(*arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, ROOT / "bench" / "torch" / "jobs", "--build", BUILD, *arguments],
                          capture_output=True, text=True, timeout=500)


class JobsTest(unittest.TestCase):
    def play(self, size: str, **scripts: str) -> subprocess.CompletedProcess:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "_size.py").write_text(f"rows = {size}\n")  # no job: its name begins with _
            for name, text in scripts.items():
                Path(folder, f"{name}.py").write_text(text)
            return jobs(folder)

    def test_the_same_script_agrees(self):
        done = self.play("4096", train=TRAIN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        (row,) = done.stdout.splitlines()[2:]
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        self.assertEqual((cells[0], cells[5], cells[6]), ("train", "0 → 0", "yes"))
        for both in cells[1:5]:
            for figure in both.split(" → "):
                self.assertGreater(float(figure), 0, row)

    def test_captured_steps_and_out_of_memory_agree(self):
        done = self.play("2048", graphs=GRAPHS, largest=LARGEST)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        graphs, largest = done.stdout.splitlines()[2:]
        self.assertRegex(graphs, r"^\| graphs .* yes \|$")
        self.assertRegex(largest, r"^\| largest \| 65536 → 65536 .* yes \|$")

    def test_another_figure_is_named_and_a_failure_is_one_line(self):
        done = self.play(f"4096 if {HOOKED} else 8192", fails="raise SystemExit('no such thing')\n", train=TRAIN)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        (row,) = done.stdout.splitlines()[2:]
        self.assertRegex(row, r"^\| train .* not held, live \|$")
        self.assertIn("jobs: fails.py, run: exit code 1: no such thing\n", done.stderr)

    def test_bad_use_is_one_line(self):
        with tempfile.TemporaryDirectory() as empty:
            for arguments in ([], [empty], [f"{empty}/none.py"]):
                done = jobs(*arguments)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
