"""`hotpack run` makes hotpack the allocator of a PyTorch program that does not mention it."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["HOTPACK_BUILD"])
HOTPACK = str(BUILD / "bin" / "hotpack")

# The autograd thread gives up the last graph when the script ends (ranges_test.py).
TRAIN = """
import time
import torch
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(20):
    model(torch.zeros(64, 512).cuda()).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print(torch.cuda.get_allocator_backend(), torch.cuda.max_memory_allocated() > 0, type(torch.__spec__.loader).__name__)
time.sleep(1)
"""
OURS = "pluggable True SourceFileLoader\n"
DRIVERS = "native False SourceFileLoader\n"


class StartupTest(unittest.TestCase):
    def run_it(self, script: str, *options: str, python: "tuple[str, ...]" = (), code: int = 0, **more: str) -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if name not in ("HOTPACK_HOME", "PYTHONPATH")}
        done = subprocess.run([HOTPACK, "run", "--simulate", *options, "--", sys.executable, *python, "-c", script],
                              env={**environment, **more}, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertNotIn("REPORT", done.stderr)
        return done

    def test_a_program_that_does_not_mention_hotpack(self):
        self.assertEqual(self.run_it(TRAIN).stdout, OURS)

    def test_it_may_mention_hotpack_all_the_same(self):
        script = "import hotpack\nhotpack.enable()\n" + TRAIN + "hotpack.enable()\n"
        package = str(Path(__file__).resolve().parents[2] / "python")
        self.assertEqual(self.run_it(script, PYTHONPATH=package).stdout, OURS)

    def test_it_may_import_hotpack_where_it_is_not_installed(self):
        script = "import hotpack\nhotpack.enable()\n" + TRAIN + "print(hotpack.stats()['requests'] > 0)\n"
        self.assertEqual(self.run_it(script).stdout, OURS + "True\n")

    def test_the_programs_own_hotpack_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "hotpack.py").write_text("NAME = 'theirs'\n")
            self.assertEqual(self.run_it("import hotpack\nprint(hotpack.NAME)\n", PYTHONPATH=folder).stdout, "theirs\n")

    def test_switched_off_it_is_the_program_without_hotpack(self):
        script = ("import torch\nx = torch.ones(1 << 20, device='cuda')\ndel x\n"
                  "print(torch.cuda.get_allocator_backend(), torch.cuda.memory_reserved() > 0)\n")
        self.assertEqual(self.run_it(script).stdout, "pluggable True\n")
        self.assertEqual(self.run_it(script, HOTPACK="0").stdout, "native True\n")

    def test_out_of_memory_is_pytorchs(self):
        script = ("import torch\ntry: torch.empty(1 << 50, device='cuda')\n"
                  "except torch.OutOfMemoryError as error: print(str(error)[:19])\n")
        self.assertEqual(self.run_it(script).stdout, "CUDA out of memory.\n")

    def test_out_of_memory_is_the_subject_of_the_last_line(self):
        # The error is printed, then PyTorch's autograd thread has a second to drop its graph. Without it Python's shutdown
        # may end the thread in a destructor, and the process aborts.
        script = ("import sys, time, torch\nsay = sys.excepthook\n"
                  "sys.excepthook = lambda *error: (say(*error), time.sleep(1))\n"
                  "model = torch.nn.Linear(512, 512).cuda()\n"
                  "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nkept = []\n"
                  "while True:\n    kept.append(torch.zeros(8 << 20, device='cuda'))\n"
                  "    model(torch.zeros(64, 512).cuda()).sum().backward()\n    optimizer.step()\n")
        done = self.run_it(script, code=1, SIMGPU_MEMORY="256M")
        self.assertRegex(done.stderr.splitlines()[-1],
                         r"^hotpack: out of memory at step [5-9]: 32\.0 MiB asked, [0-9.]+ MiB free; live [0-9.]+ MiB of "
                         r"256\.0 MiB; would help: .*a device of .*; the program failed with exit code 1\. Next: ")

    def test_the_compatibility_mode(self):
        self.assertEqual(self.run_it(TRAIN, "--compatibility").stdout, DRIVERS)
        self.assertEqual(self.run_it(TRAIN, python=("-I",)).stdout, DRIVERS)

    def test_pytorchs_own_cache_stays_if_asked_for(self):
        self.assertEqual(self.run_it(TRAIN, "--keep-caching").stdout, "native True SourceFileLoader\n")

    def test_started_programs_inherit_it(self):
        script = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {TRAIN!r}], check=True)\n"
        self.assertEqual(self.run_it(script).stdout, OURS)

    def test_a_program_without_pytorch_is_left_alone(self):
        script = ("import sys\nprint('hotpack' in sys.modules, 'torch' in sys.modules)\n"
                  "sys.path[:] = [path for path in sys.path if 'site-packages' not in path]\n"
                  "for _ in range(2):\n"
                  "    try: import torch\n"
                  "    except ImportError as error: print(error.name)\n")
        self.assertEqual(self.run_it(script).stdout, "False False\ntorch\ntorch\n")

    def test_another_sitecustomize_is_imported_too(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "sitecustomize.py").write_text("print('theirs')\n")
            script = "import sitecustomize\nprint(sitecustomize.__file__)\n"
            done = self.run_it(script + TRAIN, PYTHONPATH=folder)
            self.assertEqual(done.stdout, f"theirs\n{folder}/sitecustomize.py\n" + OURS)
            Path(folder, "sitecustomize.py").write_text("import nothing_of_that_name\n")
            done = self.run_it(TRAIN, PYTHONPATH=folder)  # Python itself says so and goes on
            self.assertEqual(done.stdout, OURS)
            self.assertIn("nothing_of_that_name", done.stderr)

    def test_where_it_is_not_possible_one_line_says_so(self):
        done = self.run_it(TRAIN, HOTPACK_HOME="/nowhere")
        self.assertEqual(done.stdout, DRIVERS)
        said = [line for line in done.stderr.splitlines() if "through the driver" in line]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn("is missing", said[0])


if __name__ == "__main__":
    unittest.main()
