"""CUDA tensors for other processes, by torch.multiprocessing.

PyTorch refuses to share the memory of a pluggable allocator. Its own expandable segments are shared by the file
descriptors of the memory below a tensor, and so are hotpack's blocks here:

- The sender opens the files (hotpack_export) and queues them in a socket, whose other end goes to the receiver as
  multiprocessing sends any file. PyTorch's reduction of tensors carries the rest.
- The receiver maps the files (hotpack_import) and makes a storage of the mapping. It needs this package, and any
  allocator.
- The sender keeps the block until the other end of the socket is closed: by the receiver's last use, or by its end.

Unpickling a Handle imports this module, so PyTorch's functions below know it before they get it.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import select
import socket
import threading
from collections.abc import Iterator
from multiprocessing import context, reduction
from types import ModuleType
from typing import Any, NamedTuple

from ._errors import Error
from ._library import core, torch_library

_FILES_A_MESSAGE = 200  # the kernel's limit is 253
_NOT_FOUND, _NOT_SUPPORTED, _OPERATING_SYSTEM, _NOT_READY, _CAPTURING = 500, 801, 304, 600, 900  # of CUresult


class Piece(ctypes.Structure):
    """hotpack_piece."""

    _fields_ = [("bytes", ctypes.c_uint64), ("descriptor", ctypes.c_int32), ("device", ctypes.c_int32)]


@functools.cache
def _functions() -> ctypes.CDLL:
    library = core()
    pieces = ctypes.POINTER(Piece)
    library.hotpack_export.argtypes = [
        ctypes.c_void_p, ctypes.c_size_t, pieces, ctypes.c_size_t, ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_uint64),
    ]
    library.hotpack_import.argtypes = [pieces, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p)]
    library.hotpack_end_import.argtypes = [ctypes.c_void_p]
    return library


@functools.cache
def _holds() -> ctypes.CDLL:
    library = torch_library()
    library.hotpack_torch_hold.argtypes = library.hotpack_torch_drop.argtypes = [ctypes.c_void_p]
    library.hotpack_torch_drop.restype = None
    return library


# --- the sender ------------------------------------------------------------------------------------------------------


def _export(address: int, size: int) -> "tuple[list[Piece], int]":
    """The pieces below [address, address + size), and where in the first one it begins. Opens a file for each."""
    count, offset = ctypes.c_size_t(0), ctypes.c_uint64(0)
    capacity = 64
    while True:
        pieces = (Piece * capacity)()
        result = _functions().hotpack_export(address, size, pieces, capacity, ctypes.byref(count), ctypes.byref(offset))
        if result == _NOT_FOUND:
            raise Error("this tensor's memory is not hotpack's own (hotpack is off, or its arena is plain or full), so "
                        "it cannot be shared between processes; send it by way of the host: tensor.cpu()")
        if result == _NOT_SUPPORTED:
            raise Error("this device has no file descriptors for memory, so its tensors cannot be shared between "
                        "processes; send them by way of the host: tensor.cpu()")
        if result == _OPERATING_SYSTEM:
            raise Error("no more files can be opened to share a tensor (ulimit -n)")
        if result != 0:
            raise Error(f"a tensor's memory cannot be exported: CUresult {result}")
        if count.value <= capacity:
            return list(pieces[: count.value]), offset.value
        capacity = count.value


class _Sent:
    """One transfer of a storage: keeps its block until nobody has the other end of the socket."""

    def __init__(self, block: int, ours: socket.socket, theirs: socket.socket, spawning: Any) -> None:
        if _holds().hotpack_torch_hold(block) != 0:
            raise MemoryError
        self.block = block
        self.ours = ours
        self.theirs: socket.socket | None = theirs
        self.spawning = spawning  # the process object that inherits the other end: it must be open until then
        if spawning is None:
            self._hand_over()

    def _hand_over(self) -> None:
        assert self.theirs is not None
        self.theirs.close()
        self.theirs = None

    def over(self) -> bool:
        if self.theirs is not None:
            if getattr(self.spawning, "pid", None) is None:
                return False
            self._hand_over()
        poll = select.poll()
        poll.register(self.ours, select.POLLHUP)
        return bool(poll.poll(0))

    def end(self) -> None:
        self.ours.close()
        _holds().hotpack_torch_drop(self.block)


_sent: "list[_Sent]" = []
_lock = threading.RLock()
_serials = itertools.count()
_known: "dict[int, tuple[Any, tuple[bytes, int]]]" = {}  # by the storage's address: a weak reference, and its key
_process = b""


def _forget_the_parents() -> None:
    """In a forked child, which has no tensors: as long as it has an end of a socket, the tensor is in use."""
    global _lock, _process
    _lock = threading.RLock()
    _process = b""
    for sent in _sent:
        for end in (sent.ours, sent.theirs):
            if end is not None:
                end.close()
    for sock in _imports.values():
        sock.close()
    _sent.clear()
    _known.clear()
    _imports.clear()
    _later.clear()


os.register_at_fork(after_in_child=_forget_the_parents)


def collect() -> None:
    """Gives up the blocks that no receiver has any more. Cheap if nothing was sent."""
    if not _sent:
        return
    with _lock:
        over = [sent for sent in _sent if sent.over()]
        _sent[:] = [sent for sent in _sent if sent not in over]
    for sent in over:
        sent.end()


def _key(storage: Any) -> "tuple[bytes, int]":
    """The same for each transfer of a storage, and no other's: addresses are used again."""
    from torch.multiprocessing.reductions import StorageWeakRef

    global _process
    if not _process:
        _process = os.urandom(16)
    for address in [address for address, (reference, _) in _known.items() if reference.expired()]:
        del _known[address]
    if storage._cdata not in _known:
        _known[storage._cdata] = StorageWeakRef(storage), (_process, next(_serials))
    return _known[storage._cdata][1]


def _queue(files: "list[int]", sock: socket.socket) -> None:
    for first in range(0, len(files), _FILES_A_MESSAGE):
        socket.send_fds(sock, [b"f"], files[first : first + _FILES_A_MESSAGE])


def _share(storage: Any) -> "tuple[Any, ...]":
    """What UntypedStorage._share_cuda_ returns: device, handle, bytes, offset, then what PyTorch's counters need."""
    import torch

    size = storage.nbytes()
    if size == 0:
        return storage.device.index, None, 0, 0, b"", 0, b"", False
    if _imported_at(storage.data_ptr()):
        raise RuntimeError("Attempted to send CUDA tensor received from another process; this is not currently "
                           "supported. Consider cloning before sending.")
    collect()
    device = storage.device.index
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # PyTorch's receiver waits for an event of this stream
        pieces, offset = _export(storage.data_ptr(), size)
    files = [piece.descriptor for piece in pieces]
    ends: list[socket.socket] = []
    try:
        ours, theirs = ends[:] = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        _queue(files, ours)
        handle = Handle((device, size, offset, [piece.bytes for piece in pieces]), reduction.DupFd(theirs.fileno()))
        with _lock:
            handle.key = _key(storage)
            _sent.append(_Sent(storage.data_ptr(), ours, theirs, context.get_spawning_popen()))
    except OSError as error:
        for end in ends:
            end.close()
        raise Error(f"a tensor cannot be shared: {error.strerror}") from None
    finally:
        for file in files:
            os.close(file)
    return device, handle, size, 0, handle, 0, b"", False


# --- the receiver ----------------------------------------------------------------------------------------------------


class Handle:
    """A storage on its way. Equal handles stand for the same storage."""

    def __init__(self, where: "tuple[int, int, int, list[int]]", end: Any, key: "tuple[bytes, int]" = (b"", 0)) -> None:
        self.where = where  # device, bytes, offset in the first piece, bytes of each piece
        self.end = end  # of the socket: multiprocessing's duplicate
        self.key = key

    def __reduce__(self) -> "tuple[Any, ...]":
        return Handle, (self.where, self.end, self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def receive(self) -> socket.socket:
        """Takes the end of the socket. Only once."""
        return socket.socket(fileno=self.end.detach())


class _Import:
    """Another process's storage, mapped here. PyTorch keeps it as long as a storage needs it."""

    def __init__(self, handle: Handle) -> None:
        self.device, self.size, offset, sizes = handle.where
        self.sock = handle.receive()
        self.address = ctypes.c_void_p(None)
        files: list[int] = []
        try:
            while len(files) < len(sizes):
                message, more, _, _ = socket.recv_fds(self.sock, 1, _FILES_A_MESSAGE)
                if not message or not more:
                    raise Error("the process that sent a tensor ended before the tensor arrived")
                files += more
            pieces = (Piece * len(sizes))(*[Piece(size, file, 0) for size, file in zip(sizes, files)])
            result = _functions().hotpack_import(pieces, len(sizes), ctypes.byref(self.address))
            if result != 0:
                raise Error(f"another process's tensor cannot be mapped: CUresult {result}")
        except BaseException:
            self.sock.close()
            raise
        finally:
            for file in files:
                os.close(file)
        assert self.address.value is not None
        self.begin = self.address.value + offset
        _imports[self.begin, self.begin + self.size] = self.sock
        self.__cuda_array_interface__ = {
            "shape": (self.size,), "typestr": "|u1", "data": (self.begin, False), "version": 2, "strides": None,
        }

    def __del__(self) -> None:
        if not hasattr(self, "begin") or (self.begin, self.begin + self.size) not in _imports:  # or a forked child
            return
        with contextlib.suppress(Exception):  # the interpreter may be ending
            mapping = _Mapping(self.device, self.address, (self.begin, self.begin + self.size), self.sock)
            if not mapping.end():
                _later.append(mapping)


class _Mapping(NamedTuple):
    """What an import leaves to be ended."""

    device: int
    address: ctypes.c_void_p
    range: "tuple[int, int]"
    sock: socket.socket

    def end(self) -> bool:
        """Waits for the device's work and unmaps. False if that is not possible now."""
        import torch

        with torch.cuda.device(self.device):
            if torch.cuda.is_current_stream_capturing():
                return False
            torch.cuda.mem_get_info()  # this thread has the device's context from now on
            if _functions().hotpack_end_import(self.address) in (_NOT_READY, _CAPTURING):
                return False
        _imports.pop(self.range, None)
        self.sock.close()
        return True


_imports: "dict[tuple[int, int], socket.socket]" = {}  # by the storage's addresses: the end of its socket
_later: "list[_Mapping]" = []


def _imported_at(address: int) -> bool:
    return any(begin <= address < end for begin, end in _imports)


def _receive(handle: Handle) -> Any:
    import torch

    _later[:] = [mapping for mapping in _later if not mapping.end()]
    device = handle.where[0]
    with torch.cuda.device(device):
        torch.cuda.mem_get_info()  # this thread has the device's context from now on
        return torch.as_tensor(_Import(handle), device=torch.device("cuda", device)).untyped_storage()


# --- PyTorch's functions ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _short_errors() -> "Iterator[None]":
    try:
        yield
    except Error as error:
        raise RuntimeError(f"hotpack: {error}") from None


def _know_handles(torch: ModuleType) -> None:
    """PyTorch's functions of a receiver know handles from now on."""
    storage = torch.UntypedStorage
    make, release = storage._new_shared_cuda, storage._release_ipc_counter_cuda

    def new_shared_cuda(*arguments: Any, **keywords: Any) -> Any:
        if len(arguments) > 1 and isinstance(arguments[1], Handle):
            with _short_errors():
                return _receive(arguments[1])
        return make(*arguments, **keywords)

    def release_ipc_counter(*arguments: Any, **keywords: Any) -> Any:
        if arguments and isinstance(arguments[0], Handle):  # the storage is here already
            arguments[0].receive().close()
            return None
        return release(*arguments, **keywords)

    storage._new_shared_cuda = staticmethod(new_shared_cuda)
    storage._release_ipc_counter_cuda = staticmethod(release_ipc_counter)


def enable(torch: ModuleType) -> None:
    """Tensors of hotpack's blocks are shared with other processes from now on, unless HOTPACK_SHARE=0."""
    chosen = os.environ.get("HOTPACK_SHARE", "")
    if chosen not in ("", "0", "1"):
        raise Error(f"HOTPACK_SHARE={chosen} is not 0 or 1")
    if chosen == "0" or not hasattr(torch.UntypedStorage, "_share_cuda_"):
        return

    def share(storage: Any, *_arguments: Any, **_keywords: Any) -> "tuple[Any, ...]":
        with _short_errors():
            return _share(storage)

    torch.UntypedStorage._share_cuda_ = share

    def ipc_collect() -> None:
        collect()

    torch._C._cuda_ipc_collect = ipc_collect  # PyTorch's own has nothing to collect


def _install() -> None:
    import torch

    _know_handles(torch)


_install()
