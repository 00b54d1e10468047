"""The programs of python/examples on the simulated device, and hotpack._cupy against a stand-in for CuPy, whose own runtime
that device does not take. What a package is missing for is skipped."""

import importlib.util
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["HOTPACK_BUILD"])
EXAMPLES = Path(__file__).resolve().parents[2] / "python" / "examples"
SIMULATED = [str(BUILD / "bin" / "hotpack"), "run", "--simulate", "--", sys.executable]
FIGURES = r"by the plan from iteration (-?\d+) on \((\d+) of (\d+) requests\), held at most (\d+) bytes"


def installed(*modules: str) -> bool:
    try:
        return all(importlib.util.find_spec(module) is not None for module in modules)
    except ModuleNotFoundError:
        return False


def run(program: "list[str]", **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(program, env={**os.environ, **environment}, capture_output=True, text=True, timeout=250)


@unittest.skipUnless(installed("torch"), "needs PyTorch")
class TorchrunTest(unittest.TestCase):
    def start(self, folder: str) -> "dict[int, list[int]]":
        """The figures of each rank: steady iteration, planned, requests, arena."""
        done = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                    str(EXAMPLES / "torchrun_train.py"), "--simulate"], HOTPACK_PLAN=str(Path(folder, "job.%r.plan")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("REPORT", done.stderr)
        self.assertEqual(done.stderr.count("hotpack: held at most"), 2, done.stderr)  # each rank says its line
        found = re.findall(r"^rank (\d): \d+ iterations, " + FIGURES + "$", done.stdout, re.MULTILINE)
        return {int(rank): [int(figure) for figure in figures] for rank, *figures in found}

    def test_the_second_start_begins_with_the_plans(self):
        with tempfile.TemporaryDirectory() as folder:
            first = self.start(folder)
            self.assertEqual(sorted(os.listdir(folder)), ["job.0.plan", "job.1.plan"])
            second = self.start(folder)
        self.assertEqual(sorted(first), [0, 1])
        for rank, (steady, planned, requests, _) in second.items():
            with self.subTest(rank=rank):
                self.assertGreater(first[rank][0], 1)
                self.assertIn(steady, (0, 1))
                self.assertEqual(requests, first[rank][2])
                self.assertGreater(planned, first[rank][1])


@unittest.skipUnless(installed("jax", "jax_plugins.xla_cuda13"), "needs JAX with its CUDA 13 plugin")
class JaxTest(unittest.TestCase):
    def test_its_arrays_are_hotpacks_and_repeat(self):
        done = run([*SIMULATED, str(EXAMPLES / "jax_train.py")], SIMGPU_CHECK="0")
        self.assertEqual(done.returncode, 0, done.stderr)
        steady, planned, requests, _ = map(int, re.search(FIGURES, done.stdout).groups())
        self.assertGreater(steady, 0)
        self.assertGreater(planned, 100)
        self.assertGreater(requests, planned)


STAND_IN = """
import ctypes, gc, sys, threading, types, weakref
runtime = ctypes.CDLL(None)  # the simulated one, which is preloaded
class CUDARuntimeError(RuntimeError): pass
def call(name, *arguments):
    result = getattr(runtime, name)(*arguments)
    if result != 0: raise CUDARuntimeError(f"{name}: {result}")
def device():
    number = ctypes.c_int()
    call("cudaGetDevice", ctypes.byref(number))
    return number.value
class Stream:
    ptr = 0
class Made(Stream):
    def __init__(self):
        made = ctypes.c_void_p()
        call("cudaStreamCreateWithFlags", ctypes.byref(made), 1)
        self.ptr = made.value
    def __del__(self):
        runtime.cudaStreamDestroy(ctypes.c_void_p(self.ptr))
class OutOfMemoryError(MemoryError):
    def __init__(self, size, total, limit=0): super().__init__(f"{size} {total}")
class BaseMemory: pass
class MemoryPointer:
    def __init__(self, mem, offset): self.mem, self.ptr = mem, mem.ptr + offset
current, asked = Stream(), []
cupy = types.ModuleType("cupy")
cupy.cuda = types.SimpleNamespace(
    BaseMemory=BaseMemory, MemoryPointer=MemoryPointer, get_current_stream=lambda: current, set_allocator=asked.append,
    memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError), device=types.SimpleNamespace(get_device_id=device),
    runtime=types.SimpleNamespace(CUDARuntimeError=CUDARuntimeError, free=lambda p: call("cudaFree", ctypes.c_void_p(p)),
                                  setDevice=lambda n: call("cudaSetDevice", n),
                                  deviceSynchronize=lambda: call("cudaDeviceSynchronize")))
sys.modules["cupy"] = cupy
import hotpack
library, driver = hotpack._library.core(), ctypes.CDLL("libcuda.so.1")
real_malloc, real_free = library.hotpack_malloc, library.hotpack_free_pooled
def malloc(pointer, size, stream):  # what hotpack gives and takes back, the checker is told
    result = real_malloc(pointer, ctypes.c_size_t(size), ctypes.c_void_p(stream))
    if result == 0: driver.simgpuBlockGiven(ctypes.c_uint64(pointer._obj.value), ctypes.c_size_t(size), ctypes.c_void_p(stream))
    return result
def free(pointer, stream):
    driver.simgpuBlockReturned(ctypes.c_uint64(pointer), ctypes.c_void_p(stream))
    return real_free(ctypes.c_void_p(pointer), ctypes.c_void_p(stream))
library.hotpack_malloc, library.hotpack_free_pooled = malloc, free
hotpack.enable_cupy()
allocate, = asked
def use(pointer, size): call("cudaMemsetAsync", ctypes.c_void_p(pointer.ptr), 1, size, ctypes.c_void_p(current.ptr))
"""

USES = {
    "a loop": ("""
for step in range(20):
    blocks = [allocate(size << 16) for size in (1, 2, 3, 4)]
    for block, size in zip(blocks, (1, 2, 3, 4)): use(block, size << 16)
    del blocks, block
    hotpack.step()
figures = hotpack.stats()
assert figures["planned"] >= 60 and figures["requests"] == 80, figures
""", True),
    "a thread without a context, and none at all": ("""
def ask():
    block = allocate(4096)
    assert block.ptr != 0
    kept.append(block)
kept = []
for _ in range(2):
    thread = threading.Thread(target=ask)
    thread.start(); thread.join()
assert len(kept) == 2 and allocate(0).ptr == 0
""", True),
    "memory of another device goes back there": ("""
call("cudaSetDevice", 1)
block = allocate(1 << 20)
assert block.mem.device_id == 1
use(block, 1 << 20)
call("cudaSetDevice", 0)
del block
assert device() == 0 and hotpack._library.fetch(hotpack._library.Extent, hotpack._library.core().hotpack_list_blocks, 1) == []
call("cudaSetDevice", 1)
current = Made()  # its work must come after the default stream's of that device
again = allocate(1 << 20)
use(again, 1 << 20)
""", True),
    "a stream lives as long as its memory": ("""
current = Made()
dead = weakref.ref(current)
block = allocate(1 << 20)
use(block, 1 << 20)
current = Stream()
assert dead() is not None
del block
assert dead() is None
""", True),
    "memory that changes its stream is ordered": ("""
for step in range(20):
    block = allocate(1 << 20)
    use(block, 1 << 20)
    current = Stream() if current.ptr else Made()
    del block
""", True),
    "out of memory is CuPy's error": ("""
try:
    allocate(1 << 40)
    raise SystemExit("answered")
except OutOfMemoryError as error:
    assert str(error) == f"{1 << 40} -1", error
assert allocate(4096).ptr != 0
""", True),
    "blocks that outlive the program": ("""
kept = [allocate(4096) for _ in range(8)]
kept.append(kept)
""", True),
    "the checker is on": ("""
block = allocate(1 << 20)
pointer = block.ptr
del block
call("cudaMemset", ctypes.c_void_p(pointer), 1, 1 << 20)
""", False),
}


class CupyTest(unittest.TestCase):
    def test_the_allocator(self):
        simgpu = BUILD / "lib" / "simgpu"
        alone = {"LD_PRELOAD": str(simgpu / "libcudart.so.13"), "LD_LIBRARY_PATH": str(simgpu)}
        for (what, (script, right)), hooks in itertools.product(USES.items(), (True, False)):
            with self.subTest(what, hooks=hooks):
                program = SIMULATED if hooks else [sys.executable]
                done = run([*program, "-c", STAND_IN + script], SIMGPU_DEVICES="2", **({} if hooks else alone))
                self.assertEqual(done.returncode == 0, right, done.stderr)
                self.assertEqual("REPORT" in done.stderr, not right, done.stderr)
                self.assertNotIn("Traceback", done.stderr)

    def test_the_example_says_that_it_needs_a_gpu(self):
        done = run([*SIMULATED, str(EXAMPLES / "cupy_train.py")])
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("cupy_train: needs a GPU", done.stderr)

    def test_without_cupy_it_is_one_line(self):
        script = "import sys; sys.modules['cupy'] = None\nimport hotpack\ntry: hotpack.enable_cupy()\nexcept hotpack.Error as e: print(e)"
        done = run([sys.executable, "-c", script])
        self.assertRegex(done.stdout, r"^hotpack.enable_cupy\(\) needs CuPy, .*\n$")


if __name__ == "__main__":
    unittest.main()
