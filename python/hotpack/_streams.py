"""Streams that PyTorch did not make: they may be destroyed while hotpack still knows their handles."""

import ctypes
from types import ModuleType
from typing import Any

from ._library import core


def tell_of_external_streams(torch: ModuleType) -> None:
    """Every torch.cuda.ExternalStream that is made from now on is one that may end."""
    except_stream = core().hotpack_except_stream
    except_stream.argtypes, except_stream.restype = [ctypes.c_void_p], None
    make = torch.cuda.ExternalStream.__new__

    def new(cls: type, stream_ptr: int, *arguments: Any, **keywords: Any) -> Any:
        stream = make(cls, stream_ptr, *arguments, **keywords)
        except_stream(stream.cuda_stream)
        return stream

    torch.cuda.ExternalStream.__new__ = staticmethod(new)
    # What torch.cuda.get_stream_from_external calls.
    if (from_external := getattr(torch._C, "_cuda_getStreamFromExternal", None)) is not None:

        def get_stream_from_external(pointer: int, device: int) -> Any:
            found = from_external(pointer, device)
            except_stream(pointer)
            return found

        torch._C._cuda_getStreamFromExternal = get_stream_from_external
