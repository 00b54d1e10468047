"""What an operator does to its tensors, by its schema, and what schemas do not say."""

from typing import Any

# Overwrite their first argument and do not read it.
_OVERWRITING = frozenset(
    f"aten::{name}" for name in (
        "bernoulli_", "cauchy_", "copy_", "exponential_", "fill_", "geometric_", "log_normal_", "normal_", "random_",
        "uniform_", "zero_", "_foreach_zero_", "_foreach_copy_"))

# Change running statistics without their schema saying so: argument numbers, and that of `training`.
_STATISTICS = {
    "aten::native_batch_norm": ((3, 4), 5),
    "aten::cudnn_batch_norm": ((3, 4), 5),
    "aten::miopen_batch_norm": ((3, 4), 5),
    "aten::batch_norm_update_stats": ((1, 2), None),
    "aten::batch_norm_gather_stats": ((3, 4), None),
    "aten::batch_norm_gather_stats_with_counts": ((3, 4), None),
}

# Work in memory that their forward operator reserved, without their schema saying so: the argument's name.
_RESERVES = {
    "aten::_cudnn_rnn_backward": "reserve",
    "aten::miopen_rnn_backward": "reserve",
    "aten::mkldnn_rnn_layer_backward": "workspace",
}

# Add in an order that differs from run to run on a GPU (docs.pytorch.org, torch.use_deterministic_algorithms).
_ATOMIC = frozenset(
    f"aten::{name}" for name in (
        "_adaptive_avg_pool2d_backward", "_ctc_loss_backward", "_embedding_bag_dense_backward",
        "adaptive_max_pool2d_backward", "avg_pool3d_backward", "embedding_dense_backward",
        "fractional_max_pool2d_backward",
        "grid_sampler_2d_backward", "grid_sampler_3d_backward", "histc", "index_add", "index_add_", "kthvalue",
        "max_pool3d_with_indices_backward", "max_unpool2d", "nll_loss2d_backward", "nll_loss2d_forward", "put_",
        "reflection_pad1d_backward", "reflection_pad2d_backward", "replication_pad1d_backward",
        "replication_pad2d_backward", "replication_pad3d_backward", "scatter_add", "scatter_add_", "scatter_reduce",
        "upsample_bicubic2d_backward", "upsample_bilinear2d_backward", "upsample_linear1d_backward",
        "upsample_trilinear3d_backward"))

_COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "c10d_functional")
_HEAVY = ("mm", "conv", "attention", "_cudnn_rnn", "lstm", "gru", "linear", "addmv", "baddbmm")


class Traits:
    """Of one operator overload. writes: (number, name, whole) of arguments that it changes; whole: it overwrites all of
    the tensor and reads nothing of it."""

    __slots__ = ("atomic", "collective", "foreign", "heavy", "metadata_only", "name", "random", "statistics", "writes")

    def __init__(self, torch: Any, func: Any) -> None:
        self.name: str = func._schema.name
        space, _, short = self.name.partition("::")
        overwrites = self.name in _OVERWRITING
        self.writes: list[tuple[int, str, bool]] = []
        first = True
        for number, argument in enumerate(func._schema.arguments):
            if argument.name == _RESERVES.get(self.name):
                self.writes.append((number, argument.name, False))
            if argument.alias_info is not None and argument.alias_info.is_write:
                whole = getattr(argument, "is_out", False) or (overwrites and first)
                self.writes.append((number, argument.name, whole))
                first = False
        self.statistics = _STATISTICS.get(self.name)
        tags = getattr(func, "tags", ())
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.atomic = self.name in _ATOMIC or (short in ("index_put", "index_put_", "_index_put_impl_"))
        self.collective = space in _COLLECTIVES
        self.foreign = not self.collective and space not in ("aten", "prims", "prim", "quantized", "torchvision")
        self.heavy = any(word in short for word in _HEAVY)
        # Sizes and dtypes only: the contents of tensor arguments do not matter.
        self.metadata_only = short.endswith("_like") or short.startswith("new_") or short in ("resize_", "resize_as_")
