#include "tests/gpu/probe.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/gpu/driver.h"

namespace hotpack::gpu {
namespace {

bool HotpackServes() {
  const char* setting = getenv("HOTPACK");
  const bool off = setting != nullptr && strcmp(setting, "0") == 0;
  return !off && dlsym(RTLD_DEFAULT, "hotpack_get_stats") != nullptr;
}

bool Computes(const Kernels& kernels) {
  void* word = nullptr;
  uint32_t back = 0;
  HOTPACK_NEED(cudaMalloc(&word, sizeof back));
  HOTPACK_NEED(cudaMemset(word, 0, sizeof back));
  HOTPACK_NEED(kernels.keep_writing(static_cast<uint32_t*>(word), 1, 0x600d, 0, nullptr));
  HOTPACK_NEED(cudaMemcpy(&back, word, sizeof back, cudaMemcpyDeviceToHost));
  HOTPACK_NEED(cudaFree(word));
  return back == 0x600d;
}

}  // namespace

std::string Probe::Prepare() {
  hotpack = HotpackServes();
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess || devices == 0) return "no CUDA device: " + ErrorName(error);
  simulated = DriverSymbol("simgpuReports") != nullptr;
  HOTPACK_NEED(cudaSetDevice(0));
  HOTPACK_NEED(cudaFree(nullptr));  // makes the context
  WarmUp(LegacyKernels(), nullptr);
  computes = Computes(LegacyKernels());
  if (!Has(cudaDevAttrMemoryPoolsSupported)) return "the device has no memory pools";
  if (!computes && !simulated) return "the device does not run kernels";
  return "";
}

bool Probe::Has(cudaDeviceAttr attribute) {
  int value = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&value, attribute, 0);
  cudaGetLastError();
  return error == cudaSuccess && value != 0;
}

void Probe::WarmUp(const Kernels& kernels, cudaStream_t stream) {
  HOTPACK_NEED(kernels.spin(0, stream));
  HOTPACK_NEED(kernels.keep_writing(nullptr, 0, 0, 0, stream));
  HOTPACK_NEED(kernels.watch(nullptr, 0, 0, 0, nullptr, stream));
  HOTPACK_NEED(cudaDeviceSynchronize());
}

hotpack_stats Probe::Stats() const {
  hotpack_stats stats = {};
  using GetStats = int (*)(hotpack_stats*, size_t);
  const auto get = reinterpret_cast<GetStats>(dlsym(RTLD_DEFAULT, "hotpack_get_stats"));
  if (get == nullptr || get(&stats, sizeof stats) != 0) return {};
  return stats;
}

std::string ErrorName(cudaError_t error) {
  const char* name = cudaGetErrorName(error);
  return (name != nullptr ? std::string(name) : "error") + " (" + std::to_string(static_cast<int>(error)) + ")";
}

void Need(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  throw CallFailed(std::string(what) + " gave " + ErrorName(error));
}

std::string Hex(uint64_t value) {
  char text[32];
  snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

cudaError_t Allocate(Way way, size_t bytes, cudaStream_t stream, void** pointer) {
  return way == Way::kMalloc ? cudaMalloc(pointer, bytes) : cudaMallocAsync(pointer, bytes, stream);
}

cudaError_t Release(Way way, void* pointer, cudaStream_t stream) {
  return way == Way::kMalloc ? cudaFree(pointer) : cudaFreeAsync(pointer, stream);
}

size_t CountOther(const void* device, size_t bytes, unsigned char value) {
  std::vector<unsigned char> host(bytes, static_cast<unsigned char>(~value));
  HOTPACK_NEED(cudaMemcpy(host.data(), device, bytes, cudaMemcpyDeviceToHost));
  return bytes - static_cast<size_t>(std::count(host.begin(), host.end(), value));
}

}  // namespace hotpack::gpu
