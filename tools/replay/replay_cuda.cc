#include "tools/replay/replay_cuda.h"

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "absl/status/status.h"
#include "tools/replay/replay_ptx.h"

namespace hotpack {
namespace {

// The driver's functions, typed by cuda.h. They are looked up by the names that cuda.h defines as macros (cuMemAlloc is
// cuMemAlloc_v2).
#define HOTPACK_STRING(name) #name
#define HOTPACK_SYMBOL(name) HOTPACK_STRING(name)
// clang-format off
#define HOTPACK_DRIVER_FUNCTIONS(F)                                                                 \
  F(cuInit) F(cuDeviceGet) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent) F(cuCtxSynchronize)       \
  F(cuGetErrorString) F(cuMemAlloc) F(cuMemFree) F(cuMemAllocHost) F(cuMemHostGetDevicePointer)     \
  F(cuMemsetD8Async) F(cuModuleLoadData) F(cuModuleGetFunction) F(cuLaunchKernel) F(cuStreamCreate) \
  F(cuEventCreate) F(cuEventRecord) F(cuStreamWaitEvent)
// clang-format on
struct Driver {
#define HOTPACK_MEMBER(name) decltype(&::name) name##_ = nullptr;
  HOTPACK_DRIVER_FUNCTIONS(HOTPACK_MEMBER)
#undef HOTPACK_MEMBER
};

// The runtime's functions. These four do not need its header: cudaError_t is an int, cudaStream_t a CUstream.
struct Runtime {
  int (*malloc)(void**, size_t) = nullptr;
  int (*free)(void*) = nullptr;
  int (*malloc_async)(void**, size_t, CUstream) = nullptr;
  int (*free_async)(void*, CUstream) = nullptr;
  const char* (*error_string)(int) = nullptr;
};

absl::Status Missing(const std::string& what) { return absl::NotFoundError(what); }

// Loads the first of `names` that can be loaded.
absl::StatusOr<void*> Load(std::initializer_list<const char*> names) {
  std::string tried, reason;
  for (const char* name : names) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    const char* error = dlerror();
    if (reason.empty() && error != nullptr) reason = error;
    tried += (tried.empty() ? "" : " or ") + std::string(name);
  }
  return Missing("cannot load " + tried + ": " + reason);
}

template <typename Function>
absl::Status Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr ? absl::OkStatus() : Missing(std::string("the CUDA library has no ") + name);
}

absl::Status LoadDriver(Driver* driver) {
  absl::StatusOr<void*> library = Load({"libcuda.so.1"});
  if (!library.ok()) return library.status();
#define HOTPACK_FIND(name) \
  if (absl::Status found = Find(*library, HOTPACK_SYMBOL(name), &driver->name##_); !found.ok()) return found;
  HOTPACK_DRIVER_FUNCTIONS(HOTPACK_FIND)
#undef HOTPACK_FIND
  return absl::OkStatus();
}

absl::Status LoadRuntime(Runtime* runtime) {
  absl::StatusOr<void*> library = Load({"libcudart.so.13", "libcudart.so.12"});
  if (!library.ok()) return library.status();
  absl::Status found = Find(*library, "cudaMalloc", &runtime->malloc);
  if (found.ok()) found = Find(*library, "cudaFree", &runtime->free);
  if (found.ok()) found = Find(*library, "cudaMallocAsync", &runtime->malloc_async);
  if (found.ok()) found = Find(*library, "cudaFreeAsync", &runtime->free_async);
  if (found.ok()) found = Find(*library, "cudaGetErrorString", &runtime->error_string);
  return found;
}

class CudaReplayDevice : public ReplayDevice {
 public:
  explicit CudaReplayDevice(ReplayApi api) : api_(api) {}
  absl::Status Open(bool touch);

  std::string Allocate(uint64_t bytes, uint32_t stream, uint64_t* address) override;
  std::string Release(const ReplayBlock& block, uint32_t stream) override;
  std::string Fill(const ReplayBlock& block) override;
  std::string Check(const ReplayBlock& block) override;
  std::string Synchronize() override { return Text("cuCtxSynchronize", driver_.cuCtxSynchronize_()); }
  uint64_t Mismatches() override { return count_ != nullptr ? *count_ : 0; }

 private:
  struct Lane {
    CUstream stream = nullptr;
    CUevent event = nullptr;  // to order another stream after this one
  };

  std::string Text(const char* call, CUresult result) const;
  std::string RuntimeText(const char* call, int result) const;
  absl::Status OpenContext();
  void LoadKernels();
  std::string LaneOf(uint32_t ordinal, Lane** lane);
  std::string Order(Lane* before, const Lane& after);
  std::string Launch(CUfunction kernel, const ReplayBlock& block);
  std::string SetEnds(const ReplayBlock& block);

  ReplayApi api_;
  Driver driver_;
  Runtime runtime_;
  CUfunction fill_ = nullptr;  // null: no module could be loaded
  CUfunction check_ = nullptr;
  volatile uint32_t* count_ = nullptr;  // of mismatches, in host memory that the device writes
  CUdeviceptr device_count_ = 0;
  std::map<uint32_t, Lane> lanes_;
};

std::string CudaReplayDevice::Text(const char* call, CUresult result) const {
  if (result == CUDA_SUCCESS) return "";
  const char* text = nullptr;
  driver_.cuGetErrorString_(result, &text);
  return std::string(call) + ": " + (text != nullptr ? text : "error") + " (" + std::to_string(result) + ")";
}

std::string CudaReplayDevice::RuntimeText(const char* call, int result) const {
  if (result == 0) return "";
  const char* text = runtime_.error_string(result);
  return std::string(call) + ": " + (text != nullptr ? text : "error") + " (" + std::to_string(result) + ")";
}

// Makes the primary context current: by the runtime's first call, or explicitly.
absl::Status CudaReplayDevice::OpenContext() {
  auto check = [](const std::string& error) {
    return error.empty() ? absl::OkStatus() : absl::UnavailableError(error);
  };
  if (api_ != ReplayApi::kDriver) {
    if (absl::Status status = check(RuntimeText("cudaFree(0)", runtime_.free(nullptr))); !status.ok()) return status;
  }
  CUdevice device = 0;
  CUcontext context = nullptr;
  absl::Status status = check(Text("cuInit", driver_.cuInit_(0)));
  if (status.ok()) status = check(Text("cuDeviceGet", driver_.cuDeviceGet_(&device, 0)));
  if (status.ok())
    status = check(Text("cuDevicePrimaryCtxRetain", driver_.cuDevicePrimaryCtxRetain_(&context, device)));
  if (status.ok()) status = check(Text("cuCtxSetCurrent", driver_.cuCtxSetCurrent_(context)));
  return status;
}

void CudaReplayDevice::LoadKernels() {
  CUmodule module = nullptr;
  if (driver_.cuModuleLoadData_(&module, kReplayPtx) != CUDA_SUCCESS) return;
  CUfunction fill = nullptr, check = nullptr;
  if (driver_.cuModuleGetFunction_(&fill, module, "hotpack_replay_fill") != CUDA_SUCCESS) return;
  if (driver_.cuModuleGetFunction_(&check, module, "hotpack_replay_check") != CUDA_SUCCESS) return;
  void* host = nullptr;
  if (driver_.cuMemAllocHost_(&host, sizeof(uint32_t)) != CUDA_SUCCESS) return;
  if (driver_.cuMemHostGetDevicePointer_(&device_count_, host, 0) != CUDA_SUCCESS) return;
  count_ = static_cast<volatile uint32_t*>(host);
  *count_ = 0;
  fill_ = fill;
  check_ = check;
}

absl::Status CudaReplayDevice::Open(bool touch) {
  if (api_ != ReplayApi::kDriver) {
    if (absl::Status status = LoadRuntime(&runtime_); !status.ok()) return status;
  }
  if (absl::Status status = LoadDriver(&driver_); !status.ok()) return status;
  if (absl::Status status = OpenContext(); !status.ok()) return status;
  if (touch) LoadKernels();
  return absl::OkStatus();
}

// Returns the stream with this ordinal; creates it at its first use.
std::string CudaReplayDevice::LaneOf(uint32_t ordinal, Lane** lane) {
  auto [found, fresh] = lanes_.try_emplace(ordinal);
  *lane = &found->second;
  if (!fresh || ordinal == 0) return "";
  return Text("cuStreamCreate", driver_.cuStreamCreate_(&found->second.stream, CU_STREAM_NON_BLOCKING));
}

// Makes work submitted to `after` from now on wait for the work submitted to `before`.
std::string CudaReplayDevice::Order(Lane* before, const Lane& after) {
  if (before->event == nullptr) {
    std::string error = Text("cuEventCreate", driver_.cuEventCreate_(&before->event, CU_EVENT_DISABLE_TIMING));
    if (!error.empty()) return error;
  }
  std::string error = Text("cuEventRecord", driver_.cuEventRecord_(before->event, before->stream));
  if (!error.empty()) return error;
  return Text("cuStreamWaitEvent", driver_.cuStreamWaitEvent_(after.stream, before->event, 0));
}

std::string CudaReplayDevice::Allocate(uint64_t bytes, uint32_t stream, uint64_t* address) {
  void* pointer = nullptr;
  CUdeviceptr device_pointer = 0;
  Lane* lane = nullptr;
  std::string error;
  switch (api_) {
    case ReplayApi::kMalloc:
      error = RuntimeText("cudaMalloc", runtime_.malloc(&pointer, bytes));
      break;
    case ReplayApi::kAsync:
      error = LaneOf(stream, &lane);
      if (error.empty()) error = RuntimeText("cudaMallocAsync", runtime_.malloc_async(&pointer, bytes, lane->stream));
      break;
    case ReplayApi::kDriver:
      error = Text("cuMemAlloc", driver_.cuMemAlloc_(&device_pointer, bytes));
      pointer = reinterpret_cast<void*>(device_pointer);
      break;
  }
  *address = reinterpret_cast<uint64_t>(pointer);
  return error;
}

std::string CudaReplayDevice::Release(const ReplayBlock& block, uint32_t stream) {
  auto* pointer = reinterpret_cast<void*>(block.address);
  if (api_ == ReplayApi::kMalloc) return RuntimeText("cudaFree", runtime_.free(pointer));
  if (api_ == ReplayApi::kDriver) return Text("cuMemFree", driver_.cuMemFree_(block.address));
  Lane *own = nullptr, *lane = nullptr;
  std::string error = LaneOf(block.stream, &own);
  if (error.empty()) error = LaneOf(stream, &lane);
  if (error.empty() && own != lane) error = Order(own, *lane);
  if (!error.empty()) return error;
  return RuntimeText("cudaFreeAsync", runtime_.free_async(pointer, lane->stream));
}

std::string CudaReplayDevice::Launch(CUfunction kernel, const ReplayBlock& block) {
  Lane* lane = nullptr;
  if (std::string error = LaneOf(block.stream, &lane); !error.empty()) return error;
  uint64_t address = block.address, bytes = block.bytes, id = block.id;
  CUdeviceptr count = device_count_;
  void* parameters[] = {&address, &bytes, &id, &count};  // the fill kernel takes the first three
  return Text("cuLaunchKernel",
              driver_.cuLaunchKernel_(kernel, 1, 1, 1, 1, 1, 1, 0, lane->stream, parameters, nullptr));
}

std::string CudaReplayDevice::SetEnds(const ReplayBlock& block) {
  Lane* lane = nullptr;
  if (std::string error = LaneOf(block.stream, &lane); !error.empty()) return error;
  uint64_t ends = std::min<uint64_t>(block.bytes, 8);
  auto value = static_cast<unsigned char>(block.id);
  std::string error = Text("cuMemsetD8Async", driver_.cuMemsetD8Async_(block.address, value, ends, lane->stream));
  if (!error.empty()) return error;
  return Text("cuMemsetD8Async",
              driver_.cuMemsetD8Async_(block.address + block.bytes - ends, value, ends, lane->stream));
}

std::string CudaReplayDevice::Fill(const ReplayBlock& block) {
  return fill_ != nullptr ? Launch(fill_, block) : SetEnds(block);
}

std::string CudaReplayDevice::Check(const ReplayBlock& block) {
  return check_ != nullptr ? Launch(check_, block) : SetEnds(block);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ReplayDevice>> OpenCudaDevice(ReplayApi api, bool touch) {
  auto device = std::make_unique<CudaReplayDevice>(api);
  if (absl::Status status = device->Open(touch); !status.ok()) return status;
  return device;
}

ReplayHooks FindHooks(bool marks, bool wait) {
  ReplayHooks hooks;
  auto find = [](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(RTLD_DEFAULT, name));
  };
  if (marks) {
    find("hotpack_step", &hooks.step);
    find("hotpack_expect_steps", &hooks.expect);
    find("hotpack_interrupt", &hooks.interrupt);
    find("hotpack_resume", &hooks.resume);
  }
  if (wait) find("hotpack_wait_plan", &hooks.wait_plan);
  return hooks;
}

}  // namespace hotpack
