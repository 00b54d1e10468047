// A tensor: an array in device memory, allocated when it is made and released when its owner is destroyed or resets it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/train/device.h"

namespace hotpack::train {

template <typename T>
class Array {
 public:
  Array() = default;
  Array(Device& device, int64_t count)
      : device_(&device),
        data_(static_cast<T*>(device.Allocate(static_cast<size_t>(count) * sizeof(T)))),
        count_(count) {}
  Array(Device& device, const std::vector<T>& values) : Array(device, static_cast<int64_t>(values.size())) {
    device.CopyIn(data_, values.data(), values.size() * sizeof(T));
  }
  // Makes an array that the copy stream fills. Compute work may read it after device.WaitForCopies(). `values` may be
  // destroyed on return.
  static Array StartCopy(Device& device, const std::vector<T>& values) {
    Array array;
    const size_t bytes = values.size() * sizeof(T);
    array.device_ = &device;
    array.data_ = static_cast<T*>(device.AllocateForCopy(bytes));
    array.count_ = static_cast<int64_t>(values.size());
    device.StartCopyIn(array.data_, values.data(), bytes);
    return array;
  }
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(Array&& other) noexcept {
    if (this != &other) {
      Reset();
      device_ = std::exchange(other.device_, nullptr);
      data_ = std::exchange(other.data_, nullptr);
      count_ = std::exchange(other.count_, 0);
    }
    return *this;
  }
  ~Array() { Reset(); }

  // Releases the memory now: called at a tensor's last use.
  void Reset() noexcept {
    if (data_ != nullptr) device_->Release(data_);
    data_ = nullptr;
    count_ = 0;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  int64_t count() const { return count_; }
  bool empty() const { return data_ == nullptr; }

  std::vector<T> ToHost() const {
    std::vector<T> values(static_cast<size_t>(count_));
    if (count_ > 0) device_->CopyOut(values.data(), data_, values.size() * sizeof(T));
    return values;
  }

 private:
  Device* device_ = nullptr;
  T* data_ = nullptr;
  int64_t count_ = 0;
};

using Tensor = Array<float>;
using Labels = Array<int32_t>;

}  // namespace hotpack::train
