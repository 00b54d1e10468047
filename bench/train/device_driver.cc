// Tensors in device memory, through the driver alone.
#include <stdexcept>
#include <string>

#include "bench/train/driver.h"
#include "bench/train/hotpack_calls.h"
#include "bench/train/stream_device.h"

namespace hotpack::train {
namespace {

CUstream Stream(void* handle) { return static_cast<CUstream>(handle); }
CUevent Event(void* handle) { return static_cast<CUevent>(handle); }
CUdeviceptr Address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

// Checks a call that allocates. Its error names the size.
void CheckAllocation(CUresult result, const char* call, size_t bytes) {
  if (result != CUDA_SUCCESS)
    CheckDriver(result, (std::string(call) + " of " + std::to_string(bytes) + " bytes").c_str());
}

// Uses the first device's primary context, as cudart does.
class DriverApi : public DeviceApi {
 public:
  DriverApi() : driver_(GetDriver()) {
    CheckDriver(driver_.cuInit_call(0), "no CUDA device");
    int count = 0;
    CheckDriver(driver_.cuDeviceGetCount_call(&count), "no CUDA device");
    if (count == 0) throw std::runtime_error("no CUDA device");
    CheckDriver(driver_.cuDeviceGet_call(&device_, 0), "cuDeviceGet");
    CUcontext context = nullptr;
    CheckDriver(driver_.cuDevicePrimaryCtxRetain_call(&context, device_), "cuDevicePrimaryCtxRetain");
    CheckDriver(driver_.cuCtxSetCurrent_call(context), "cuCtxSetCurrent");
  }
  ~DriverApi() override {
    driver_.cuCtxSetCurrent_call(nullptr);
    driver_.cuDevicePrimaryCtxRelease_call(device_);
  }
  DriverApi(const DriverApi&) = delete;
  DriverApi& operator=(const DriverApi&) = delete;

  void* Malloc(size_t bytes) override {
    CUdeviceptr address = 0;
    CheckAllocation(driver_.cuMemAlloc_call(&address, bytes), "cuMemAlloc", bytes);
    return reinterpret_cast<void*>(address);
  }
  void Free(void* pointer) override { CheckDriver(driver_.cuMemFree_call(Address(pointer)), "cuMemFree"); }
  void* MallocAsync(size_t bytes, void* stream) override {
    CUdeviceptr address = 0;
    CheckAllocation(driver_.cuMemAllocAsync_call(&address, bytes, Stream(stream)), "cuMemAllocAsync", bytes);
    return reinterpret_cast<void*>(address);
  }
  void FreeAsync(void* pointer, void* stream) override {
    CheckDriver(driver_.cuMemFreeAsync_call(Address(pointer), Stream(stream)), "cuMemFreeAsync");
  }
  void* HotpackMalloc(size_t bytes, void* stream) override { return train::HotpackMalloc(bytes, stream); }
  void HotpackFree(void* pointer, void* stream) override { train::HotpackFree(pointer, stream); }
  void* HostAlloc(size_t bytes) override {
    void* pointer = nullptr;
    CheckAllocation(driver_.cuMemHostAlloc_call(&pointer, bytes, 0), "cuMemHostAlloc", bytes);
    return pointer;
  }
  void HostFree(void* pointer) override { CheckDriver(driver_.cuMemFreeHost_call(pointer), "cuMemFreeHost"); }

  void* StreamCreate() override {
    CUstream stream = nullptr;
    CheckDriver(driver_.cuStreamCreate_call(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return stream;
  }
  void StreamDestroy(void* stream) override {
    CheckDriver(driver_.cuStreamDestroy_call(Stream(stream)), "cuStreamDestroy");
  }
  void StreamSynchronize(void* stream) override {
    CheckDriver(driver_.cuStreamSynchronize_call(Stream(stream)), "cuStreamSynchronize");
  }
  void StreamWaitEvent(void* stream, void* event) override {
    CheckDriver(driver_.cuStreamWaitEvent_call(Stream(stream), Event(event), 0), "cuStreamWaitEvent");
  }
  void* EventCreate() override {
    CUevent event = nullptr;
    CheckDriver(driver_.cuEventCreate_call(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return event;
  }
  void EventDestroy(void* event) override { CheckDriver(driver_.cuEventDestroy_call(Event(event)), "cuEventDestroy"); }
  void EventRecord(void* event, void* stream) override {
    CheckDriver(driver_.cuEventRecord_call(Event(event), Stream(stream)), "cuEventRecord");
  }
  void EventSynchronize(void* event) override {
    CheckDriver(driver_.cuEventSynchronize_call(Event(event)), "cuEventSynchronize");
  }

  void CopyIn(void* device, const void* host, size_t bytes) override {
    CheckDriver(driver_.cuMemcpyHtoD_call(Address(device), host, bytes), "copy to the device");
  }
  void CopyOut(void* host, const void* device, size_t bytes) override {
    CheckDriver(driver_.cuMemcpyDtoH_call(host, Address(device), bytes), "copy from the device");
  }
  void CopyInAsync(void* device, const void* host, size_t bytes, void* stream) override {
    CheckDriver(driver_.cuMemcpyHtoDAsync_call(Address(device), host, bytes, Stream(stream)), "copy to the device");
  }
  void CopyOutAsync(void* host, const void* device, size_t bytes, void* stream) override {
    CheckDriver(driver_.cuMemcpyDtoHAsync_call(host, Address(device), bytes, Stream(stream)), "copy from the device");
  }
  std::string AllocateName(bool async) const override { return async ? "cuMemAllocAsync" : "cuMemAlloc"; }

 private:
  const Driver& driver_;
  CUdevice device_ = 0;
};

}  // namespace

std::unique_ptr<Device> MakeCudaDevice(const DeviceOptions& options) {
  return std::make_unique<StreamDevice>(std::make_unique<DriverApi>(), options);
}

}  // namespace hotpack::train
