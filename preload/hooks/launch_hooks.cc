// Reads the arguments of watched functions (work_list.h) for the launch collector: a name, a stream, and the words that
// may be addresses of blocks. Signatures: cuda.h.
#include <cstring>

#include "preload/collect/kernel_table.h"
#include "preload/collect/launch_notes.h"
#include "preload/hooks/hook_table.h"
#include "preload/process/hook_scope.h"
#include "preload/streams/stream_order.h"

namespace hotpack {
namespace {

// Arguments in their registers and on the stack.
class Arguments {
 public:
  Arguments(const uint64_t* registers, const uint64_t* stack) : registers_(registers), stack_(stack) {}
  uint64_t operator[](int n) const { return n <= 6 ? registers_[n - 1] : stack_[n - 7]; }  // from 1
  template <typename T>
  T* Pointer(int n) const {
    return reinterpret_cast<T*>((*this)[n]);
  }

 private:
  const uint64_t* registers_;
  const uint64_t* stack_;
};

// Collects words; a few without the heap.
class Words {
 public:
  void Add(uint64_t word) {
    if (Arenas().FindOwner(word) == nullptr) return;  // most are sizes
    if (count_ < kFew) {
      few_[count_++] = word;
      return;
    }
    if (many_.empty()) many_.assign(few_, few_ + kFew);
    many_.push_back(word);
  }
  const uint64_t* data() const { return many_.empty() ? few_ : many_.data(); }
  size_t size() const { return many_.empty() ? count_ : many_.size(); }

 private:
  static constexpr size_t kFew = 64;
  uint64_t few_[kFew];
  size_t count_ = 0;
  std::vector<uint64_t> many_;
};

using Reader = void (*)(const Arguments& arguments, Words* words);

template <int... kPlaces>
void At(const Arguments& arguments, Words* words) {
  (words->Add(arguments[kPlaces]), ...);
}

// A CUDA_MEMCPY2D, CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER.
template <typename Copy>
void CopyStruct(const Arguments& arguments, Words* words) {
  const auto* copy = arguments.Pointer<const Copy>(1);
  if (copy == nullptr) return;
  auto add = [words](CUmemorytype type, CUdeviceptr device, const void* host) {
    if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) words->Add(device);
    if (type == CU_MEMORYTYPE_HOST) words->Add(reinterpret_cast<uint64_t>(host));
  };
  add(copy->srcMemoryType, copy->srcDevice, copy->srcHost);
  add(copy->dstMemoryType, copy->dstDevice, copy->dstHost);
}

// Destinations, sources, sizes, their number.
void CopyBatch(const Arguments& arguments, Words* words) {
  const auto* to = arguments.Pointer<const CUdeviceptr>(1);
  const auto* from = arguments.Pointer<const CUdeviceptr>(2);
  if (to == nullptr || from == nullptr) return;
  for (uint64_t i = 0; i < arguments[4]; ++i) {
    words->Add(to[i]);
    words->Add(from[i]);
  }
}

#if CUDA_VERSION >= 12080
// Their number, the copies.
void Copy3DBatch(const Arguments& arguments, Words* words) {
  const auto* copies = arguments.Pointer<const CUDA_MEMCPY3D_BATCH_OP>(2);
  for (uint64_t i = 0; copies != nullptr && i < arguments[1]; ++i) {
    for (const CUmemcpy3DOperand* end : {&copies[i].dst, &copies[i].src}) {
      if (end->type == CU_MEMCPY_OPERAND_TYPE_POINTER) words->Add(end->op.ptr.ptr);
    }
  }
}
#endif

void KernelWords(const Kernel& kernel, void* const* parameters, void* const* extra, Words* words) {
  ForEachWord(kernel, parameters, extra, [words](uint64_t word) { words->Add(word); });
}

}  // namespace

// `function`: ordinal of the kernel argument; 0: the name is the row's. `parameters`: ordinal of the kernel's
// parameters, followed by `extra` if has_extra.
struct NotedWork {
  const char* symbol;
  const char* name;
  int stream;  // ordinal of the argument; 0: the default stream; kConfig: in the CUlaunchConfig
  bool own;    // a null stream, or none named, is the thread's own
  Reader reader;
  int function;
  int parameters;
  bool has_extra;
};

namespace {

constexpr int kConfig = -1;

// A pair: the legacy and the per-thread variant.
#define HOTPACK_ASYNC(symbol, name, stream, reader) \
  {#symbol, name, stream, false, reader, 0, 0, false}, { #symbol "_ptsz", name, stream, true, reader, 0, 0, false }
#define HOTPACK_SYNC(symbol, name, reader) \
  {#symbol, name, 0, false, reader, 0, 0, false}, { #symbol "_ptds", name, 0, true, reader, 0, 0, false }
#define HOTPACK_KERNEL(symbol, stream, function, parameters, has_extra)              \
  {#symbol, nullptr, stream, false, nullptr, function, parameters, has_extra}, {     \
#symbol "_ptsz", nullptr, stream, true, nullptr, function, parameters, has_extra \
  }

constexpr NotedWork kNoted[] = {
    HOTPACK_KERNEL(cuLaunchKernel, 9, 1, 10, true),
    HOTPACK_KERNEL(cuLaunchKernelEx, kConfig, 2, 3, true),
    HOTPACK_KERNEL(cuLaunchCooperativeKernel, 9, 1, 10, false),
    HOTPACK_ASYNC(cuGraphLaunch, "graph", 2, nullptr),
    HOTPACK_SYNC(cuMemcpy, "memcpy", (At<1, 2>)),
    HOTPACK_ASYNC(cuMemcpyAsync, "memcpy", 4, (At<1, 2>)),
    HOTPACK_SYNC(cuMemcpyHtoD_v2, "memcpy HtoD", At<1>),
    HOTPACK_ASYNC(cuMemcpyHtoDAsync_v2, "memcpy HtoD", 4, At<1>),
    HOTPACK_SYNC(cuMemcpyDtoH_v2, "memcpy DtoH", At<2>),
    HOTPACK_ASYNC(cuMemcpyDtoHAsync_v2, "memcpy DtoH", 4, At<2>),
    HOTPACK_SYNC(cuMemcpyDtoD_v2, "memcpy DtoD", (At<1, 2>)),
    HOTPACK_ASYNC(cuMemcpyDtoDAsync_v2, "memcpy DtoD", 4, (At<1, 2>)),
    HOTPACK_SYNC(cuMemcpyPeer, "memcpy peer", (At<1, 3>)),
    HOTPACK_ASYNC(cuMemcpyPeerAsync, "memcpy peer", 6, (At<1, 3>)),
    HOTPACK_SYNC(cuMemcpy2D_v2, "memcpy 2D", CopyStruct<CUDA_MEMCPY2D>),
    HOTPACK_SYNC(cuMemcpy2DUnaligned_v2, "memcpy 2D", CopyStruct<CUDA_MEMCPY2D>),
    HOTPACK_ASYNC(cuMemcpy2DAsync_v2, "memcpy 2D", 2, CopyStruct<CUDA_MEMCPY2D>),
    HOTPACK_SYNC(cuMemcpy3D_v2, "memcpy 3D", CopyStruct<CUDA_MEMCPY3D>),
    HOTPACK_ASYNC(cuMemcpy3DAsync_v2, "memcpy 3D", 2, CopyStruct<CUDA_MEMCPY3D>),
    HOTPACK_SYNC(cuMemcpy3DPeer, "memcpy peer", CopyStruct<CUDA_MEMCPY3D_PEER>),
    HOTPACK_ASYNC(cuMemcpy3DPeerAsync, "memcpy peer", 2, CopyStruct<CUDA_MEMCPY3D_PEER>),
    HOTPACK_ASYNC(cuMemcpyBatchAsync, "memcpy batch", 9, CopyBatch),
    HOTPACK_ASYNC(cuMemcpyBatchAsync_v2, "memcpy batch", 8, CopyBatch),
#if CUDA_VERSION >= 12080
    HOTPACK_ASYNC(cuMemcpy3DBatchAsync, "memcpy batch", 5, Copy3DBatch),
    HOTPACK_ASYNC(cuMemcpy3DBatchAsync_v2, "memcpy batch", 4, Copy3DBatch),
#endif
    HOTPACK_SYNC(cuMemsetD8_v2, "memset", At<1>),
    HOTPACK_SYNC(cuMemsetD16_v2, "memset", At<1>),
    HOTPACK_SYNC(cuMemsetD32_v2, "memset", At<1>),
    HOTPACK_SYNC(cuMemsetD2D8_v2, "memset", At<1>),
    HOTPACK_SYNC(cuMemsetD2D16_v2, "memset", At<1>),
    HOTPACK_SYNC(cuMemsetD2D32_v2, "memset", At<1>),
    HOTPACK_ASYNC(cuMemsetD8Async, "memset", 4, At<1>),
    HOTPACK_ASYNC(cuMemsetD16Async, "memset", 4, At<1>),
    HOTPACK_ASYNC(cuMemsetD32Async, "memset", 4, At<1>),
    HOTPACK_ASYNC(cuMemsetD2D8Async, "memset", 6, At<1>),
    HOTPACK_ASYNC(cuMemsetD2D16Async, "memset", 6, At<1>),
    HOTPACK_ASYNC(cuMemsetD2D32Async, "memset", 6, At<1>),
};

CUstream StreamOf(const NotedWork& work, const Arguments& arguments) {
  CUstream stream = nullptr;
  if (work.stream > 0) stream = arguments.Pointer<CUstream_st>(work.stream);
  if (work.stream == kConfig) {
    const auto* config = arguments.Pointer<const CUlaunchConfig>(1);
    if (config != nullptr) stream = config->hStream;
  }
  return stream == nullptr && work.own ? CU_STREAM_PER_THREAD : stream;
}

void Note(const NotedWork& work, const Arguments& arguments) {
  const CUstream stream = StreamOf(work, arguments);
  if (Order().IsCapturing(stream)) return;  // no work runs now: the graph's launch is noted
  Words words;
  if (work.function != 0) {
    const std::shared_ptr<const Kernel> kernel = FindKernel(arguments.Pointer<CUfunc_st>(work.function));
    KernelWords(*kernel, arguments.Pointer<void*>(work.parameters),
                work.has_extra ? arguments.Pointer<void*>(work.parameters + 1) : nullptr, &words);
    NoteLaunch(kernel->name.c_str(), stream, words.data(), words.size());
    return;
  }
  if (work.reader != nullptr) work.reader(arguments, &words);
  NoteLaunch(work.name, stream, words.data(), words.size());
}

}  // namespace

const NotedWork* FindNotedWork(const char* symbol) {
  for (const NotedWork& work : kNoted) {
    if (strcmp(work.symbol, symbol) == 0) return &work;
  }
  return nullptr;
}

}  // namespace hotpack

// Called by the code of work_hooks.cc, on the program's thread, before the work is submitted.
extern "C" __attribute__((visibility("hidden"))) void hotpack_note_work(const hotpack::NotedWork* work,
                                                                        const uint64_t* registers,
                                                                        const uint64_t* stack) noexcept try {
  hotpack::noted_launch.engine = nullptr;  // an earlier one that was not taken does not belong to this call
  hotpack::HookScope scope;
  if (scope.Active()) hotpack::Note(*work, hotpack::Arguments(registers, stack));
} catch (...) {  // no host memory: this one is not noted
}
