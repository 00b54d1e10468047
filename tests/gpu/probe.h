// The common part of the cases of gpu_probe: their context, their checks, and small helpers. A case is a function `void
// RunX(Probe&)`. Its findings are named `x.what`.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/include/hotpack.h"
#include "tests/gpu/findings.h"
#include "tests/gpu/kernels.h"

namespace hotpack::gpu {

inline constexpr size_t kKiB = size_t{1} << 10;
inline constexpr size_t kMiB = size_t{1} << 20;

// A call that the rest of a case needs has failed. The case ends, and main records it.
struct CallFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Probe {
 public:
  Findings* found = nullptr;
  bool quick = false;
  std::vector<std::string> library_path;  // directories to look for cuBLAS and cuDNN in

  // Set by Prepare.
  // The simulated device: copies and memsets move bytes, kernels do nothing, and times are meaningless.
  bool simulated = false;
  bool computes = false;  // kernels compute
  bool hotpack = false;   // hotpack is preloaded and not switched off

  // An attribute of device 0 that is not 0.
  static bool Has(cudaDeviceAttr attribute);

  // Detects the device, makes device 0 current, and loads the kernels: the driver loads a kernel at its first launch,
  // which may wait for running work. Makes no stream. Returns an empty string, or why no case can run here. Throws
  // CallFailed.
  std::string Prepare();

  // Half with --quick. Nanoseconds, and numbers of rounds (at least 1).
  uint64_t Nanoseconds(uint64_t milliseconds) const { return milliseconds * 1'000'000 / (quick ? 2 : 1); }
  int Rounds(int rounds) const { return quick && rounds > 1 ? rounds / 2 : rounds; }

  // Records a rule that holds under hotpack, and is a fact about the driver without it: fails there, differs here.
  bool Must(bool ok, const std::string& name, const std::string& expected, const std::string& seen) const {
    return hotpack ? found->Check(ok, name, expected, seen) : found->Fact(ok, name, expected, seen);
  }

  // Launches every kernel once on `stream`, doing nothing, and waits.
  static void WarmUp(const Kernels& kernels, cudaStream_t stream);

  // Returns hotpack's figures so far; all zero if it has no arena yet or is not present.
  hotpack_stats Stats() const;
};

std::string ErrorName(cudaError_t error);

// Throws CallFailed. Clears the runtime's last error, so that later checks do not see it.
void Need(cudaError_t error, const char* what);
#define HOTPACK_NEED(call) ::hotpack::gpu::Need((call), #call)

inline std::string YesNo(bool yes) { return yes ? "yes" : "no"; }
std::string Hex(uint64_t value);

class Stopwatch {
 public:
  double Nanoseconds() const {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// A stream that is destroyed at the end of its scope.
class Stream {
 public:
  explicit Stream(unsigned flags = cudaStreamNonBlocking) { HOTPACK_NEED(cudaStreamCreateWithFlags(&stream_, flags)); }
  ~Stream() { Destroy(); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return stream_; }
  cudaError_t Destroy() {
    const cudaError_t error = stream_ != nullptr ? cudaStreamDestroy(stream_) : cudaSuccess;
    stream_ = nullptr;
    return error;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

// The two ways to allocate memory. kMalloc does not use the stream.
enum class Way { kMalloc, kAsync };
inline const char* WayName(Way way) { return way == Way::kMalloc ? "malloc" : "async"; }
cudaError_t Allocate(Way way, size_t bytes, cudaStream_t stream, void** pointer);
cudaError_t Release(Way way, void* pointer, cudaStream_t stream);

// Copies `bytes` bytes at `device` to the host, synchronously on the legacy default stream, and counts those that are
// not `value`.
size_t CountOther(const void* device, size_t bytes, unsigned char value);

// The word that memset with this byte makes.
inline uint32_t WordOf(unsigned char byte) { return byte * 0x01010101u; }

void RunCoverage(Probe& probe);
void RunLibraries(Probe& probe);
void RunArena(Probe& probe);
void RunStreams(Probe& probe);
void RunStreamsPerThread(Probe& probe);
void RunFreeSync(Probe& probe);
void RunCapture(Probe& probe);
void RunLateFrees(Probe& probe);
void RunInfo(Probe& probe);
void RunVmm(Probe& probe);
void RunManaged(Probe& probe);
void RunLookups(Probe& probe);
void RunGrowth2(Probe& probe);
void RunGrowth20(Probe& probe);
void RunGrowth64(Probe& probe);
void RunOverlap(Probe& probe);
void RunSharing(Probe& probe);
void RunNearlyFull(Probe& probe);
void RunCupti(Probe& probe);  // if CUPTI's headers were found

// The process that late_frees starts again for `name`. Returns its exit status, or -1 for an unknown name.
int RunLateFreesChild(const std::string& name);
// The same for sharing.
int RunSharingChild(const std::string& name);

}  // namespace hotpack::gpu
