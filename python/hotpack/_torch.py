"""hotpack as PyTorch's allocator."""

import ctypes
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Optional

from . import _budget, _cudnn, _figures, _marks, _nccl, _snapshot, _streams, _versions
from ._budget.amount import Amount
from ._errors import Error
from ._library import core, find, torch_library
from ._simulate import driver_simulated, simulated
from ._steps import Steps

_MAX_DEVICES = 64  # of hotpack.h

_enabled = False

# torch.cuda.memory's object of the allocator: its setter, and our function of that name.
_HOOKS = (
    ("set_init_fn", "hotpack_torch_init"),
    ("set_reset_fn", "hotpack_torch_reset"),
    ("set_memory_fraction_fn", "hotpack_torch_memory_fraction"),
    ("set_base_alloc_fn", "hotpack_torch_base_alloc"),
    ("set_record_stream_fn", "hotpack_torch_record_stream"),
    ("set_begin_allocate_to_pool", "hotpack_torch_begin_allocate_to_pool"),
    ("set_end_allocate_to_pool_fn", "hotpack_torch_end_allocate_to_pool"),
    ("set_release_pool", "hotpack_torch_release_pool"),
)


def enabled() -> bool:
    """True after enable()."""
    return _enabled


def enable(*, mark_steps: bool = True, budget: "str | int | None" = None, algorithm: str = "") -> None:
    """Makes hotpack PyTorch's CUDA allocator. Before the first use of CUDA; a second call does nothing.

    mark_steps: each step of an optimizer (of several: the first one's, or one's that steps more rarely) ends an
    iteration.
    budget: what the training step may take of the device: bytes (8 << 30, "7.5GiB"), a share of what it would take
    ("60%"), or of its activations ("activations:50%"); None, "0" or "none": no budget. HOTPACK_BUDGET comes first
    (docs/budget.md). Where PyTorch has no CUDA or no driver, the budget is one of tensors of the CPU, and hotpack is no
    allocator.
    algorithm: that plans for the budget, such as "chen" (docs/budget.md, Other planners). HOTPACK_ALGORITHM comes
    first.
    torch.cuda.memory_stats and its like, memory snapshots and empty_cache go on working.

    Raises Error, in one line: no PyTorch or one without CUDA, an unsupported version, too late, a library is missing, a
    budget that is none.
    """
    amount = _budget.chosen(budget)
    if not _enabled:
        _enable(mark_steps, amount, algorithm)
    if _enabled and amount is not None:
        _start_budget(amount, algorithm)


def _enable(mark_steps: bool, amount: "Optional[Amount]", algorithm: str) -> None:
    global _enabled
    _versions.check_platform()
    try:
        import torch
    except ImportError as error:
        raise Error(f"hotpack.enable() needs PyTorch, which cannot be imported here: {error}") from None
    if _enabled:  # `hotpack run` does so as soon as torch is imported
        return
    if amount is not None and not _has_device(torch):
        _budget.start(torch, amount, "cpu", algorithm)
        return
    _versions.check_torch(torch, simulated())
    if torch.cuda.is_initialized():
        raise Error(
            "hotpack.enable() must come before the first use of CUDA: PyTorch's own allocator is in use already"
        )
    _check_driver()
    library = torch_library()
    core().hotpack_keep_streams()
    _register(torch, library)
    _answer(torch)
    _cudnn.keep_benchmark_off(torch)
    _nccl.use_older_backend(torch)
    _streams.tell_of_external_streams(torch)
    _share_tensors(torch)
    if mark_steps:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(_after_step)
        _expect_steps(torch)
    _enabled = True


def _has_device(torch: ModuleType) -> bool:
    """Asks no driver, whose first call would keep child processes from using CUDA."""
    if torch.version.cuda is None:
        return False
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def _start_budget(amount: Amount, algorithm: str) -> None:
    import torch

    if _budget.start(torch, amount, "cuda", algorithm) and amount.bytes is not None:
        for device in range(_MAX_DEVICES):
            core().hotpack_set_limit(device, ctypes.c_uint64(amount.bytes))


def _expect_steps(torch: ModuleType) -> None:
    """A program that makes an optimizer will make steps."""
    optimizer = torch.optim.Optimizer
    construct = optimizer.__init__

    @functools.wraps(construct)
    def construct_first(self: object, *arguments: object, **keywords: object) -> None:
        if optimizer.__init__ is construct_first:
            optimizer.__init__ = construct
        _marks.expect()
        construct(self, *arguments, **keywords)

    optimizer.__init__ = construct_first


def _check_driver() -> None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise Error("no NVIDIA driver here (libcuda.so.1 cannot be loaded); hotpack.simulate(), or hotpack run "
                    "--simulate, runs the program on a simulated device") from None
    version = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(version))
    _versions.check_driver(version.value)
    if simulated() and not driver_simulated(driver):
        raise Error("simulated and real are mixed: the simulated runtime is loaded, but libcuda.so.1 is NVIDIA's "
                    "driver; start the program with hotpack run --simulate")
    if driver_simulated(driver) and not simulated():
        raise Error("simulated and real are mixed: libcuda.so.1 is the simulated driver, which NVIDIA's runtime "
                    "refuses; start the program with hotpack run --simulate")


def _register(torch: ModuleType, library: ctypes.CDLL) -> None:
    path = str(find("lib/libhotpack_torch.so.0"))
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "hotpack_torch_malloc", "hotpack_torch_free")
    inner = allocator.allocator()
    missing = [setter for setter, _ in _HOOKS if not hasattr(inner, setter)]
    if missing:
        raise Error(f"this PyTorch ({torch.__version__}) lacks {', '.join(missing)} of its pluggable allocator")
    for setter, name in _HOOKS:
        getattr(inner, setter)(ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise Error("hotpack.enable() must come before the first use of CUDA and of another allocator: "
                    + str(error).splitlines()[0]) from None


def _answer(torch: ModuleType) -> None:
    """What PyTorch itself refuses to say of a pluggable allocator, it asks torch._C for."""
    answers = {
        "_cuda_memoryStats": _figures.memory_stats,
        "_cuda_resetPeakMemoryStats": _figures.reset_peak_memory_stats,
        "_cuda_resetAccumulatedMemoryStats": _figures.reset_accumulated_memory_stats,
        "_cuda_getMemoryFraction": _figures.memory_fraction,
        "_cuda_memorySnapshot": _snapshot.snapshot,
        "_cuda_record_memory_history": _snapshot.record_memory_history,
        "_cuda_record_memory_history_legacy": _snapshot.record_memory_history_legacy,
    }
    for name, function in answers.items():
        if hasattr(torch._C, name):
            setattr(torch._C, name, function)


def _share_tensors(torch: ModuleType) -> None:
    from . import _share  # imports torch

    _share.enable(torch)
    _collect_sent.append(_share.collect)


_collect_sent: "list[Callable[[], None]]" = []
_steps = Steps()


def _after_step(optimizer: object, _arguments: object, _keywords: object) -> None:
    for collect in _collect_sent:
        collect()
    if not _marks.marked_by_hand() and _steps.ends_iteration(optimizer):
        _marks.mark()
