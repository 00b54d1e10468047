"""Programs under PyTorch's own allocator on the simulated device, with each tensor's block told to the checker: what is
right by PyTorch's contract has no report, what is wrong has some, and none without the recorder (torch_blocks)."""

import os
import unittest
from pathlib import Path

import torch_blocks

BUILD = Path(os.environ["HOTPACK_BUILD"])
EXPANDABLE = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}

HEAD = """
import ctypes, torch
main, s1, s2 = torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()
def memory(): return torch.empty(4 << 20, device="cuda")
"""
TAIL = "\ntorch.cuda.synchronize()\n"

# A block of s1 is used by the default stream, released, and given to s1 again, which waits for that use, or does not.
REUSED = HEAD + """
for i in range(5):
    if WAIT: s1.wait_stream(main)
    with torch.cuda.stream(s1): a = memory().fill_(1)
    main.wait_stream(s1)
    a.mul_(2)
    del a
""" + TAIL

# As above, and a block of s2 comes in between: it never lies where s1's lay.
OTHER_POOL = HEAD + """
for i in range(5):
    s1.wait_stream(main)
    with torch.cuda.stream(s1): a = memory().fill_(1)
    main.wait_stream(s1)
    a.mul_(2)
    del a
    with torch.cuda.stream(s2): b = memory().fill_(1)
    del b
""" + TAIL

# A block of the default stream is used by s1 and released; the default stream gets it again. PyTorch is told, or not.
RECORDED = HEAD + """
for i in range(5):
    a = memory().fill_(1)
    s1.wait_stream(main)
    with torch.cuda.stream(s1): a.mul_(2)
    if RECORD: a.record_stream(s1)
    del a
    b = memory().fill_(2)
    del b
""" + TAIL

# The tensor is gone, its address is used.
STALE = HEAD + """
runtime = ctypes.CDLL("libcudart.so.13")
other = memory()
a = memory()
address = a.data_ptr()
del a
assert runtime.cudaMemsetAsync(ctypes.c_void_p(address), 1, ctypes.c_size_t(16), ctypes.c_void_p(0)) == 0
""" + TAIL

# Segments go back to the driver and come again; tensors of all sizes, in several threads. Each thread makes the context
# current: PyTorch calls cuMemAddressReserve for an expandable segment without one (github.com/pytorch/pytorch/issues/195256),
# which SIMGPU_CONTEXTS=strict refuses.
SEGMENTS = HEAD + """
import threading
def work(seed):
    torch.cuda.set_device(0)
    with torch.cuda.stream(torch.cuda.Stream()):
        for i in range(40):
            sizes = [1 + (seed * 7919 + i * 104729 + k * 1299709) % (3 << 20) for k in range(6)]
            kept = [torch.zeros(size, device="cuda") for size in sizes]
            kept[i % 6] = None
            if i % 10 == seed: torch.cuda.empty_cache()
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
torch.cuda.synchronize()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0
""" + TAIL

# A captured training step with PyTorch's private pool, replayed while other tensors come and go.
CAPTURED = HEAD + """
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).cuda()
optimizer = torch.optim.Adam(model.parameters(), capturable=True)
x = torch.randn(32, 64, device="cuda")
def step():
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss
s1.wait_stream(main)
with torch.cuda.stream(s1):
    for i in range(3): step()
main.wait_stream(s1)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): loss = step()
for i in range(5):
    x.copy_(torch.randn(32, 64, device="cuda"))
    graph.replay()
    b = memory().fill_(1)
    loss.item()
""" + TAIL

TRAINED = HEAD + """
import torch.nn.functional as F
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for i in range(4):
    x = torch.randn(8, 16 + i, 64, pin_memory=True).cuda(non_blocking=True)
    with torch.autocast("cuda", dtype=torch.bfloat16): loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""" + TAIL

# Reuse across streams without record_stream is what FSDP2 does throughout.
SHARDED = HEAD + """
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=4)
mesh = init_device_mesh("cuda", (4,))
model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()) for i in range(4)]).cuda()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model: fully_shard(layer, mesh=mesh, mp_policy=policy)
fully_shard(model, mesh=mesh, mp_policy=policy)
optimizer = torch.optim.AdamW(model.parameters())
for i in range(4):
    model(torch.randn(32, 256, device="cuda")).square().mean().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
""" + TAIL


class TorchBlocksTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.recorder = torch_blocks.build(BUILD / "tests" / "torch_blocks")
        except torch_blocks.Unavailable as reason:
            raise unittest.SkipTest(str(reason)) from None

    def right(self, script: str, blocks: int, **environment: str) -> None:
        """No report, though the checker was told of at least `blocks` blocks."""
        run = torch_blocks.run(script, BUILD, self.recorder, **environment)
        self.assertEqual((run.status, run.reports), (0, []), run.error)
        self.assertGreaterEqual(run.blocks, blocks)

    def wrong(self, script: str, kind: str, least: int, **environment: str) -> None:
        """At least so many reports, all of one kind."""
        run = torch_blocks.run(script, BUILD, self.recorder, **environment)
        self.assertEqual((run.status, run.kinds), (97, {kind}), run.error)
        self.assertGreaterEqual(len(run.reports), least)

    def test_unseen_without_the_recorder(self):
        """What the recorder is for: the checker alone finds nothing in these."""
        run = torch_blocks.run("WAIT = RECORD = False" + REUSED + RECORDED + STALE, BUILD, None)
        self.assertEqual((run.status, run.reports, run.blocks), (0, [], -1), run.error)

    def test_reused_without_waiting(self):
        self.wrong("WAIT = False" + REUSED, "reuse-without-order", 4)

    def test_reused_after_waiting(self):
        self.right("WAIT = RECORD = True" + REUSED + OTHER_POOL + RECORDED, 25)

    def test_not_recorded(self):
        self.wrong("RECORD = False" + RECORDED, "reuse-without-order", 5)

    def test_stale_address(self):
        self.wrong(STALE, "use-after-free", 1)

    def test_expandable_segments(self):
        self.wrong("WAIT = False" + REUSED, "reuse-without-order", 4, **EXPANDABLE)
        self.right("WAIT = True" + REUSED + SEGMENTS, 3 * 40 * 6, **EXPANDABLE)

    def test_segments_come_and_go(self):
        self.right(SEGMENTS, 3 * 40 * 6)

    def test_captured(self):
        self.right(CAPTURED, 50)

    def test_trained(self):
        self.right(TRAINED, 200)

    def test_sharded(self):
        self.right(SHARDED, 200)

    def test_says_what_it_cannot_record(self):
        """Instead of finding nothing."""
        run = torch_blocks.run("", BUILD, self.recorder, PYTORCH_ALLOC_CONF="backend:cudaMallocAsync")
        self.assertNotEqual(run.status, 0)
        self.assertRegex(run.error, "(?m)^torch_blocks: .*cudaMallocAsync")


if __name__ == "__main__":
    unittest.main()
