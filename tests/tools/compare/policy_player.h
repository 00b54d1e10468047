// Plays requests on a policy by hand.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/compare/policy.h"

namespace hotpack::testing {

inline constexpr uint64_t kKiB = 1024, kMiB = 1024 * kKiB;

class PolicyPlayer {
 public:
  using Maker = std::unique_ptr<PeerPolicy> (*)(ModelDevice*);
  explicit PolicyPlayer(Maker make, uint64_t capacity = 0) : device_(capacity), policy_(make(&device_)) {}

  // The request's name; none if the device had not enough.
  static constexpr uint32_t kFailed = UINT32_MAX;
  uint32_t Ask(uint64_t bytes, uint32_t stream = 0) {
    return policy_->Allocate(requests_, bytes, stream) ? requests_++ : kFailed;
  }
  void Give(uint32_t request) { policy_->Release(request); }
  uint64_t At(uint32_t request) const { return policy_->AddressOf(request); }
  double HeldMiB() const { return static_cast<double>(device_.held()) / static_cast<double>(kMiB); }
  const ModelDevice& device() const { return device_; }

 private:
  ModelDevice device_;
  std::unique_ptr<PeerPolicy> policy_;
  uint32_t requests_ = 0;
};

}  // namespace hotpack::testing
