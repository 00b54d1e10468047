// What calls of operators take.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <memory>

namespace hotpack {

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The time of one call: the host's, or between two events of its stream where the device computes by itself.
class Duration {
 public:
  void Begin(c10::Device device) {
    if (device.is_cpu()) {
      seconds_ = Now();
    } else {
      events_ = std::make_shared<Events>(device);
      events_->begin.record(events_->stream);
    }
  }

  void End() {
    if (events_ == nullptr) {
      seconds_ = Now() - seconds_;
    } else {
      events_->end.record(events_->stream);
    }
  }

  // Waits for the end.
  double Seconds() const {
    if (events_ == nullptr) return seconds_;
    events_->end.synchronize();
    return events_->begin.elapsedTime(events_->end) * 1e-3;
  }

 private:
  struct Events {
    explicit Events(c10::Device device)
        : stream(c10::impl::VirtualGuardImpl(device.type()).getStream(device)),
          begin(device.type(), c10::EventFlag::BACKEND_DEFAULT),
          end(device.type(), c10::EventFlag::BACKEND_DEFAULT) {}
    c10::Stream stream;
    c10::Event begin, end;
  };

  double seconds_ = 0;
  std::shared_ptr<Events> events_;
};

inline c10::Device DeviceOf(const torch::jit::Stack& stack, size_t begin) {
  for (size_t i = begin; i < stack.size(); ++i) {
    if (stack[i].isTensor() && stack[i].toTensor().defined()) return stack[i].toTensor().device();
    if (stack[i].isTensorList() && !stack[i].toTensorVector().empty()) return stack[i].toTensorVector()[0].device();
  }
  return at::kCPU;
}

}  // namespace hotpack
