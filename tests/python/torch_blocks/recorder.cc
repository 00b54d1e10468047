// Reports to the simulated device's checker which blocks PyTorch's own caching allocator gives to tensors. Without it
// the checker knows the segments only, and does not report two tensors that use the same part of one without an order.
//
//   cudaMalloc     ┌───────────────segment────────────────┐   told by the simulated runtime: taken back here, because
//   SEGMENT_ALLOC                                             its parts are the program's blocks
//   ALLOC          ┌──a──┐┌─────b─────┐                       given
//   FREE_REQUESTED        └─────b─────┘                       returned: the tensor is gone, and its uses stay with the
//                                                             addresses. The next block there has to come after them
//   SEGMENT_FREE   ┌───────────────segment────────────────┐   given again, because cudaFree, which follows, returns it
//
// A release that record_stream defers still returns the block at once. No request gets the addresses until PyTorch
// knows that the recorded streams have ended (FREE_COMPLETED), and the checker sees how PyTorch learnt that.
#include <c10/cuda/CUDACachingAllocator.h>
#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>

namespace {

using c10::CachingDeviceAllocator::TraceEntry;

void (*given)(uint64_t address, size_t bytes, void* stream) = nullptr;  // simgpu/checker.h
void (*returned)(uint64_t address, void* stream) = nullptr;
std::atomic<uint64_t> blocks{0};

// Called under PyTorch's lock of the device, which the checker never takes.
void Tell(const TraceEntry& entry) {
  switch (entry.action_) {
    case TraceEntry::ALLOC:
      blocks.fetch_add(1, std::memory_order_relaxed);
      given(entry.addr_, entry.size_, entry.stream_);
      break;
    case TraceEntry::SEGMENT_FREE:
      given(entry.addr_, entry.size_, entry.stream_);
      break;
    case TraceEntry::FREE_REQUESTED:
      returned(entry.addr_, entry.stream_);
      break;
    case TraceEntry::SEGMENT_ALLOC:
      returned(entry.addr_, entry.stream_);
      // A part of it: the segment is an arena from now on, even if one block fills it. Memory in no block is not to be
      // used then.
      given(entry.addr_, 1, entry.stream_);
      returned(entry.addr_, entry.stream_);
      break;
    default:
      break;
  }
}

template <typename Function>
bool Find(const char* name, Function* function) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  void* found = driver == nullptr ? nullptr : dlsym(driver, name);
  *function = reinterpret_cast<Function>(found);
  return found != nullptr;
}

}  // namespace

extern "C" {

// Attaches the recorder to the allocator in use. Call it once, after PyTorch has set up CUDA and before it allocates.
// Returns null, or why it cannot.
const char* torch_blocks_attach(void) {
  static char reason[256];
  if (!Find("simgpuBlockGiven", &given) || !Find("simgpuBlockReturned", &returned)) {
    return "the driver in use is not the simulated one";
  }
  try {
    c10::cuda::CUDACachingAllocator::get()->attachAllocatorTraceTracker(&Tell);
  } catch (const c10::Error& error) {
    snprintf(reason, sizeof(reason), "%s", error.what_without_backtrace());
    return reason;
  } catch (const std::exception& error) {
    snprintf(reason, sizeof(reason), "%s", error.what());
    return reason;
  }
  return nullptr;
}

// Blocks reported so far. Thread-safe.
uint64_t torch_blocks_told(void) { return blocks.load(std::memory_order_relaxed); }

}  // extern "C"
