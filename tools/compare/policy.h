// Interface between the player of a recording and an online policy, and the list of policies.
#pragma once

#include <cstdint>
#include <memory>

#include "tools/compare/model_device.h"

namespace hotpack {

// Requests are named by their ordinal in the recording, from 0. Not thread-safe.
class PeerPolicy {
 public:
  virtual ~PeerPolicy() = default;
  // Returns false if the device's memory does not suffice. `bytes` ≥ 1, unrounded; `stream` is its recorded ordinal.
  virtual bool Allocate(uint32_t request, uint64_t bytes, uint32_t stream) = 0;
  virtual void Release(uint32_t request) = 0;  // of a request that was allocated and not yet released
  // Returns the block's address in the policy's own address space, for tests. Valid while the block is live.
  virtual uint64_t AddressOf(uint32_t request) const = 0;
};

// Each is described in the file of its name. `device` must outlive it.
std::unique_ptr<PeerPolicy> MakeSingleAllocations(ModelDevice* device);
std::unique_ptr<PeerPolicy> MakeChainerPool(ModelDevice* device);
std::unique_ptr<PeerPolicy> MakePyTorch(ModelDevice* device);
std::unique_ptr<PeerPolicy> MakePyTorchExpandable(ModelDevice* device);
std::unique_ptr<PeerPolicy> MakeOneArena(ModelDevice* device, bool best_fit);  // else first fit

}  // namespace hotpack
