// Private pools as PyTorch asks for them, with its C++ types (preload/torch/graph_pools.h).
#pragma once

#include <cuda.h>

#include <functional>
#include <utility>

using PoolId = std::pair<unsigned long long, unsigned long long>;
extern "C" {
#pragma GCC visibility push(default)
void hotpack_torch_begin_allocate_to_pool(int device, PoolId id, std::function<bool(CUstream)> filter);
void hotpack_torch_end_allocate_to_pool(int device, PoolId id);
void hotpack_torch_release_pool(int device, PoolId id);
#pragma GCC visibility pop
}
