// Host devices that record how a training program uses its memory.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/train/device.h"

namespace hotpack::train {

// Counts what goes through a device; fails the test on a double release.
class CountingDevice : public Device {
 public:
  void* Allocate(size_t bytes) override {
    void* pointer = host_->Allocate(bytes);
    live_[pointer] = bytes;
    live_bytes_ += bytes;
    requests_.push_back(bytes);
    return pointer;
  }
  void Release(void* pointer) noexcept override {
    const auto found = live_.find(pointer);
    if (found == live_.end()) {
      ADD_FAILURE() << "released what was not live";
      return;
    }
    live_bytes_ -= found->second;
    live_.erase(found);
    host_->Release(pointer);
  }
  void CopyIn(void* device, const void* host, size_t bytes) override { host_->CopyIn(device, host, bytes); }
  void CopyOut(void* host, const void* device, size_t bytes) override { host_->CopyOut(host, device, bytes); }
  std::string Name() const override { return "counting"; }

  size_t LiveBytes() const { return live_bytes_; }
  std::vector<size_t> TakeRequests() { return std::exchange(requests_, {}); }

 private:
  std::unique_ptr<Device> host_ = MakeHostDevice();
  std::map<void*, size_t> live_;
  size_t live_bytes_ = 0;
  std::vector<size_t> requests_;
};

// A copy stream as slow as it may be: copies are done when compute work first waits for them, and not before. Inputs
// that are read without waiting are NaN; a copy whose memory was released before it was done fails the test.
class SlowCopyDevice : public CountingDevice {
 public:
  void Release(void* pointer) noexcept override {
    for (const Copy& copy : started_) EXPECT_NE(copy.device, pointer) << "released while it is being filled";
    CountingDevice::Release(pointer);
  }
  void StartCopyIn(void* device, const void* host, size_t bytes) override {
    const auto* values = static_cast<const unsigned char*>(host);
    started_.push_back({device, std::vector<unsigned char>(values, values + bytes)});
  }
  void WaitForCopies() override {
    for (const Copy& copy : started_) std::memcpy(copy.device, copy.values.data(), copy.values.size());
    started_.clear();
  }

 private:
  struct Copy {
    void* device;
    std::vector<unsigned char> values;
  };
  std::vector<Copy> started_;
};

}  // namespace hotpack::train
