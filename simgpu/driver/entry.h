// Counting, failing and refusing of calls: what every entry point does first.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

// What is counted and made to fail, one for each base name ("cuMemAlloc" for cuMemAlloc and cuMemAlloc_v2).
struct CallCounter;

class EntryPoint {
 public:
  // No constructor runs: in the child of a fork a static object that another thread was just constructing never would
  // be.
  explicit constexpr EntryPoint(const char* base) : base_(base) {}
  // The CUresult to return at once, or 0. Thread-safe; lock-free but for the first call.
  int Enter(bool needs_init);

 private:
  CallCounter* Counter();
  int EnterSlow(CallCounter* counter);

  const char* const base_;
  std::atomic<CallCounter*> counter_{nullptr};
};

// The process's state, as far as it decides whether calls are answered.
void SetInitialized();
bool IsInitialized();
bool IsShutDown();  // exit has come to what is older than cuInit: calls answer CUDA_ERROR_DEINITIALIZED

}  // namespace simgpu
