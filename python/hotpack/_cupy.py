"""hotpack as CuPy's allocator."""

import ctypes
import threading
from types import ModuleType
from typing import Any, Callable

from ._errors import Error
from ._library import core

_OUT_OF_MEMORY = 2                  # CUresult
_NO_CONTEXT = (3, 201)              # not initialized, invalid context: nothing of CuPy has run on this thread yet
_PER_THREAD_STREAM = 2              # the handle that means another stream on each thread


def enable_cupy() -> None:
    """CuPy asks hotpack for every array from now on, on the stream that is current then. Raises Error without CuPy.

    An array returns to the pool of that stream, as in CuPy's own pool: work of other streams may still use it, and the
    program orders that work before what this stream does with its next arrays. Under `hotpack run` no call waits
    for that. Without, streams are not seen, and CuPy destroys them as it likes: then each release waits for the device.
    """
    try:
        import cupy
    except ImportError as error:
        raise Error(f"hotpack.enable_cupy() needs CuPy, which cannot be imported here: {error}") from None
    cupy.cuda.set_allocator(_allocator(cupy, core()))


def _allocator(cupy: ModuleType, library: ctypes.CDLL) -> "Callable[[int], Any]":
    """What cupy.cuda.set_allocator takes. Any thread may call it, and any may drop what it returns."""
    malloc, free = library.hotpack_malloc, library.hotpack_free_pooled
    malloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p]
    free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    runtime, current_device = cupy.cuda.runtime, cupy.cuda.device.get_device_id

    class Memory(cupy.cuda.BaseMemory):  # type: ignore[misc, name-defined]
        """A block of hotpack's; released on the stream it was asked for, with its device current."""

        def __init__(self, size: int):
            self.size = size
            self.ptr = 0
            self.device_id = current_device()
            self._stream = cupy.cuda.get_current_stream()  # the object, which keeps the stream from being destroyed
            self._thread = threading.get_ident()
            if size == 0:
                return
            pointer = ctypes.c_void_p()
            result = malloc(ctypes.byref(pointer), size, self._stream.ptr)
            if result in _NO_CONTEXT:
                runtime.free(0)  # makes the device's primary context, or makes it current on this thread
                result = malloc(ctypes.byref(pointer), size, self._stream.ptr)
            if result == _OUT_OF_MEMORY:
                raise cupy.cuda.memory.OutOfMemoryError(size, -1)  # -1: how much there was before is not known
            if result != 0:
                raise Error(f"hotpack_malloc({size}) failed: CUresult {result}")
            self.ptr = pointer.value or 0

        def __del__(self) -> None:
            pointer, self.ptr = self.ptr, 0
            if not pointer:
                return
            try:
                current = current_device()
                if current != self.device_id:  # the default streams are those of the current device
                    runtime.setDevice(self.device_id)
                try:
                    if self._stream.ptr == _PER_THREAD_STREAM and self._thread != threading.get_ident():
                        runtime.deviceSynchronize()  # that thread's default stream has no name here
                    free(pointer, self._stream.ptr)
                finally:
                    if current != self.device_id:
                        runtime.setDevice(current)
            except runtime.CUDARuntimeError:
                pass  # CUDA has ended before the interpreter has, and the memory with it

    return lambda size: cupy.cuda.MemoryPointer(Memory(size), 0)
