// The functions of simgpu/checker.h.
#include "simgpu/checker.h"
#include "simgpu/checker/report.h"
#include "simgpu/driver/api.h"
#include "simgpu/driver/time_costs.h"
#include "simgpu/driver/work.h"

#define SIMGPU_EXPORT extern "C" __attribute__((visibility("default")))

namespace simgpu {

static thread_local int teller_depth = 0;

SIMGPU_EXPORT void simgpuBlockGiven(uint64_t address, size_t bytes, void* stream_handle) {
  if (!IsInitialized() || IsShutDown() || address == 0) return;
  Driver& d = TheDriver();
  std::lock_guard<std::mutex> lock(d.mutex);
  const bool pooled = stream_handle != SIMGPU_NO_STREAM;
  // The handle's context, else the current one.
  const auto stream = d.streams.find(static_cast<Stream*>(stream_handle));
  Context* context = pooled && stream != d.streams.end() ? (*stream)->context : CurrentContext();
  if (!pooled && (context == nullptr || !context->alive)) return;  // another thread has destroyed it since
  d.checker.Given(address, bytes, Teller::kOutside, {context == nullptr ? 0 : OwnerOf(context)->id, pooled});
}

SIMGPU_EXPORT void simgpuBlockReturned(uint64_t address, void*) {
  if (!IsInitialized() || IsShutDown() || address == 0) return;
  Driver& d = TheDriver();
  std::lock_guard<std::mutex> lock(d.mutex);
  d.checker.Returned(address, Teller::kOutside);
}

SIMGPU_EXPORT void simgpuBlockKept(uint64_t address) {
  if (!IsInitialized() || IsShutDown() || address == 0) return;
  Driver& d = TheDriver();
  std::lock_guard<std::mutex> lock(d.mutex);
  d.checker.Kept(address);
}

SIMGPU_EXPORT void simgpuUse(void* stream_handle, uint64_t address, size_t bytes, int write) {
  if (!IsInitialized() || IsShutDown()) return;
  Driver& d = TheDriver();
  std::lock_guard<std::mutex> lock(d.mutex);
  Stream* stream = nullptr;
  if (FindStream(d, static_cast<CUstream>(stream_handle), DefaultStream::kLegacy, &stream) != CUDA_SUCCESS) return;
  const char* what = write != 0 ? "a library call (to)" : "a library call (from)";
  Submit(d, stream, CU_GRAPH_NODE_TYPE_KERNEL, [=](Driver& driver, Epoch op, uint64_t given_before) {
    TakeMemory(driver, op.stream, bytes);
    driver.checker.Use(op, address, bytes, what, given_before);
    if (write != 0) WrittenByLibrary(driver, address, bytes);
    return CUDA_SUCCESS;
  });
}

SIMGPU_EXPORT void simgpuLibraryCall(int told) {
  CountWork(told != 0 ? Counted::kCallTold : Counted::kCallNotTold);
  if (IsInitialized() && !IsShutDown()) HostTakesLibraryCall();
}

SIMGPU_EXPORT void simgpuDeviceReset(int device) {
  if (!IsInitialized() || IsShutDown()) return;
  Driver& d = TheDriver();
  std::lock_guard<std::mutex> lock(d.mutex);
  ForgetPrimary(d, device);
}

SIMGPU_EXPORT uint64_t simgpuReports() { return ReportCount(); }

SIMGPU_EXPORT uint64_t simgpuTimeHost() { return HostNow(); }
SIMGPU_EXPORT uint64_t simgpuTimeMakespan() { return TimeMode() ? Makespan() : 0; }
SIMGPU_EXPORT uint64_t simgpuTimeWaited() { return TimeMode() ? TotalWaited() : 0; }
SIMGPU_EXPORT void simgpuTimeMark(const char* name) { MarkTime(name == nullptr ? "" : name); }

SIMGPU_EXPORT uint64_t simgpuTimeInCalls(const char* base) {
  uint64_t sum = 0;
  for (const NamedTime& call : TimesByName()) {
    if (base == nullptr || call.base == base) sum += call.time->taken.load();
  }
  return sum;
}

SIMGPU_EXPORT int simgpuTeller(int change) {
  const int before = teller_depth;
  teller_depth += change;
  return before;
}

}  // namespace simgpu
