"""The overlap of a prefetch stream with compute, in virtual time: as under PyTorch's allocator."""

import os
import subprocess
import sys
import unittest

BUILD = os.environ.get("HOTPACK_BUILD", os.path.abspath("build"))
COSTS = "kernel=1000,thread=0,pcie=1.048576"  # milliseconds for a kernel and for a copy of a MiB
SERIAL_MS = 16  # a step without overlap: 8 kernels and 8 copies

# A small batch, released early, and memory that is only needed to fetch it: the lowest placement puts activations there.
PROGRAM = """
import ctypes, sys
allocator, lengths = sys.argv[1:]
if allocator == "hotpack":
    import hotpack
    hotpack.enable()
import torch
now = ctypes.CDLL("libcuda.so.1").simgpuTimeHost
now.restype = ctypes.c_uint64
copies, main, steps = torch.cuda.Stream(), torch.cuda.current_stream(), 60
host = torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True)

def fetch():
    with torch.cuda.stream(copies):
        batch, raw = (torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(2))
        for part in range(8):
            (raw if part < 4 else batch).copy_(host, non_blocking=True)
    return batch

following = fetch()
for step in range(steps):
    if step == steps // 2:
        torch.cuda.synchronize()
        start = now()
    main.wait_stream(copies)
    batch, following = following, None
    batch.record_stream(main)
    following = fetch()
    kept, more = [], step * 7 % 11 << 20 if lengths == "varying" else 0
    for layer in range(4):
        kept.append(torch.empty((32 << 20) + (layer + 1 << 19) + more, dtype=torch.uint8, device="cuda"))
        kept[-1].fill_(1)
        kept[-1].fill_(1)
        if layer == 0:
            del batch
    del kept
    if allocator == "hotpack":
        hotpack.step()
torch.cuda.synchronize()
print((now() - start) / 1e6 / (steps - steps // 2))
if allocator == "hotpack" and lengths == "varying":
    assert hotpack.stats()["envelope_entries"] > 0
"""


def step_ms(allocator: str, edges: str, lengths: str = "fixed") -> float:
    libraries = [f"{BUILD}/lib/simgpu/lib{name}" for name in ("cudart.so.13", "cublas.so.13", "cublasLt.so.13", "cudnn.so.9")]
    environment = dict(
        os.environ,
        LD_PRELOAD=" ".join(libraries),
        LD_LIBRARY_PATH=f"{BUILD}/lib/simgpu",
        SIMGPU_TIME=COSTS,
        HOTPACK_STREAM_EDGES=edges,
        HOTPACK_WAIT_PLAN="1",
    )
    run = subprocess.run([sys.executable, "-c", PROGRAM, allocator, lengths], env=environment, capture_output=True, text=True, timeout=300)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return float(run.stdout)


class OverlapTest(unittest.TestCase):
    def test_a_prefetch_stream_keeps_its_overlap(self) -> None:
        overlap = SERIAL_MS - step_ms("pytorch", "avoid")
        self.assertGreater(overlap, 7)
        self.assertGreaterEqual(SERIAL_MS - step_ms("hotpack", "avoid"), 0.95 * overlap)

    def test_under_an_envelope_too(self) -> None:
        overlap = SERIAL_MS - step_ms("pytorch", "avoid", "varying")
        self.assertGreater(overlap, 7)
        self.assertGreaterEqual(SERIAL_MS - step_ms("hotpack", "avoid", "varying"), 0.95 * overlap)
        self.assertLess(SERIAL_MS - step_ms("hotpack", "keep", "varying"), 0.95 * overlap)

    def test_streams_may_share_addresses_on_request(self) -> None:
        self.assertGreater(step_ms("hotpack", "keep"), 10)


if __name__ == "__main__":
    unittest.main()
