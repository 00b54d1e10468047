// A device with hardly any memory left: requests are refused with the documented error, and what there is keeps its
// values and can be used again. No managed memory is used.
#include <algorithm>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kLeast = 32 * kMiB;  // smaller blocks do not fill up the rest: kernels and libraries need some
constexpr size_t kEdge = 4 * kKiB;

struct Block {
  char* pointer = nullptr;
  size_t bytes = 0;
  unsigned char value = 0;
};

class Device {
 public:
  // Requests blocks until none of kLeast bytes is given any more. Returns the error of the last request.
  cudaError_t Fill() {
    size_t free = 0, total = 0;
    HOTPACK_NEED(cudaMemGetInfo(&free, &total));
    largest_ = std::max(total / 64 / kLeast * kLeast, kLeast);
    cudaError_t error = cudaSuccess;
    for (size_t bytes = largest_; bytes >= kLeast;) {
      error = Add(bytes);
      if (error != cudaSuccess) bytes /= 2;
    }
    return error;
  }

  cudaError_t Add(size_t bytes) {
    void* pointer = nullptr;
    const cudaError_t error = cudaMalloc(&pointer, bytes);
    cudaGetLastError();
    if (error != cudaSuccess) return error;
    const Block block = {static_cast<char*>(pointer), bytes, static_cast<unsigned char>(1 + blocks_.size() % 251)};
    HOTPACK_NEED(cudaMemsetAsync(block.pointer, block.value, kEdge, nullptr));
    HOTPACK_NEED(cudaMemsetAsync(block.pointer + bytes - kEdge, block.value, kEdge, nullptr));
    blocks_.push_back(block);
    return cudaSuccess;
  }

  // Gives back the oldest block, one of the largest.
  size_t RemoveOne() {
    const Block block = blocks_.front();
    blocks_.erase(blocks_.begin());
    HOTPACK_NEED(cudaFree(block.pointer));
    return block.bytes;
  }

  void RemoveAll() {
    for (const Block& block : blocks_) HOTPACK_NEED(cudaFree(block.pointer));
    blocks_.clear();
  }

  size_t CountWrong() const {
    size_t wrong = 0;
    for (const Block& block : blocks_) {
      wrong += CountOther(block.pointer, kEdge, block.value);
      wrong += CountOther(block.pointer + block.bytes - kEdge, kEdge, block.value);
    }
    return wrong;
  }

  size_t held() const {
    size_t bytes = 0;
    for (const Block& block : blocks_) bytes += block.bytes;
    return bytes;
  }
  size_t largest() const { return largest_; }
  size_t count() const { return blocks_.size(); }

 private:
  std::vector<Block> blocks_;
  size_t largest_ = 0;
};

void CheckRefusals(const Probe& probe, size_t bytes) {
  for (const Way way : {Way::kMalloc, Way::kAsync}) {
    void* pointer = nullptr;
    const cudaError_t error = Allocate(way, bytes, nullptr, &pointer);
    cudaGetLastError();
    if (error == cudaSuccess) HOTPACK_NEED(Release(way, pointer, nullptr));
    probe.Must(error == cudaErrorMemoryAllocation, std::string("nearly_full.refused.") + WayName(way),
               "cudaErrorMemoryAllocation (2)", ErrorName(error));
  }
}

}  // namespace

void RunNearlyFull(Probe& probe) {
  size_t free = 0, total = 0;
  HOTPACK_NEED(cudaMemGetInfo(&free, &total));
  Device device;
  const Stopwatch watch;
  const cudaError_t error = device.Fill();
  if (!probe.simulated) probe.found->AddFigure("nearly_full.filling", "ns", {watch.Nanoseconds()});
  const double share = static_cast<double>(device.held()) / static_cast<double>(free);
  probe.found->AddFigure("nearly_full.share", "share", {share});
  probe.Must(error == cudaErrorMemoryAllocation && share >= 0.9, "nearly_full.filled",
             "nine tenths of the free memory or more, then cudaErrorMemoryAllocation (2)",
             std::to_string(device.held() / kMiB) + " MiB of " + std::to_string(free / kMiB) + " in " +
                 std::to_string(device.count()) + " blocks, then " + ErrorName(error));
  CheckRefusals(probe, 2 * device.largest());
  const cudaError_t launched = LegacyKernels().spin(1000, nullptr);
  const cudaError_t ended = cudaDeviceSynchronize();
  probe.Must(launched == cudaSuccess && ended == cudaSuccess, "nearly_full.kernel", "a kernel runs",
             ErrorName(launched) + ", " + ErrorName(ended));
  const size_t wrong = device.CountWrong();
  probe.Must(wrong == 0, "nearly_full.values", "both ends of every block keep their values",
             std::to_string(wrong) + " bytes wrong");
  size_t again = 0;
  constexpr int kTimes = 4;
  for (int i = 0; i < kTimes && device.count() > 0; ++i) again += device.Add(device.RemoveOne()) == cudaSuccess;
  probe.Must(again == kTimes, "nearly_full.again", "the memory of a released block is given again, four times",
             std::to_string(again) + " times");
  const size_t wrong_again = device.CountWrong();
  probe.Must(wrong_again == 0, "nearly_full.values_again", "every block keeps its values",
             std::to_string(wrong_again) + " bytes wrong");
  if (probe.hotpack) {
    probe.found->Check(probe.Stats().managed_peak == 0, "nearly_full.managed", "no block lies in managed memory",
                       std::to_string(probe.Stats().managed_peak) + " bytes");
  }
  device.RemoveAll();
  HOTPACK_NEED(cudaDeviceSynchronize());
}

}  // namespace hotpack::gpu
