// Another tool's view of CUPTI: is it free, and does it time kernels? With HOTPACK_CUPTI hotpack holds it first, and
// must free it after its profile. libcupti is opened at run time.
#include <cupti.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr uint64_t kSpinNs = 20'000;
constexpr int kLaunches = 10;

struct Cupti {
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush = nullptr;
  decltype(&cuptiActivityGetNextRecord) next = nullptr;
  decltype(&cuptiGetResultString) name = nullptr;

  std::string NameOf(CUptiResult result) const {
    const char* text = nullptr;
    return name(result, &text) == CUPTI_SUCCESS && text != nullptr ? text : std::to_string(result);
  }
};
Cupti cupti;

// Empty, or why there is none.
std::string Open(const Probe& probe) {
  void* library = nullptr;
  for (const char* name : {"libcupti.so.13", "libcupti.so.12"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW);
  }
  for (const std::string& directory : probe.library_path) {
    if (library == nullptr) library = dlopen((directory + "/libcupti.so.13").c_str(), RTLD_NOW);
  }
  if (library == nullptr) return "libcupti.so.13 cannot be loaded";
  if (probe.simulated && dlsym(library, "cupti_standin_figures") == nullptr) return "CUPTI knows no simulated device";
  bool whole = true;
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    whole = whole && *function != nullptr;
  };
  find(&cupti.subscribe, "cuptiSubscribe");
  find(&cupti.unsubscribe, "cuptiUnsubscribe");
  find(&cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(&cupti.enable, "cuptiActivityEnable");
  find(&cupti.disable, "cuptiActivityDisable");
  find(&cupti.flush, "cuptiActivityFlushAll");
  find(&cupti.next, "cuptiActivityGetNextRecord");
  find(&cupti.name, "cuptiGetResultString");
  return whole ? "" : "libcupti lacks functions";
}

std::atomic<int> records{0}, right{0};

void CUPTIAPI OnRequest(uint8_t** buffer, size_t* bytes, size_t* most) {
  *bytes = 1 << 20;
  *buffer = static_cast<uint8_t*>(malloc(*bytes));
  *most = 0;
}

void CUPTIAPI OnCompleted(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  for (CUpti_Activity* record = nullptr; cupti.next(buffer, valid, &record) == CUPTI_SUCCESS;) {
    if (record->kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const auto* kernel = reinterpret_cast<const CUpti_ActivityKernel9*>(record);
    ++records;
    if (kernel->start < kernel->end && kernel->name != nullptr && strlen(kernel->name) > 0) ++right;
  }
  free(buffer);
}

// A step as a job makes it; returns its nanoseconds.
double Step(cudaStream_t stream) {
  const Stopwatch watch;
  void *a = nullptr, *b = nullptr;
  HOTPACK_NEED(cudaMalloc(&a, kMiB));
  HOTPACK_NEED(LegacyKernels().spin(kSpinNs, stream));
  HOTPACK_NEED(cudaMalloc(&b, 2 * kMiB));
  HOTPACK_NEED(LegacyKernels().spin(kSpinNs, stream));
  HOTPACK_NEED(cudaStreamSynchronize(stream));
  HOTPACK_NEED(cudaFree(a));
  HOTPACK_NEED(cudaFree(b));
  return watch.Nanoseconds();
}

CUptiResult Subscribe(CUpti_SubscriberHandle* handle) {
  return cupti.subscribe(
      handle, [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}, nullptr);
}

// Steps until CUPTI is free, at most 20 s. False: it never is.
bool StepUntilFree(const Probe& probe, cudaStream_t stream, CUpti_SubscriberHandle* handle) {
  std::vector<double> profiled;
  const Stopwatch watch;
  CUptiResult result = CUPTI_ERROR_UNKNOWN;
  for (int step = 0; watch.Nanoseconds() < 20e9; ++step) {
    profiled.push_back(Step(stream));
    result = step % 10 == 0 ? Subscribe(handle) : result;
    if (result == CUPTI_SUCCESS) break;
    if (result != CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && result != CUPTI_ERROR_MAX_LIMIT_REACHED) break;
  }
  const bool asked = getenv("HOTPACK_CUPTI") != nullptr;
  if (asked)
    probe.found->Check(profiled.size() > 1, "cupti.taken", "hotpack has it while it profiles",
                       std::to_string(profiled.size()) + " steps");
  probe.found->AddFigure("cupti.step_profiled", "ns", asked ? profiled : std::vector<double>());
  return probe.Must(
      result == CUPTI_SUCCESS, "cupti.free", "another tool finds CUPTI free, after a while if hotpack profiles",
      result == CUPTI_SUCCESS ? "free after " + std::to_string(profiled.size()) + " steps" : cupti.NameOf(result));
}

}  // namespace

void RunCupti(Probe& probe) {
  const std::string reason = Open(probe);
  if (!reason.empty()) {
    probe.found->Skip("cupti.library", reason);
    return;
  }
  const Stream stream;
  CUpti_SubscriberHandle handle = nullptr;
  if (!StepUntilFree(probe, stream, &handle)) return;
  std::vector<double> steps;
  for (int i = 0; i < probe.Rounds(200); ++i) steps.push_back(Step(stream));
  probe.found->AddFigure("cupti.step", "ns", steps);
  CUptiResult result = cupti.register_callbacks(OnRequest, OnCompleted);
  if (result == CUPTI_SUCCESS) result = cupti.enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (!probe.Must(result == CUPTI_SUCCESS, "cupti.enable", "kernels can be recorded", cupti.NameOf(result))) return;
  for (int i = 0; i < kLaunches; ++i) HOTPACK_NEED(LegacyKernels().spin(kSpinNs, stream));
  HOTPACK_NEED(cudaDeviceSynchronize());
  cupti.disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  cupti.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  cupti.unsubscribe(handle);
  probe.Must(records == kLaunches && right == kLaunches, "cupti.records",
             std::to_string(kLaunches) + " kernels, each with a name and times",
             std::to_string(records) + ", of them right " + std::to_string(right));
}

}  // namespace hotpack::gpu
