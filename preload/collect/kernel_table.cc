#include "preload/collect/kernel_table.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "preload/process/driver_access.h"
#include "preload/process/log.h"
#include "preload/process/no_destructor.h"

namespace hotpack {
namespace {

constexpr size_t kMaxParameters = 4096;  // cuLaunchKernel allows 32764 bytes of them

struct Given {
  std::string name;
  bool is_kernel = false;
};

struct State {
  std::mutex mutex;
  std::unordered_map<const void*, Given> given;
  std::unordered_map<const void*, std::shared_ptr<const Kernel>> kernels;
  std::atomic<bool> layout_missed{false};
};
constinit NoDestructor<State> the_state;

// cuFuncGetParamInfo, cuKernelGetParamInfo (CUDA 12.4); cuFuncGetName, cuKernelGetName (12.3). The handles of both
// kinds are pointers.
using GetName = CUresult (*)(const char**, const void*);
using GetParameter = CUresult (*)(const void*, size_t, size_t*, size_t*);

struct Asked {
  GetName name = nullptr;
  GetParameter parameter = nullptr;
};

Asked Questions(bool is_kernel) {
  Asked asked;
  asked.name = reinterpret_cast<GetName>(DriverSymbol(is_kernel ? "cuKernelGetName" : "cuFuncGetName"));
  asked.parameter =
      reinterpret_cast<GetParameter>(DriverSymbol(is_kernel ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo"));
  return asked;
}

// Without a lock: makes driver calls.
std::shared_ptr<const Kernel> Ask(const void* handle, const Given& given) {
  auto kernel = std::make_shared<Kernel>();
  kernel->name = given.name;
  const Asked ask = Questions(given.is_kernel);
  const char* name = nullptr;
  if (ask.name != nullptr && ask.name(&name, handle) == CUDA_SUCCESS && name != nullptr) kernel->name = name;
  for (size_t i = 0; ask.parameter != nullptr && i < kMaxParameters; ++i) {
    size_t offset = 0, bytes = 0;
    if (ask.parameter(handle, i, &offset, &bytes) != CUDA_SUCCESS) {
      kernel->layout_known = true;  // end of the list: CUDA_ERROR_INVALID_VALUE
      break;
    }
    if (bytes >= 8) kernel->parameters.push_back({i, bytes});
  }
  return kernel;
}

}  // namespace

std::shared_ptr<const Kernel> FindKernel(CUfunction handle) {
  State& state = the_state.Get();
  Given given;
  {
    std::lock_guard<std::mutex> lock(state.mutex);
    const auto known = state.kernels.find(handle);
    if (known != state.kernels.end()) return known->second;
    const auto found = state.given.find(handle);
    if (found != state.given.end()) given = found->second;
  }
  std::shared_ptr<const Kernel> kernel = Ask(handle, given);
  if (!kernel->layout_known && !state.layout_missed.exchange(true)) {
    Log("the driver does not tell kernels' parameters (CUDA 12.4 does): launches are noted without their blocks");
  }
  std::lock_guard<std::mutex> lock(state.mutex);
  state.kernels.emplace(handle, kernel);
  return kernel;
}

void KernelGiven(const void* handle, const char* name, bool is_kernel) {
  State& state = the_state.Get();
  std::lock_guard<std::mutex> lock(state.mutex);
  Given& given = state.given[handle];
  if (name != nullptr) given.name = name;
  given.is_kernel = is_kernel;
}

void ForgetKernels() {
  State* state = the_state.Made();
  if (state == nullptr) return;
  std::lock_guard<std::mutex> lock(state->mutex);
  state->kernels.clear();
}

void ForgetKernelsAfterFork() { the_state.RenewAfterFork(); }

}  // namespace hotpack
