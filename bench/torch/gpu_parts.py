#!/usr/bin/env python3
"""The parts of `tools/gpu_check` that need PyTorch, under one allocator. Only PyTorch is imported, nothing is downloaded.

    python bench/torch/gpu_parts.py training --allocator hotpack --losses FILE --stats FILE
    python bench/torch/gpu_parts.py graphs --allocator hotpack

training     ten steps of GPT-2 small, then a graph capture, an out-of-memory and torch.compile
graphs       a captured training step, replayed while other memory comes and goes
overlap      copies on a stream of their own during work, against each alone
distributed  torch.distributed with one rank: collectives, and DistributedDataParallel
requests     nanoseconds of a request of PyTorch's allocator and its release

Prints findings as gpu_probe does (findings.py). Exit codes: 0, 1 (a finding failed), 2 (bad use: one line on stderr).
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import settings  # in this folder; imports no PyTorch
import train
from findings import Findings

_MIB = 1 << 20
_STEPS, _WARM_UP = 10, 4


class Run:
    """What the parts share."""

    def __init__(self, options: argparse.Namespace, torch):
        self.options, self.torch = options, torch
        self.found = Findings(f"gpu_parts {options.part} --allocator {options.allocator}")
        self.simulated = torch.cuda.get_device_name() == settings.SIMULATED_DEVICE
        self._begin = time.monotonic()

    def stage(self, name: str, run: Callable[[], None]) -> None:
        """Runs a part of a part. An exception fails it alone; late, it is left out."""
        if self.options.start_within is not None and time.monotonic() - self._begin > self.options.start_within:
            self.found.skip(name, f"not begun within {self.options.start_within} s")
            return
        try:
            run()
        except Exception as error:  # whatever it is: it is the finding
            self.found.check(False, f"{name}.calls", "every call succeeds", f"{type(error).__name__}: {error}"[:500])

    def equal(self, name: str, expected: str, pairs) -> None:
        """Compares tensors bit for bit. The simulated device computes nothing, so that there only the calls count."""
        same = [self.torch.equal(one, other) for one, other in pairs]
        if self.simulated:
            self.found.skip(name, "the simulated device computes nothing; every call succeeded")
        else:
            self.found.check(all(same), name, expected, "they are" if all(same) else f"{same.count(False)} of {len(same)} differ")

    def network(self, width: int = 256):
        nn = self.torch.nn
        self.torch.manual_seed(1)
        return nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)).cuda()


def training(run: Run) -> None:
    run.stage("train", lambda: _train(run))
    run.stage("capture", lambda: _capture(run))
    run.stage("out_of_memory", lambda: _out_of_memory(run))
    run.stage("compile", lambda: _compile(run))


def _train(run: Run) -> None:
    from loop import Loop
    from models import TASKS

    arguments = ["gpt2_small", "--steps", str(_STEPS), "--warm-up", str(_WARM_UP), *(["--tiny"] if run.options.tiny else [])]
    options = train.parse(arguments)
    options.allocator = run.options.allocator
    loop = Loop(TASKS["gpt2_small"], options)
    figures = loop.run()
    run.found.check(len(loop.losses) == _STEPS, "train.steps", f"{_STEPS} steps", str(len(loop.losses)))
    run.found.figure("step", "ms", [float(str(figures["step_ms"]))])
    if figures["torch_reserved_peak"] is not None:
        run.found.figure("reserved", "bytes", [float(str(figures["torch_reserved_peak"]))])
    if run.options.losses is not None:
        run.options.losses.write_text("".join(f"{loss.hex()}\n" for loss in loop.losses))
    _write_stats(run)


def _write_stats(run: Run) -> None:
    """hotpack's figures at this moment: what comes after the training is not part of its peak."""
    if run.options.stats is not None and run.options.allocator == "hotpack":
        import hotpack

        run.options.stats.write_text(json.dumps(hotpack.stats()))


def _capture(run: Run) -> None:
    torch = run.torch
    network = run.network()
    given = torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            network(given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        answer = network(given)
    pairs = []
    for _ in range(4):
        fresh = torch.randn(64, 256, device="cuda")
        given.copy_(fresh)
        graph.replay()
        passing = torch.full((8 * _MIB,), 7.0, device="cuda")  # must not lie where the graph writes
        with torch.no_grad():
            pairs.append((answer.clone(), network(fresh)))
        pairs.append((passing, torch.full_like(passing, 7.0)))
        del passing
    torch.cuda.synchronize()
    run.equal("capture.replays", "replays give what the same work without a graph gives, and write nothing else", pairs)
    if run.simulated:
        run.found.check(True, "capture.calls", "a graph is captured and replayed", "it is")


def _out_of_memory(run: Run) -> None:
    torch = run.torch
    total = torch.cuda.mem_get_info()[1]
    blocks, caught = [], ""
    try:
        for _ in range(64):
            blocks.append(torch.empty(total // 8, dtype=torch.uint8, device="cuda"))
    except Exception as error:  # its type is the finding
        caught = type(error).__name__
    count = len(blocks)
    run.found.check(caught == "OutOfMemoryError", "out_of_memory.type", "torch.OutOfMemoryError", caught or "no exception")
    run.found.check(4 <= count <= 8, "out_of_memory.after", "4 to 8 eighths of the memory", f"{count} eighths")
    blocks.clear()
    torch.cuda.empty_cache()
    again = torch.empty(total // 8 * max(count - 1, 1), dtype=torch.uint8, device="cuda")
    del again
    torch.cuda.empty_cache()
    network = run.network()
    network(torch.randn(64, 256, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    run.found.check(True, "out_of_memory.goes_on", "the memory can be used again, and a step runs", "it does")


def _compile(run: Run) -> None:
    torch = run.torch
    backend = "aot_eager" if run.simulated else "inductor"  # the simulated device compiles no kernels
    network = run.network()
    given = torch.randn(64, 256, device="cuda")
    try:
        if backend == "inductor":
            import triton  # noqa: F401
        compiled = torch.compile(network, backend=backend)
        compiled(given).sum().backward()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        if any(word in text for word in ("triton", "Triton", "C compiler", "gcc", "ptxas", "Python.h")):
            run.found.skip("compile", f"torch.compile cannot work here: {text[:300]}")
            return
        raise
    with torch.no_grad():
        close = torch.allclose(compiled(given), network(given), rtol=1e-3, atol=1e-3)
    torch.cuda.synchronize()
    if run.simulated:
        run.found.check(True, "compile", "a compiled step runs", f"it does, by {backend}")
    else:
        run.found.check(close, "compile", "a compiled step gives what the same step gives eagerly", "it does" if close else "it does not")


def graphs(run: Run) -> None:
    run.stage("graphs", lambda: _graphed_steps(run))


def _graphed_steps(run: Run) -> None:
    """Two networks with the same weights and inputs: one is trained with make_graphed_callables, one without."""
    torch = run.torch
    plain, graphed = run.network(), run.network()
    sample = torch.randn(64, 256, device="cuda", requires_grad=True)
    callable_ = torch.cuda.make_graphed_callables(graphed, (sample,))
    pairs = []
    for network, forward in ((plain, plain), (graphed, callable_)):
        torch.manual_seed(2)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
        for _ in range(_STEPS):
            given = torch.randn(64, 256, device="cuda")
            scratch = torch.full((4 * _MIB,), 3.0, device="cuda")
            optimizer.zero_grad(set_to_none=False)
            forward(given).square().mean().backward()
            optimizer.step()
            pairs.append((scratch, torch.full_like(scratch, 3.0)))
            pairs = pairs[-2:]
    torch.cuda.synchronize()
    pairs += list(zip(plain.parameters(), graphed.parameters(), strict=True))
    run.equal("graphs.weights", "weights trained with graphs and without are equal, bit for bit", pairs)
    if run.simulated:
        run.found.check(True, "graphs.calls", "graphed steps are captured and replayed", "they are")


def overlap(run: Run) -> None:
    if run.simulated:
        run.found.skip("overlap", "nothing runs at the same time on the simulated device")
        return
    run.stage("overlap", lambda: _overlap(run))


def _overlap(run: Run) -> None:
    torch = run.torch
    matrix = torch.randn(2048, 2048, device="cuda")
    host = torch.randn(16 * _MIB // 4, pin_memory=True)
    side = torch.cuda.Stream()

    def compute() -> None:
        product = matrix
        for _ in range(6):
            product = product @ matrix

    def copy() -> None:
        with torch.cuda.stream(side):
            batch = host.to("cuda", non_blocking=True)
        batch.record_stream(torch.cuda.current_stream())

    def seconds(*work: Callable[[], None]) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            for each in work:
                each()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    seconds(compute, copy)
    shares = []
    for _ in range(5):
        alone, copied, both = seconds(compute), seconds(copy), seconds(compute, copy)
        shares.append((alone + copied - both) / min(alone, copied))
    run.found.figure("overlap", "share", shares)
    run.found.check(True, "overlap.ran", "copies and products run", f"{len(shares)} rounds")


def distributed(run: Run) -> None:
    torch = run.torch
    if not torch.distributed.is_available():
        run.found.skip("distributed", "this PyTorch has no torch.distributed")
        return
    backend = "nccl"
    if run.simulated:
        run.found.skip("distributed.nccl", "libnccl has NVIDIA's static runtime, which needs a real driver; gloo takes its place")
        backend = "gloo"
    elif not torch.distributed.is_nccl_available():
        run.found.skip("distributed", "this PyTorch has no nccl")
        return
    with tempfile.TemporaryDirectory() as folder:
        run.stage("distributed", lambda: _collectives(run, backend, Path(folder)))


def _collectives(run: Run, backend: str, folder: Path) -> None:
    torch = run.torch
    group = torch.distributed
    options = {} if backend == "gloo" else {"device_id": torch.device("cuda", 0)}
    group.init_process_group(backend, init_method=f"file://{folder}/store", rank=0, world_size=1,
                             timeout=datetime.timedelta(seconds=20), **options)
    device = "cuda" if backend == "nccl" else "cpu"
    pairs = []
    try:
        for size in (1000, _MIB, 16 * _MIB):
            value = torch.full((size,), 3.0, device=device)
            group.all_reduce(value)
            gathered = torch.empty(size, device=device)
            group.all_gather_into_tensor(gathered, value)
            group.broadcast(gathered, 0)
            pairs.append((gathered, torch.full_like(gathered, 3.0)))
        work = group.all_reduce(pairs[-1][0], async_op=True)
        del pairs[-1]
        passing = torch.full((16 * _MIB,), 5.0, device=device)  # while the last collective may be running
        work.wait()
        pairs.append((passing, torch.full_like(passing, 5.0)))
        if backend == "nccl":
            network = torch.nn.parallel.DistributedDataParallel(run.network(), device_ids=[0])
            plain = run.network()
            given = torch.randn(64, 256, device="cuda")
            for each in (network, plain):
                each(given).square().mean().backward()
            pairs += [(one.grad, other.grad) for one, other in zip(network.module.parameters(), plain.parameters(), strict=True)]
        group.barrier()
        if device == "cuda":
            torch.cuda.synchronize()
        same = [torch.equal(one, other) for one, other in pairs]
        run.found.check(all(same), "distributed.values", "collectives of one rank keep every value",
                        f"{same.count(False)} of {len(same)} tensors differ, by {backend}")
    finally:
        group.destroy_process_group()


def requests(run: Run) -> None:
    run.stage("requests", lambda: _requests(run))


def _requests(run: Run) -> None:
    """Rounds of the same requests, through the functions that PyTorch offers to other allocators' users."""
    torch = run.torch
    sizes = [512, 4096, 65536, _MIB, 4 * _MIB, 20 * _MIB] * 4
    samples = []
    for round_ in range(60):
        begin = time.perf_counter_ns()
        blocks = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in sizes]
        blocks.clear()
        if round_ >= 20:
            samples.append((time.perf_counter_ns() - begin) / len(sizes))
    run.found.figure("pair", "ns", samples)
    run.found.check(True, "requests.ran", "tensors are made and released", f"{len(samples)} rounds of {len(sizes)}")


PARTS: dict[str, Callable[[Run], None]] = {"training": training, "graphs": graphs, "overlap": overlap,
                                           "distributed": distributed, "requests": requests}


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = train.Parser(prog="gpu_parts.py", description="Parts of gpu_check that need PyTorch.")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--allocator", choices=("default", "expandable", "hotpack", "preload"), default="default")
    parser.add_argument("--tiny", action="store_true", help="a small model of the same kind")
    parser.add_argument("--losses", type=Path, metavar="FILE", help="write each step's loss, in hexadecimal")
    parser.add_argument("--stats", type=Path, metavar="FILE", help="write hotpack's figures after the training")
    parser.add_argument("--start-within", type=float, metavar="SECONDS", help="leave out what has not begun by then")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    options.allocator = settings.choose_allocator(options.allocator, "cuda")
    torch = settings.import_torch()
    if not torch.cuda.is_available():
        settings.fail("no CUDA device here")
    if options.allocator == "hotpack":
        settings.enable_hotpack()
    run = Run(options, torch)
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the findings
        PARTS[options.part](run)
    status = run.found.finish()
    settings.drain_autograd(torch)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
