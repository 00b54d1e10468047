// Tensors in device memory, through cudart.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "bench/train/hotpack_calls.h"
#include "bench/train/stream_device.h"

namespace hotpack::train {
namespace {

void Check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

void CheckAllocation(cudaError_t error, const char* call, size_t bytes) {
  if (error != cudaSuccess) Check(error, (std::string(call) + " of " + std::to_string(bytes) + " bytes").c_str());
}

cudaStream_t Stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t Event(void* handle) { return static_cast<cudaEvent_t>(handle); }

class RuntimeApi : public DeviceApi {
 public:
  RuntimeApi() {
    int count = 0;
    Check(cudaGetDeviceCount(&count), "no CUDA device");
    if (count == 0) throw std::runtime_error("no CUDA device");
    Check(cudaFree(nullptr), "no CUDA context");  // hotpack_malloc needs the current one
  }

  void* Malloc(size_t bytes) override {
    void* pointer = nullptr;
    CheckAllocation(cudaMalloc(&pointer, bytes), "cudaMalloc", bytes);
    return pointer;
  }
  void Free(void* pointer) override { Check(cudaFree(pointer), "cudaFree"); }
  void* MallocAsync(size_t bytes, void* stream) override {
    void* pointer = nullptr;
    CheckAllocation(cudaMallocAsync(&pointer, bytes, Stream(stream)), "cudaMallocAsync", bytes);
    return pointer;
  }
  void FreeAsync(void* pointer, void* stream) override {
    Check(cudaFreeAsync(pointer, Stream(stream)), "cudaFreeAsync");
  }
  void* HotpackMalloc(size_t bytes, void* stream) override { return train::HotpackMalloc(bytes, stream); }
  void HotpackFree(void* pointer, void* stream) override { train::HotpackFree(pointer, stream); }
  void* HostAlloc(size_t bytes) override {
    void* pointer = nullptr;
    CheckAllocation(cudaHostAlloc(&pointer, bytes, cudaHostAllocDefault), "cudaHostAlloc", bytes);
    return pointer;
  }
  void HostFree(void* pointer) override { Check(cudaFreeHost(pointer), "cudaFreeHost"); }

  void* StreamCreate() override {
    cudaStream_t stream = nullptr;
    Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
  }
  void StreamDestroy(void* stream) override { Check(cudaStreamDestroy(Stream(stream)), "cudaStreamDestroy"); }
  void StreamSynchronize(void* stream) override {
    Check(cudaStreamSynchronize(Stream(stream)), "cudaStreamSynchronize");
  }
  void StreamWaitEvent(void* stream, void* event) override {
    Check(cudaStreamWaitEvent(Stream(stream), Event(event), 0), "cudaStreamWaitEvent");
  }
  void* EventCreate() override {
    cudaEvent_t event = nullptr;
    Check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreateWithFlags");
    return event;
  }
  void EventDestroy(void* event) override { Check(cudaEventDestroy(Event(event)), "cudaEventDestroy"); }
  void EventRecord(void* event, void* stream) override {
    Check(cudaEventRecord(Event(event), Stream(stream)), "cudaEventRecord");
  }
  void EventSynchronize(void* event) override { Check(cudaEventSynchronize(Event(event)), "cudaEventSynchronize"); }

  void CopyIn(void* device, const void* host, size_t bytes) override {
    Check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    Check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy from the device");
  }
  void CopyInAsync(void* device, const void* host, size_t bytes, void* stream) override {
    Check(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, Stream(stream)), "copy to the device");
  }
  void CopyOutAsync(void* host, const void* device, size_t bytes, void* stream) override {
    Check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, Stream(stream)), "copy from the device");
  }
  std::string AllocateName(bool async) const override { return async ? "cudaMallocAsync" : "cudaMalloc"; }
};

}  // namespace

std::unique_ptr<Device> MakeCudaDevice(const DeviceOptions& options) {
  return std::make_unique<StreamDevice>(std::make_unique<RuntimeApi>(), options);
}

}  // namespace hotpack::train
