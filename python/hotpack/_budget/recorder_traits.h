// Which operators may run again, and what a call of them does to its arguments.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace hotpack {

// They give the same bits each time, from the same arguments and the generator's state. Not among them: what adds up
// in an order of its own on a GPU (index_add, scatter_add, cumsum, bincount), answers to the program, collectives, and
// what keeps state elsewhere (recurrent networks of cuDNN).
inline bool IsRepeatable(const std::string& name) {
  static const std::unordered_set<std::string> names = [] {
    std::unordered_set<std::string> all;
    for (const char* each :
         {// about as much time as the memory that they touch
          "relu", "gelu", "silu", "mish", "tanh", "sigmoid", "mul", "add", "sub", "rsub", "div", "floor_divide",
          "remainder", "native_layer_norm", "_to_copy", "t", "view", "_unsafe_view", "transpose", "permute", "expand",
          "slice", "select", "unsqueeze", "squeeze", "_reshape_alias", "as_strided", "clone", "cat",
          "native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "_batch_norm_with_update",
          "max_pool2d_with_indices", "avg_pool2d", "hardswish", "hardtanh", "hardsigmoid", "clamp", "clamp_min",
          "clamp_max", "where", "neg", "rsqrt", "sqrt", "pow", "mean", "sum", "var_mean", "amax", "amin", "cos", "sin",
          "exp", "log", "log1p", "_softmax", "_log_softmax", "_safe_softmax", "alias", "detach", "split",
          "split_with_sizes", "chunk", "unbind", "stack", "roll", "flip", "repeat", "constant_pad_nd",
          "reflection_pad2d", "leaky_relu", "elu", "glu", "threshold", "masked_fill", "embedding", "index_select",
          "gather", "tril", "triu", "native_group_norm", "upsample_nearest2d", "upsample_bilinear2d",
          "upsample_bicubic2d", "pixel_shuffle", "pixel_unshuffle", "im2col", "_adaptive_avg_pool2d",
          "linalg_vector_norm", "bernoulli", "native_dropout", "empty_like", "zeros_like", "ones_like", "full_like",
          "rand_like", "copy", "abs", "sign", "reciprocal", "softplus", "erf", "minimum", "maximum", "eq", "ne", "lt",
          "le", "gt", "ge", "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or",
          "_fused_rms_norm", "addcmul", "addcdiv", "lerp", "square", "log_sigmoid_forward", "zero", "fill", "uniform",
          "normal",
          // products, convolutions and attention
          "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "convolution", "_convolution",
          "_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
          "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
          "_scaled_dot_product_fused_attention_overrideable", "_addmm_activation", "_grouped_mm"}) {
      all.insert(std::string("aten::") + each);
      all.insert(std::string("aten::") + each + "_");  // in place
    }
    return all;
  }();
  return names.contains(name);
}

// In place, whatever was there before.
inline bool Overwrites(const std::string& name) {
  return name == "aten::bernoulli_" || name == "aten::zero_" || name == "aten::fill_" || name == "aten::uniform_" ||
         name == "aten::normal_";
}

inline bool IsBatchNorm(const std::string& name) {
  return name == "aten::native_batch_norm" || name == "aten::_native_batch_norm_legit" ||
         name == "aten::cudnn_batch_norm" || name == "aten::_batch_norm_with_update";
}

struct Traits {
  bool writes = false;         // an argument
  bool random = false;         // draws from a generator
  bool repeatable = false;     // may be part of a recipe
  bool shape_only = false;     // reads no contents of its tensors
  bool uninitialised = false;  // its result may be filled by what is no operator: only what overwrites may use it
  bool overwrites = false;     // its written argument
  bool batch_norm = false;     // writes running statistics, its arguments 3 and 4, whatever its schema says
  bool always_trains = false;  // a batch norm without the flag
};

inline const Traits& TraitsOf(const c10::OperatorHandle& op) {
  thread_local std::unordered_map<const void*, Traits> known;
  const auto [found, is_new] = known.try_emplace(&op.schema());
  if (is_new) {
    Traits& traits = found->second;
    const std::string& name = op.operator_name().name;
    for (const auto& argument : op.schema().arguments()) {
      if (argument.alias_info() != nullptr && argument.alias_info()->isWrite()) traits.writes = true;
      if (argument.name() == "generator") traits.random = true;
    }
    if (op.hasTag(at::Tag::nondeterministic_seeded)) traits.random = true;
    traits.repeatable = IsRepeatable(name);
    traits.shape_only = name == "aten::empty_like" || name == "aten::zeros_like" || name == "aten::ones_like" ||
                        name == "aten::rand_like";
    traits.uninitialised = name == "aten::empty_like";
    traits.overwrites = Overwrites(name);
    traits.batch_norm = IsBatchNorm(name);
    traits.always_trains = name == "aten::_batch_norm_with_update";
  }
  return found->second;
}

}  // namespace hotpack
