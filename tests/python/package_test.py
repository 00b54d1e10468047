"""Uses of PyTorch other than ordinary training, with hotpack enabled: each in a process of its own on the
simulated device, with the driver hooked and without."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("HOTPACK_BUILD", Path(__file__).resolve().parents[2] / "build"))
PACKAGE = Path(__file__).resolve().parents[2] / "python"
SIMGPU = BUILD / "lib" / "simgpu"
LIBRARIES = [SIMGPU / name for name in ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9")]
START = "import hotpack, json\nhotpack.enable()\nimport torch\n"


# PyTorch's autograd thread may still be giving up the last graph when a script ends; if it asks for the interpreter's lock
# once that is shutting down, the process aborts (seen without hotpack too, on busy machines).
SETTLE = "\nimport time; time.sleep(1)\n"

class PackageTest(unittest.TestCase):
    def child(self, script: str, hooks: bool, start: str = START, code: int = 0, **more: str) -> "tuple[str, str]":
        """stdout and stderr of the script, which must end with this code and leave the checker nothing to report."""
        environment = dict(os.environ, HOTPACK_HOME=str(BUILD), PYTHONPATH=str(PACKAGE), **more)
        environment.pop("HOTPACK", None)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-c", start + script + SETTLE]
            if hooks:
                command = [str(BUILD / "bin" / "hotpack"), "run", "--simulate", "--", *command]
            else:
                environment["LD_PRELOAD"] = " ".join(str(path) for path in LIBRARIES)
                environment["LD_LIBRARY_PATH"] = str(SIMGPU)
                environment["SIMGPU_REPORT_FILE"] = str(Path(folder) / "reports")
            ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
            reports = Path(folder) / "reports"
            if reports.exists():
                self.assertNotIn("REPORT", reports.read_text())
        self.assertEqual(ended.returncode, code, ended.stderr[-4000:])
        return ended.stdout, ended.stderr

    def both(self, script: str, **options) -> "list[tuple[str, str]]":
        return [self.child(script, hooks, **options) for hooks in (False, True)]

    def test_a_discriminator_trained_more_often(self):
        script = """
G = torch.nn.Linear(16, 64).cuda()
D = torch.nn.Linear(64, 1).cuda()
of_g, of_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(30):
    for _ in range(2):
        of_d.zero_grad()
        D(G(torch.ones(8, 16, device="cuda")).detach()).mean().backward()
        of_d.step()
    of_g.zero_grad()
    D(G(torch.ones(8, 16, device="cuda"))).mean().backward()
    of_g.step()
print(json.dumps(hotpack.stats()))
"""
        out, _ = self.child(script, False)
        stats = json.loads(out)
        self.assertGreater(stats["planned"], stats["requests"] / 2)
        self.assertLess(stats["iterations"], 40)

    def test_memory_that_other_streams_use_until_its_own_comes_after_them(self):
        """PyTorch's contract without record_stream (docs/correctness.md, Pooled releases), as FSDP2 relies on it."""
        script = """
s1, s2, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
p = torch.nn.Parameter(torch.zeros(1 << 18, device="cuda"))
p.grad = torch.zeros_like(p)
optimizer = torch.optim.SGD([p], .1)
for i in range(20):
    s1.wait_stream(main)
    with torch.cuda.stream(s1): e = torch.empty(4 << 20, device="cuda").fill_(1)
    main.wait_stream(s1)
    e.mul_(2)
    del e
    with torch.cuda.stream(s2): b = torch.empty(4 << 20, device="cuda").fill_(1)
    del b
    optimizer.step()
torch.cuda.synchronize()
print(json.dumps(hotpack.stats() | {"reserved": torch.cuda.max_memory_reserved()}))
"""
        for out, _ in self.both(script):
            stats = json.loads(out)
            self.assertGreater(stats["planned"], stats["requests"] / 2)
            self.assertGreater(stats["cross_stream"], 10)
            self.assertLess(stats["reserved"], 24 << 20)  # one block's place for both

    def test_external_streams_may_end(self):
        script = """
import ctypes
runtime, other = ctypes.CDLL("libcudart.so.13"), torch.cuda.Stream()
torch.zeros(1, device="cuda")
for i in range(20):
    handle = ctypes.c_void_p()
    assert runtime.cudaStreamCreateWithFlags(ctypes.byref(handle), 1) == 0
    external = torch.cuda.ExternalStream(handle.value) if i % 2 else torch.cuda.get_stream_from_external(handle.value)
    with torch.cuda.stream(external): e = torch.empty(4 << 20, device="cuda").fill_(1)
    e.record_stream(torch.cuda.current_stream())
    del e
    assert runtime.cudaStreamDestroy(handle) == 0
    with torch.cuda.stream(other): b = torch.empty(4 << 20, device="cuda").fill_(2)
    del b
torch.cuda.synchronize()
"""
        self.both(script)

    def test_what_is_left_to_the_driver_keeps_the_contract(self):
        script = """
s1, s2, main = torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.current_stream()
for i in range(10):
    s1.wait_stream(main)
    with torch.cuda.stream(s1): e = torch.empty(4 << 20, device="cuda").fill_(1)
    main.wait_stream(s1)
    e.mul_(2)
    del e
    with torch.cuda.stream(s2): b = torch.empty(4 << 20, device="cuda").fill_(1)
    del b
    told = torch.empty(4 << 20, device="cuda").fill_(1)
    s2.wait_stream(main)
    with torch.cuda.stream(s2): told.sum()
    told.record_stream(s2)
    del told
    again = torch.empty(4 << 20, device="cuda").fill_(2)
    del again
torch.cuda.synchronize()
print(json.dumps(hotpack.stats()))
"""
        for how in ("0", "record"):
            with tempfile.TemporaryDirectory() as folder:
                out, _ = self.child(script, False, start=f"import os\nos.environ['HOTPACK'] = '{how}'\n" + START,
                                    HOTPACK_TRACE=str(Path(folder) / "job.trace"))
            self.assertEqual(json.loads(out)["requests"], 0)

    def test_cudnn_benchmark_stays_off_with_one_line(self):
        script = """
torch.backends.cudnn.benchmark = True
conv, x = torch.nn.Conv2d(3, 8, 3).cuda(), torch.ones(2, 3, 16, 16, device="cuda")
conv(x).sum().backward()
with torch.backends.cudnn.flags(enabled=True, benchmark=True):
    conv(x).sum().backward()
torch.backends.cudnn.benchmark = False
try:
    torch.backends.cudnn.benchmark = 3
except (TypeError, RuntimeError):
    print(torch.backends.cudnn.benchmark)
"""
        for out, err in self.both(script):
            self.assertEqual(out, "False\n")
            self.assertEqual(err.count("benchmark stays off"), 1, err)
        before = "import hotpack, torch\ntorch.backends.cudnn.benchmark = True\nhotpack.enable()\n"
        out, err = self.child("print(torch.backends.cudnn.benchmark)", False, start=before)
        self.assertEqual(out, "False\n")
        self.assertEqual(err.count("benchmark stays off"), 1, err)

    def test_graphs(self):
        """Captured backward passes; a shared pool; graphs that go before and after their tensors; a capture that fails."""
        script = """
import gc
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
x, y = torch.ones(32, 64, device="cuda"), torch.zeros(32, dtype=torch.long, device="cuda")
def step():
    optimizer.zero_grad(set_to_none=True)
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        step()
torch.cuda.current_stream().wait_stream(side)
first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
with torch.cuda.graph(first):
    loss = step()
with torch.cuda.graph(second, pool=first.pool()):
    twice = x * 2
for _ in range(3):
    first.replay()
    second.replay()
    others = [torch.ones(100, 100, device="cuda") for _ in range(5)]
def overlaps(segments):
    ranges = sorted((s["address"], s["address"] + s["total_size"]) for s in segments)
    return any(a[1] > b[0] for a, b in zip(ranges, ranges[1:]))
segments = torch.cuda.memory_snapshot()
held = sum(s["total_size"] for s in segments)
print(overlaps(segments), held == torch.cuda.memory_reserved(), any(s["segment_pool_id"] != (0, 0) for s in segments))
del first
second.replay()
del twice
second.replay()
torch.cuda.synchronize()
failed = torch.cuda.CUDAGraph()
try:
    with torch.cuda.graph(failed):
        (x * 2).sum().item()
except RuntimeError:
    print("refused")
del failed, second, loss
optimizer.zero_grad(set_to_none=True)
gc.collect()
print([s for s in torch.cuda.memory_snapshot() if s["segment_pool_id"] != (0, 0)])
step()
torch.cuda.synchronize()
"""
        for out, _ in self.both(script):
            self.assertEqual(out, "False True True\nrefused\n[]\n")

    def test_out_of_memory_says_how_much_is_free(self):
        script = """
import os
torch.cuda.memory._record_memory_history()
x = torch.ones(4, device="cuda:1", requires_grad=True)
class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(context, x): return x.clone()
    @staticmethod
    def backward(context, gradient): return torch.empty(1 << 40, device="cuda:1")
full = torch.empty(10 << 30, dtype=torch.uint8, device="cuda:0")
try:
    Greedy.apply(x).sum().backward()
except torch.OutOfMemoryError as error:
    print(str(error).startswith("CUDA out of memory. Tried to allocate 4096.00 GiB. GPU 1 has a total capacity of 16.00 GiB"))
event = [e for e in torch.cuda.memory._snapshot()["device_traces"][1] if e["action"] == "oom"]
print(len(event), event[0]["device_free"] > 15 << 30, flush=True)
os._exit(0)  # PyTorch's backward thread may abort if the interpreter ends meanwhile, with its own allocator too
"""
        for out, _ in self.both(script, SIMGPU_DEVICES="2"):
            self.assertEqual(out, "True\n1 True\n")

    def test_devices_that_cannot_reach_each_other(self):
        script = """
host = torch.arange(1 << 18, dtype=torch.float32)
first = host.to("cuda:0")
second = first.to("cuda:1")
print(torch.equal(second.to("cuda:0").cpu(), host), torch.equal(first.view(512, 512).t().to("cuda:1").cpu(), host.view(512, 512).t()))
stages = [torch.nn.Linear(256, 256).to(device) for device in ("cuda:0", "cuda:1")]
optimizer = torch.optim.SGD([p for stage in stages for p in stage.parameters()], lr=0.1)
for _ in range(4):
    hidden = stages[0](torch.ones(8, 256, device="cuda:0"))
    stages[1](hidden.to("cuda:1")).sum().backward()
    optimizer.step()
parallel = torch.nn.DataParallel(stages[0], device_ids=[0])
print(parallel(torch.ones(8, 256, device="cuda:0")).device)
"""
        for peers in ("0", "1"):
            for out, _ in self.both(script, SIMGPU_DEVICES="2", SIMGPU_PEERS=peers, SIMGPU_VALUES="keep"):
                self.assertEqual(out, "True True\ncuda:0\n")

    def test_forks_and_loaders(self):
        script = """
import os, sys
from torch.utils.data import DataLoader, TensorDataset
kept = torch.ones(1000, device="cuda")
data = TensorDataset(torch.ones(16, 4))
print(sum(float(x.cuda().shape[0]) for x, in DataLoader(data, batch_size=4, num_workers=2)))
sys.stdout.flush()
child = os.fork()
if child == 0:
    hotpack.enable()
    hotpack.step()
    del kept
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), torch.ones(3, device="cuda").shape[0])
"""
        for out, _ in self.both(script):
            self.assertEqual(out, "16.0\n7 3\n")

    def test_wrong_arguments(self):
        script = """
def error(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__
print([error(lambda: hotpack.save_plan(path)) for path in (3, "a\\0b")])
print([error(lambda: hotpack.wait_plan(timeout)) for timeout in ("x", float("nan"), float("inf"), 1e12, 3e6, -5)])
"""
        out, _ = self.child(script, False, start="import hotpack\n")
        self.assertEqual(out, "['TypeError', 'ValueError']\n['TypeError', 'ValueError', True, True, True, True]\n")

    def test_import_is_light(self):
        out, _ = self.child("print('torch' in sys.modules)", False, start="import sys, hotpack\n")
        self.assertEqual(out, "False\n")


if __name__ == "__main__":
    unittest.main()
