"""Which saved tensors may leave the device, and their storages."""

from typing import Any, Optional

MIN_BYTES = 1 << 10  # small saves are most of the calls and hardly any of the bytes
_WHOLE = 16          # of a storage so many times larger than the saved view, the view is no reason to move it


class Tensors:
    """device: the type of the device whose memory has the budget ("cuda", "cpu")."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch = torch
        self._device = device
        self._plain = (torch.Tensor, torch.nn.Parameter)
        self._strided = torch.strided
        self._wrapped = torch._C._functorch.is_functorch_wrapped_tensor
        self._tracing = torch._C._get_tracing_state
        self._capturing = torch.cuda.is_current_stream_capturing if device == "cuda" else lambda: False

    def storage(self, tensor: Any) -> Any:
        """The tensor's storage if its contents may leave the device, else None: subclasses, sparse, nested, quantized,
        conjugated and functorch's tensors, other devices, parameters and their views, less than MIN_BYTES."""
        if type(tensor) is not self._torch.Tensor or tensor.device.type != self._device:
            return None
        if tensor.layout is not self._strided or tensor.is_quantized or tensor.is_nested:
            return None
        if tensor.is_neg() or tensor.is_conj() or self._wrapped(tensor) or self._tracing() is not None:
            return None
        if self._capturing():  # of a graph, whose copies would run at each replay
            return None
        if tensor.is_leaf and tensor.requires_grad or self._is_parameter(tensor._base):
            return None
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        if size < MIN_BYTES or storage.data_ptr() == 0 or not storage.resizable():
            return None
        if size > _WHOLE * max(tensor.numel() * tensor.element_size(), 1):
            return None
        return storage

    def _is_parameter(self, base: Any) -> bool:
        """Of a view's base: a frozen parameter is one too."""
        return base is not None and (base.is_leaf and base.requires_grad or type(base) not in (self._torch.Tensor,))

    def is_common(self, tensor: Any) -> bool:
        """False: a subclass, whose own functions must not be called for what PyTorch would not call them for."""
        return type(tensor) in self._plain


def key_of(storage: Any) -> int:
    """Of the StorageImpl: unique while a StorageWeakRef of it lives. Its address may come again after that."""
    return int(storage._cdata)


def operator_of(tensor: Any) -> "Optional[tuple[int, str]]":
    """The number of the output and the name of the node that made the tensor; None for leaves."""
    node = tensor.grad_fn
    return None if node is None else (tensor.output_nr, node.name())
