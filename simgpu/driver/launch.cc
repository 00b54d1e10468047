// Launches. A kernel does nothing; only the blocks that it gets matter.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "simgpu/checker/report.h"
#include "simgpu/driver/api.h"
#include "simgpu/driver/module.h"
#include "simgpu/driver/peer.h"
#include "simgpu/driver/strided.h"
#include "simgpu/driver/tensor_lists.h"
#include "simgpu/driver/time_costs.h"
#include "simgpu/driver/work.h"

namespace simgpu {
namespace {

constexpr DefaultStream kLegacy = DefaultStream::kLegacy;
constexpr DefaultStream kPerThread = DefaultStream::kPerThread;

// An 8-byte word among the parameters. A parameter of exactly 8 bytes may be a pointer as a whole. Words of larger ones
// count only if they point into a live block (structs have padding).
struct Word {
  uint64_t value;
  bool whole;
};

struct Grid {
  unsigned x, y;
  uint64_t threads;  // of all blocks
};

uint64_t Threads(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz) {
  return uint64_t{gx} * gy * gz * bx * by * bz;
}

void AddWords(Driver& d, const Kernel& kernel, Grid grid, const void* parameter, uint32_t bytes,
              std::vector<Word>* words) {
  const auto add = [&](uint32_t at) {
    Word word{0, bytes == 8};
    memcpy(&word.value, static_cast<const char*>(parameter) + at, 8);
    if (word.value != 0) words->push_back(word);
  };
  if (const auto addresses = AddressesOfLists(kernel.name, parameter, bytes, grid.x, grid.y)) {
    std::for_each(addresses->begin(), addresses->end(), add);
    return;
  }
  const auto on_device = [&](uint64_t address) { return d.memory.Find(address).kind != RegionKind::kForeign; };
  for (uint32_t at = BytesOfOffsets(parameter, bytes, on_device); at + 8 <= bytes; at += 8) add(at);
}

// cuda.h, cuLaunchKernel: `extra` is a list of names and values that ends with CU_LAUNCH_PARAM_END.
const char* BufferOf(void** extra, size_t* bytes) {
  const char* buffer = nullptr;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[1]);
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) *bytes = *static_cast<size_t*>(extra[1]);
  }
  return buffer;
}

std::vector<Word> WordsOf(Driver& d, const Kernel& kernel, Grid grid, void** parameters, void** extra) {
  std::vector<Word> words;
  size_t buffer_bytes = 0;
  const char* buffer = BufferOf(extra, &buffer_bytes);
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    const KernelParameter& p = kernel.parameters[i];
    if (parameters != nullptr) {
      AddWords(d, kernel, grid, parameters[i], p.bytes, &words);
    } else if (buffer != nullptr && p.offset + p.bytes <= buffer_bytes) {
      AddWords(d, kernel, grid, buffer + p.offset, p.bytes, &words);
    }
  }
  if (!kernel.known && buffer != nullptr) AddWords(d, kernel, grid, buffer, buffer_bytes, &words);
  return words;
}

void WarnOnce(Kernel* kernel) {
  if (kernel->known || kernel->warned) return;
  kernel->warned = true;
  fprintf(stderr, "simgpu: the parameters of kernel %s are not known: what it uses is not checked\n",
          kernel->name.c_str());
}

bool ValidShape(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz) {
  return gx > 0 && gy > 0 && gz > 0 && bx > 0 && by > 0 && bz > 0 && gy <= 65535 && gz <= 65535 && bz <= 64 &&
         static_cast<uint64_t>(bx) * by * bz <= 1024;
}

void Count(bool known) { CountWork(known ? Counted::kKernelKnown : Counted::kKernelNotKnown); }

void CheckReach(Driver& d, const Context* context, const std::vector<Word>& words, const char* name) {
  for (const Word& word : words) CheckKernelReaches(d, context, word.value, name);
}

RunWork KernelWork(const Context* context, Kernel* kernel, std::vector<Word> words, uint64_t threads) {
  return [context, name = kernel->name, known = kernel->known, time = KernelTime(kernel->name, threads),
          words = std::move(words)](Driver& d, Epoch op, uint64_t given_before) {
    Count(known);
    TakeKernel(d, op.stream, time);
    for (const Word& word : words) HandedToKernel(d, word.value);
    for (const Word& word : words) d.checker.UsePointer(op, word.value, word.whole, name.c_str(), given_before);
    CheckReach(d, context, words, name.c_str());
    return CUDA_SUCCESS;
  };
}

CUresult Launch(Driver& d, CUfunction function, Grid grid, CUstream handle, void** parameters, void** extra,
                DefaultStream variant) {
  auto* kernel = reinterpret_cast<Kernel*>(function);
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  SIMGPU_WORK_STREAM(stream, handle, variant);
  if (!d.checker.enabled() && stream->capture == nullptr) {
    Count(kernel->known);
    if (!d.written.empty()) {
      for (const Word& word : WordsOf(d, *kernel, grid, parameters, extra)) HandedToKernel(d, word.value);
    }
    const Epoch op = d.order.Submit(stream->order);
    TakeKernel(d, op.stream, KernelTime(kernel->name, grid.threads));
    return CUDA_SUCCESS;
  }
  if (parameters == nullptr && extra == nullptr && !kernel->parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  WarnOnce(kernel);
  std::vector<Word> words = WordsOf(d, *kernel, grid, parameters, extra);
  if (stream->capture == nullptr) {
    Count(kernel->known);
    const Epoch op = d.order.Submit(stream->order);
    TakeKernel(d, op.stream, KernelTime(kernel->name, grid.threads));
    for (const Word& word : words) HandedToKernel(d, word.value);
    for (const Word& word : words) d.checker.UsePointer(op, word.value, word.whole, kernel->name.c_str());
    CheckReach(d, stream->context, words, kernel->name.c_str());
    return CUDA_SUCCESS;
  }
  return Submit(d, stream, CU_GRAPH_NODE_TYPE_KERNEL,
                KernelWork(stream->context, kernel, std::move(words), grid.threads));
}

CUresult LaunchPlain(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                     CUstream stream, void** parameters, void** extra, DefaultStream variant) {
  SIMGPU_ENTER(cuLaunchKernel);
  if (!ValidShape(gx, gy, gz, bx, by, bz)) return CUDA_ERROR_INVALID_VALUE;
  return Launch(d, f, {gx, gy, Threads(gx, gy, gz, bx, by, bz)}, stream, parameters, extra, variant);
}

CUresult LaunchEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra, DefaultStream variant) {
  SIMGPU_ENTER(cuLaunchKernelEx);
  if (config == nullptr || !ValidShape(config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                       config->blockDimY, config->blockDimZ)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const uint64_t threads = Threads(config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                                   config->blockDimY, config->blockDimZ);
  return Launch(d, f, {config->gridDimX, config->gridDimY, threads}, config->hStream, parameters, extra, variant);
}

CUresult LaunchCooperative(CUfunction f, Grid grid, CUstream stream, void** parameters, DefaultStream variant) {
  SIMGPU_ENTER(cuLaunchCooperativeKernel);
  return Launch(d, f, grid, stream, parameters, nullptr, variant);
}

// Runs at once, on the calling thread, without the lock: all earlier work is done.
CUresult HostFunction(CUstream handle, CUhostFn function, void* data, DefaultStream variant) {
  SIMGPU_ENTER_UNLOCKED(cuLaunchHostFunc);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard<std::mutex> lock(d.mutex);
    SIMGPU_WORK_STREAM(stream, handle, variant);
    if (stream->capture != nullptr) {
      GraphNode* node = AddNode(stream->capture->graph.get(), CU_GRAPH_NODE_TYPE_HOST, nullptr);
      node->host = function;
      node->host_data = data;
      return CUDA_SUCCESS;
    }
    d.order.Submit(stream->order);
  }
  function(data);
  return CUDA_SUCCESS;
}

CUresult AddCallback(CUstream handle, CUstreamCallback callback, void* data, DefaultStream variant) {
  SIMGPU_ENTER_UNLOCKED(cuStreamAddCallback);
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  {
    std::lock_guard<std::mutex> lock(d.mutex);
    SIMGPU_WORK_STREAM(stream, handle, variant);
    if (stream->capture != nullptr) {
      stream->capture->valid = false;
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    d.order.Submit(stream->order);
  }
  callback(handle, CUDA_SUCCESS, data);
  return CUDA_SUCCESS;
}

}  // namespace

SIMGPU_API cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                          unsigned, CUstream stream, void** parameters, void** extra) {
  return LaunchPlain(f, gx, gy, gz, bx, by, bz, stream, parameters, extra, kLegacy);
}
SIMGPU_API cuLaunchKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned, CUstream stream, void** parameters, void** extra) {
  return LaunchPlain(f, gx, gy, gz, bx, by, bz, stream, parameters, extra, kPerThread);
}
SIMGPU_API cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return LaunchEx(config, f, parameters, extra, kLegacy);
}
SIMGPU_API cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return LaunchEx(config, f, parameters, extra, kPerThread);
}
SIMGPU_API cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                     unsigned bz, unsigned, CUstream stream, void** parameters) {
  return LaunchCooperative(f, {gx, gy, Threads(gx, gy, gz, bx, by, bz)}, stream, parameters, kLegacy);
}
SIMGPU_API cuLaunchCooperativeKernel_ptsz(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                          unsigned bz, unsigned, CUstream stream, void** parameters) {
  return LaunchCooperative(f, {gx, gy, Threads(gx, gy, gz, bx, by, bz)}, stream, parameters, kPerThread);
}
SIMGPU_API cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return HostFunction(stream, function, data, kLegacy);
}
SIMGPU_API cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  return HostFunction(stream, function, data, kPerThread);
}
SIMGPU_API cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  return AddCallback(stream, callback, data, kLegacy);
}
SIMGPU_API cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* data, unsigned) {
  return AddCallback(stream, callback, data, kPerThread);
}

static CUfunction FunctionOf(const CUDA_KERNEL_NODE_PARAMS_v1& p) { return p.func; }
static CUfunction FunctionOf(const CUDA_KERNEL_NODE_PARAMS_v2& p) {
  return p.func != nullptr ? p.func : reinterpret_cast<CUfunction>(p.kern);
}

// Returns the work of a kernel node, from its parameters; version 1 has no `kern`.
template <typename Params>
static CUresult NodeWork(Driver& d, const Params& p, RunWork* work) {
  auto* kernel = reinterpret_cast<Kernel*>(FunctionOf(p));
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  WarnOnce(kernel);
  const uint64_t threads = Threads(p.gridDimX, p.gridDimY, p.gridDimZ, p.blockDimX, p.blockDimY, p.blockDimZ);
  *work = KernelWork(CurrentContext(), kernel,
                     WordsOf(d, *kernel, {p.gridDimX, p.gridDimY, threads}, p.kernelParams, p.extra), threads);
  return CUDA_SUCCESS;
}

template <typename Params>
static CUresult AddKernelNode(CUgraphNode* node, CUgraph handle, const CUgraphNode* after, size_t count,
                              const Params* p) {
  SIMGPU_ENTER(cuGraphAddKernelNode);
  Graph* graph = FindGraph(d, handle);
  if (node == nullptr || graph == nullptr || p == nullptr || !ValidDependencies(*graph, after, count)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  RunWork work;
  const CUresult status = NodeWork(d, *p, &work);
  if (status != CUDA_SUCCESS) return status;
  GraphNode* added = AddNode(graph, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
  if (graph->given_before != kAnyBlock) added->given_before = d.checker.serial();
  *node = Placed(added, after, count);
  return CUDA_SUCCESS;
}
SIMGPU_API cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return AddKernelNode(node, graph, after, count, p);
}
SIMGPU_API cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* after, size_t count,
                                   const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return AddKernelNode(node, graph, after, count, p);
}

template <typename Params>
static CUresult SetKernelNode(CUgraphNode handle, const Params* p) {
  SIMGPU_ENTER(cuGraphKernelNodeSetParams);
  auto* node = reinterpret_cast<GraphNode*>(handle);
  if (node == nullptr || p == nullptr || node->type != CU_GRAPH_NODE_TYPE_KERNEL) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = NodeWork(d, *p, &node->run);
  if (status == CUDA_SUCCESS) node->given_before = d.checker.serial();
  return status;
}
SIMGPU_API cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return SetKernelNode(node, p);
}
SIMGPU_API cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return SetKernelNode(node, p);
}

template <typename Params>
static CUresult SetExecKernelNode(CUgraphExec handle, CUgraphNode node, const Params* p) {
  SIMGPU_ENTER(cuGraphExecKernelNodeSetParams);
  GraphExec* exec = FindExec(d, handle);
  if (exec == nullptr || node == nullptr || p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (GraphExec::Step& step : exec->steps) {
    if (step.node != reinterpret_cast<const GraphNode*>(node) || step.type != CU_GRAPH_NODE_TYPE_KERNEL) continue;
    const CUresult status = NodeWork(d, *p, &step.run);
    if (status == CUDA_SUCCESS) step.given_before = d.checker.serial();
    return status;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
SIMGPU_API cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  return SetExecKernelNode(exec, node, p);
}
SIMGPU_API cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return SetExecKernelNode(exec, node, p);
}

}  // namespace simgpu
