// Tensors in device memory, through cudart.
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

#include "bench/train/device.h"

namespace hotpack::train {
namespace {

void Check(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) throw std::runtime_error(what + ": " + cudaGetErrorString(error));
}

class CudaDevice : public Device {
 public:
  explicit CudaDevice(AllocatorKind kind) : kind_(kind) {
    int count = 0;
    Check(cudaGetDeviceCount(&count), "no CUDA device");
    if (count == 0) throw std::runtime_error("no CUDA device");
  }

  void* Allocate(size_t bytes) override {
    ThrowIfReleaseFailed();
    void* pointer = nullptr;
    if (kind_ == AllocatorKind::kMalloc) {
      Check(cudaMalloc(&pointer, bytes), "cudaMalloc of " + std::to_string(bytes) + " bytes");
    } else {
      Check(cudaMallocAsync(&pointer, bytes, nullptr), "cudaMallocAsync of " + std::to_string(bytes) + " bytes");
    }
    return pointer;
  }

  void Release(void* pointer) noexcept override {
    const cudaError_t error = kind_ == AllocatorKind::kMalloc ? cudaFree(pointer) : cudaFreeAsync(pointer, nullptr);
    if (release_error_ == cudaSuccess) release_error_ = error;
  }

  void CopyIn(void* device, const void* host, size_t bytes) override {
    ThrowIfReleaseFailed();
    Check(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "copy to the device");
  }

  void CopyOut(void* host, const void* device, size_t bytes) override {
    ThrowIfReleaseFailed();
    Check(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "copy from the device");
  }

  std::string Name() const override { return kind_ == AllocatorKind::kMalloc ? "cudaMalloc" : "cudaMallocAsync"; }

 private:
  void ThrowIfReleaseFailed() {
    Check(release_error_, kind_ == AllocatorKind::kMalloc ? "cudaFree" : "cudaFreeAsync");
  }

  AllocatorKind kind_;
  cudaError_t release_error_ = cudaSuccess;
};

}  // namespace

std::unique_ptr<Device> MakeCudaDevice(AllocatorKind kind) { return std::make_unique<CudaDevice>(kind); }

}  // namespace hotpack::train
