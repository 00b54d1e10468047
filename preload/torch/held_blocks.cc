#include "preload/torch/held_blocks.h"

#include "preload/torch/hotpack_torch.h"

namespace hotpack_torch {

void HeldBlocks::Hold(void* pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++blocks_[pointer].holds;
  count_.store(blocks_.size(), std::memory_order_release);
}

bool HeldBlocks::DeferHeld(void* pointer, const Release& release) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end()) return false;
  found->second.release = release;
  return true;
}

std::optional<HeldBlocks::Release> HeldBlocks::Drop(void* pointer) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(pointer);
  if (found == blocks_.end() || --found->second.holds > 0) return std::nullopt;
  const std::optional<Release> release = found->second.release;
  blocks_.erase(found);
  count_.store(blocks_.size(), std::memory_order_release);
  return release;
}

HeldBlocks& Held() {
  static auto* const held = new HeldBlocks;
  return *held;
}

}  // namespace hotpack_torch

extern "C" {

int hotpack_torch_hold(void* pointer) try {
  hotpack_torch::Held().Hold(pointer);
  return 0;
} catch (...) {
  return -1;
}

void hotpack_torch_drop(void* pointer) {
  const auto release = hotpack_torch::Held().Drop(pointer);
  if (!release) return;
  hotpack_torch_free(pointer, static_cast<ssize_t>(release->bytes), release->device, release->stream);
}

}  // extern "C"
