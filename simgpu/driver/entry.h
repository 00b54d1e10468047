// Counting, failing and refusing of calls: what every entry point does first.
#pragma once

#include <atomic>
#include <cstdint>

namespace simgpu {

// What is counted and made to fail, one for each base name ("cuMemAlloc" for cuMemAlloc and cuMemAlloc_v2).
struct CallCounter;

class EntryPoint {
 public:
  explicit EntryPoint(const char* base);  // thread-safe
  // The CUresult to return at once, or 0. Lock-free.
  int Enter(bool needs_init);

 private:
  int EnterSlow();

  CallCounter* counter_;
};

// The process's state, as far as it decides whether calls are answered.
void SetInitialized();
bool IsInitialized();
bool IsShutDown();  // exit has come to what is older than cuInit: calls answer CUDA_ERROR_DEINITIALIZED

}  // namespace simgpu
