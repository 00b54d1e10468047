"""hotpack as CuPy's allocator."""

import ctypes

from ._errors import Error
from ._library import core


def enable_cupy() -> None:
    """CuPy asks hotpack for every array from now on, on the stream that is current then. Raises Error without CuPy."""
    try:
        import cupy
    except ImportError as error:
        raise Error(f"hotpack.enable_cupy() needs CuPy, which cannot be imported here: {error}") from None
    library = core()
    library.hotpack_keep_streams()
    library.hotpack_malloc.argtypes = [ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t, ctypes.c_void_p]
    library.hotpack_free.argtypes = [ctypes.c_void_p, ctypes.c_void_p]

    class Memory(cupy.cuda.BaseMemory):
        """A block of hotpack's; released on the stream it was asked for."""

        def __init__(self, size: int):
            self.size = size
            self.ptr = 0
            self.device_id = cupy.cuda.device.get_device_id()
            self._stream = cupy.cuda.get_current_stream().ptr
            pointer = ctypes.c_void_p()
            if size > 0:
                result = library.hotpack_malloc(ctypes.byref(pointer), size, self._stream)
                if result == 2:
                    raise cupy.cuda.memory.OutOfMemoryError(size, 0)
                if result != 0:
                    raise Error(f"hotpack_malloc({size}) failed: CUresult {result}")
                self.ptr = pointer.value

        def __del__(self):
            if self.ptr:
                library.hotpack_free(self.ptr, self._stream)
                self.ptr = 0

    def allocate(size: int):
        return cupy.cuda.MemoryPointer(Memory(size), 0)

    cupy.cuda.set_allocator(allocate)
