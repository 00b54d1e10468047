"""hotpack.enable() under real PyTorch on the simulated device, with the driver hooked and without: what repeats is served by
script, the checker has nothing to report, and PyTorch's own questions are answered."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["HOTPACK_BUILD"])
SIMGPU = BUILD / "lib" / "simgpu"
LIBRARIES = [SIMGPU / name for name in ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9")]

TRAIN = """
import json, sys
import hotpack
hotpack.enable()
import torch
import torch.nn.functional as F
model = torch.nn.Sequential(torch.nn.Linear(256, 65536), torch.nn.ReLU(), torch.nn.Linear(65536, 100)).cuda()
optimizer = torch.optim.Adam(model.parameters())
try:
    torch.empty(1 << 50, device="cuda", dtype=torch.uint8)
except torch.OutOfMemoryError as error:
    out_of_memory = str(error)
for step in range(20):
    x, y = torch.randn(64, 256).cuda(), torch.zeros(64, dtype=torch.long).cuda()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
stats = dict(torch.cuda.memory_stats())
print(torch.cuda.memory_summary(abbreviated=True))
free, total = torch.cuda.mem_get_info()
print(json.dumps({"hotpack": hotpack.stats(), "torch": {str(k): v for k, v in stats.items()}, "free": free, "total": total,
                  "allocated": torch.cuda.memory_allocated(), "peak": torch.cuda.max_memory_allocated(),
                  "reserved": torch.cuda.memory_reserved(), "backend": torch.cuda.get_allocator_backend(),
                  "out_of_memory": out_of_memory}))
"""


SHARE = """
import hotpack
hotpack.enable()
import torch
from torch.multiprocessing.reductions import reduce_tensor
tensor = torch.ones(1 << 20, device="cuda")
for _ in range(2):
    try:
        print(reduce_tensor(tensor))
    except RuntimeError as error:
        print(str(error).splitlines()[0])
"""

# A pool of tensors with an allocator of its own, as of ncclMemAlloc or vLLM's sleep mode. (Which functions it has does not
# matter here.) The job goes on after the refusal.
POOL = """
import os
import hotpack
hotpack.enable()
import torch
library = os.path.join(os.environ["HOTPACK_BUILD"], "lib", "libhotpack_torch.so")
own = torch.cuda.memory.CUDAPluggableAllocator(library, "hotpack_torch_malloc", "hotpack_torch_free")
try:
    pool = torch.cuda.MemPool(own.allocator())
    with torch.cuda.use_mem_pool(pool):
        torch.ones(1 << 20, device="cuda")
    print("not asked")
except RuntimeError as error:
    print(str(error).splitlines()[0])
print(torch.ones(1 << 20, device="cuda").numel(), hotpack.stats()["requests"])
"""

# PyTorch's autograd thread may still be giving up the last graph when a script ends; if it asks for the interpreter's lock
# once that is shutting down, the process aborts (seen without hotpack too, on busy machines).
SETTLE = "\nimport time; time.sleep(1)\n"

class EnableTest(unittest.TestCase):
    def child(self, script: str, hooks: bool, **environment: str) -> "tuple[subprocess.CompletedProcess, str]":
        """Runs it on the simulated device; what it did, and what the checker reported."""
        with tempfile.TemporaryDirectory() as scratch:
            reports = Path(scratch, "reports")
            program = [sys.executable, "-c", script + SETTLE]
            more = {"SIMGPU_REPORT_FILE": str(reports), **environment}
            if hooks:
                program = [str(BUILD / "bin" / "hotpack"), "run", "--simulate", "--", *program]
            else:
                more["LD_PRELOAD"] = " ".join(str(path) for path in LIBRARIES if path.exists())
                more["LD_LIBRARY_PATH"] = str(SIMGPU)
            done = subprocess.run(program, env={**os.environ, **more}, capture_output=True, text=True, timeout=300)
            return done, reports.read_text() if reports.exists() else ""

    def test_a_training_loop(self):
        for hooks in (True, False):
            with self.subTest(hooks=hooks):
                done, reports = self.child(TRAIN, hooks)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("REPORT", done.stderr + reports)
                told = json.loads(done.stdout.splitlines()[-1])
                stats, torch_stats = told["hotpack"], told["torch"]
                self.assertEqual(stats["planned_steady"], stats["requests_steady"])
                self.assertGreater(stats["requests_steady"], stats["requests"] // 2)
                self.assertLessEqual(stats["reserved_steady"], 1.02 * stats["live_peak"] + (4 << 20))
                self.assertEqual(told["backend"], "pluggable")
                self.assertRegex(told["out_of_memory"], "^CUDA out of memory. Tried to allocate 1048576.00 GiB. GPU 0 has a total "
                                 "capacity of .* is free. hotpack: out of memory on device 0: a request of")
                # PyTorch counts what it asked hotpack for; both round blocks up to 512 bytes.
                self.assertEqual(told["peak"], stats["live_peak"])
                self.assertEqual(told["allocated"], torch_stats["allocated_bytes.all.current"])
                self.assertEqual(torch_stats["allocation.all.allocated"], stats["requests"])
                self.assertGreaterEqual(told["reserved"], told["allocated"])
                self.assertLessEqual(told["free"], told["total"])
                self.assertIn("Allocated memory", done.stdout)

    def test_sharing_a_tensor_is_refused_by_pytorch(self):
        """If this fails, PyTorch asks the driver, and hotpack must answer. share_test.py has hotpack's own way."""
        for hooks in (True, False):
            with self.subTest(hooks=hooks):
                done, _ = self.child(SHARE, hooks, HOTPACK_SHARE="0")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stdout.count("does not yet support shareIPcHandle"), 2, done.stdout)
                self.assertNotIn("cuIpcGetMemHandle", done.stderr)

    def test_a_pool_with_an_allocator_of_its_own_is_refused_by_pytorch(self):
        """If this fails, PyTorch serves the pool by hotpack, and its own allocator must be asked."""
        for hooks in (True, False):
            with self.subTest(hooks=hooks):
                done, _ = self.child(POOL, hooks)
                self.assertEqual(done.returncode, 0, done.stderr)
                refusal, after = done.stdout.splitlines()[:2]
                self.assertRegex(refusal, "^pluggable does not yet support createOrIncrefPool")
                self.assertEqual(after, f"{1 << 20} 1")

    def test_simulate_starts_the_program_again(self):
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch, "train.py")
            path.write_text("import hotpack\nhotpack.simulate(memory='3G', devices=2)\n" + TRAIN +
                            "print(torch.cuda.device_count(), torch.cuda.get_device_properties(0).total_memory >> 30)\n" + SETTLE)
            done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.splitlines()[-1], "2 3")
        first, *last = [line for line in done.stderr.splitlines() if "hotpack: " in line]
        self.assertEqual(first, "hotpack: simulated device: memory is real, values are zeros, times mean nothing")
        self.assertEqual(len(last), 1, done.stderr)

    def refused(self, script: str, hooks: bool, **environment: str) -> str:
        done, _ = self.child(script, hooks, **environment)
        self.assertNotEqual(done.returncode, 0)
        error = [line for line in done.stderr.splitlines() if "hotpack.Error: " in line]
        self.assertEqual(len(error), 1, done.stderr)
        return error[0]

    def test_too_late(self):
        text = self.refused("import torch, hotpack; torch.zeros(1).cuda(); hotpack.enable()", False)
        self.assertIn("must come before the first use of CUDA", text)

    def test_no_library(self):
        text = self.refused("import hotpack; hotpack.enable()", True, HOTPACK_HOME="/nonexistent")
        self.assertIn("libhotpack_torch.so.0 is missing (/nonexistent/lib/libhotpack_torch.so.0); install", text)

    def test_no_driver(self):
        done = subprocess.run([sys.executable, "-c", "import hotpack; hotpack.enable()"], capture_output=True, text=True)
        if done.returncode == 0:
            self.skipTest("there is an NVIDIA driver here")
        self.assertIn("no NVIDIA driver here (libcuda.so.1 cannot be loaded); hotpack.simulate(), or", done.stderr)

    def test_simulated_and_real_mixed(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(SIMGPU)}
        done = subprocess.run([sys.executable, "-c", "import hotpack; hotpack.enable()"], env=environment,
                              capture_output=True, text=True)
        self.assertIn("simulated and real are mixed: libcuda.so.1 is the simulated driver", done.stderr)


if __name__ == "__main__":
    unittest.main()
