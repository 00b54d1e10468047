"""The settings of a run other than its model: the allocator, which must be chosen before PyTorch is imported, and the
settings of libraries."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

RMM = ("rmm-pool", "rmm-arena")
ALLOCATORS = ("default", "expandable", "async", "hotpack", "preload", *RMM)
SIMULATED_DEVICE = "hotpack simulated device"  # simgpu's answer to cuDeviceGetName


def fail(message: str) -> NoReturn:
    print(f"{Path(sys.argv[0]).name}: {message}", file=sys.stderr)
    sys.exit(2)


def import_torch() -> ModuleType:
    try:
        import torch
    except ImportError as error:
        fail(f"PyTorch cannot be imported by {sys.executable}: {error}")
    return torch


def _hotpack_is_preloaded() -> bool:
    return hasattr(ctypes.CDLL(None), "hotpack_version")


def _caching_is_off() -> bool:
    return os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") not in ("", "0")


def _driver_is_simulated() -> bool:
    try:
        return hasattr(ctypes.CDLL("libcuda.so.1"), "simgpuReports")
    except OSError:
        return False


def choose_allocator(name: str | None, device: str) -> str:
    """Chooses the allocator of this process, and sets the environment for it. Call it before PyTorch is imported."""
    if device == "cpu":
        if name not in (None, "default"):
            fail(f"--allocator {name}: there is no CUDA allocator with --device cpu")
        return "default"
    if name is None:
        name = "preload" if _caching_is_off() and _hotpack_is_preloaded() else "default"
    if name in RMM and _driver_is_simulated():
        fail(f"--allocator {name}: RMM has NVIDIA's runtime linked in, which the simulated device cannot stand in for")
    if name == "preload":
        if not _hotpack_is_preloaded() or not _caching_is_off():
            fail("--allocator preload: start it by hotpack run -- python ...")
    elif name != "hotpack" and _caching_is_off():
        fail(f"--allocator {name}: PYTORCH_NO_CUDA_MEMORY_CACHING is set, which takes PyTorch's allocator away")
    elif name == "expandable":
        os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
    elif name == "async":
        os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"  # PyTorch raises the pool's release threshold itself
    return name


def check_allocator(name: str, torch: ModuleType) -> None:
    """Checks that PyTorch uses the allocator of choose_allocator."""
    if name == "async" and torch.cuda.get_allocator_backend() != "cudaMallocAsync":
        fail(f"--allocator async: PyTorch {torch.__version__} has not taken up PYTORCH_ALLOC_CONF=backend:cudaMallocAsync")


def enable_hotpack() -> ModuleType:
    """Returns the package, enabled. Call it before the first use of the device."""
    try:
        import hotpack
    except ImportError:  # not installed: the checkout's, with what is built there
        sys.path.append(str(Path(__file__).resolve().parents[2] / "python"))
        import hotpack
    try:
        hotpack.enable()
    except hotpack.Error as error:
        fail(f"--allocator hotpack: {error}")
    return hotpack


def stats_of_run() -> dict[str, object]:
    """Of the package that `hotpack run` brings; empty without it."""
    brought = sys.modules.get("hotpack")
    return brought.stats() if brought is not None else {}


def enable_rmm(name: str, torch: ModuleType):
    """Makes RMM's pool or arena PyTorch's allocator. Returns RMM's statistics of memory taken from the driver. Call it
    before the first use of the device.

    The pool begins empty and doubles, instead of with half of the free memory; the arena takes that half, and never more."""
    try:
        from rmm import mr
        from rmm.allocators.torch import rmm_torch_allocator
    except ImportError as error:
        fail(f"--allocator {name}: rmm cannot be imported by {sys.executable}: {error}")
    if rmm_torch_allocator is None:
        fail(f"--allocator {name}: this rmm has no allocator for PyTorch {torch.__version__}")
    upstream = mr.StatisticsResourceAdaptor(mr.CudaMemoryResource())
    resource = mr.PoolMemoryResource(upstream, initial_pool_size=0) if name == "rmm-pool" else mr.ArenaMemoryResource(upstream)
    mr.set_current_device_resource(resource)
    torch.cuda.memory.change_current_allocator(rmm_torch_allocator)
    return upstream


def _has_autograd_thread() -> bool:
    """Whether PyTorch has started its threads of backward passes. It names them pt_autograd_0 and so on."""
    return any(name.read_text().startswith("pt_autograd") for name in Path("/proc/self/task").glob("*/comm"))


def drain_autograd(torch: ModuleType) -> None:
    """Waits until PyTorch's autograd thread of the current device has dropped every earlier graph. Call it last, with no
    backward pass in progress, on success and after an error.

    After a backward pass, the thread may still hold the last references to its graph, above all if the pass failed. If it
    requests the interpreter's lock during the shutdown, Python ends it in the middle of a destructor, and the process
    aborts ("terminate called without an active exception"). The thread does its work in order, so an empty backward pass
    ends after that. It takes no memory. It goes past `Tensor.backward`, which lends the thread an object of its own.
    Without an earlier backward pass there is no such thread, and none is started."""
    if not torch.cuda.is_initialized() or not _has_autograd_thread():
        return
    leaf = torch.empty(0, device="cuda", requires_grad=True)
    torch.autograd.Variable._execution_engine.run_backward(
        (leaf,), (torch.empty(0, device="cuda"),), False, False, (), allow_unreachable=True, accumulate_grad=True)


def describe(options: argparse.Namespace, loop) -> dict[str, object]:
    """The settings that figures depend on. The device's name says whether it is simulated."""
    import torch

    cuda = options.device == "cuda"
    cudnn = torch.backends.cudnn
    return {
        "model": options.model + (" (tiny)" if options.tiny else ""),
        "batch": loop.rows,
        "accumulate": options.accumulate,
        "optimizer": loop.optimizer_name,
        "precision": options.precision,
        "checkpoint": options.checkpoint,
        "evaluate_every": options.evaluate_every,
        "epochs": options.epochs,
        "inference": options.inference,
        "ranges": options.ranges,
        "pinned": options.pin,
        "allocator": options.allocator,
        "alloc_conf": os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")),
        "static": loop.is_static,
        "device": torch.cuda.get_device_name() if cuda else "cpu",
        "device_memory": torch.cuda.get_device_properties(0).total_memory if cuda else None,
        "simulated": loop.is_simulated,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": "off" if options.no_cudnn or not cudnn.is_available() else cudnn.version(),
        "cudnn_benchmark": cudnn.benchmark,
        "cudnn_deterministic": cudnn.deterministic,
        "cublas_workspace": os.environ.get("CUBLAS_WORKSPACE_CONFIG", "PyTorch's default"),
        "cublaslt_workspace": os.environ.get("CUBLASLT_WORKSPACE_SIZE", "PyTorch's default"),
        "tf32": torch.backends.cuda.matmul.allow_tf32,
        "seed": options.seed,
    }
