// Counts, fails and refuses calls: the first part of every entry point.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

// Counts and failures of one base name ("cuMemAlloc" for cuMemAlloc and cuMemAlloc_v2).
struct CallCounter;

class EntryPoint {
 public:
  // No constructor runs: if another thread is constructing a static object at a fork, the child never completes it.
  explicit constexpr EntryPoint(const char* base) : base_(base) {}
  // Returns the CUresult to return at once, or 0. Thread-safe. Lock-free except for the first call.
  int Enter(bool needs_init);

 private:
  CallCounter* Counter();
  int EnterSlow(CallCounter* counter);

  const char* const base_;
  std::atomic<CallCounter*> counter_{nullptr};
};

// The process's state, as far as it decides whether calls are served.
void SetInitialized();
bool IsInitialized();
bool IsShutDown();  // exit has reached objects older than cuInit: calls return CUDA_ERROR_DEINITIALIZED

}  // namespace simgpu
