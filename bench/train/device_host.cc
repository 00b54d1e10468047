// Tensors in host memory. A machine without a GPU can check the kernels' arithmetic and the model's gradients with it.
#include <cstdlib>
#include <cstring>
#include <new>

#include "bench/train/device.h"

namespace hotpack::train {
namespace {

class HostDevice : public Device {
 public:
  void* Allocate(size_t bytes) override {
    void* pointer = std::malloc(bytes);
    if (pointer == nullptr) throw std::bad_alloc();
    std::memset(pointer, 0xff, bytes);  // NaN: a read before a write corrupts the result
    return pointer;
  }
  void Release(void* pointer) noexcept override { std::free(pointer); }
  void CopyIn(void* device, const void* host, size_t bytes) override { std::memcpy(device, host, bytes); }
  void CopyOut(void* host, const void* device, size_t bytes) override { std::memcpy(host, device, bytes); }
  std::string Name() const override { return "host"; }
};

}  // namespace

std::unique_ptr<Device> MakeHostDevice() { return std::make_unique<HostDevice>(); }

}  // namespace hotpack::train
