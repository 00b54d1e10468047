// What growth costs: 16 GiB requested in blocks of one size, of which each must be mapped first. One size a process, so
// that nothing is idle from the size before.
#include <algorithm>

#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kGiB = 1024 * kMiB;
constexpr size_t kEdge = 4 * kKiB;  // bytes written at each end of a block

unsigned char ValueOf(size_t block) { return static_cast<unsigned char>(1 + block % 251); }

// Returns how much to request: 16 GiB, but at most half of what is free.
size_t Total(const Probe& probe, size_t block) {
  size_t free = 0, total = 0;
  HOTPACK_NEED(cudaMemGetInfo(&free, &total));
  const size_t wanted = probe.simulated ? 2 * kGiB : 16 * kGiB;
  return std::min(wanted, free / 2) / block * block;
}

void Mark(void* pointer, size_t bytes, unsigned char value) {
  HOTPACK_NEED(cudaMemsetAsync(pointer, value, kEdge, nullptr));
  HOTPACK_NEED(cudaMemsetAsync(static_cast<char*>(pointer) + bytes - kEdge, value, kEdge, nullptr));
}

size_t CountWrong(const void* pointer, size_t bytes, unsigned char value) {
  return CountOther(pointer, kEdge, value) +
         CountOther(static_cast<const char*>(pointer) + bytes - kEdge, kEdge, value);
}

// The driver's own cost of mapping `total` bytes in handles of `block` bytes, with access set once.
void MapByDriver(const Probe& probe, const std::string& name, size_t block, size_t total) {
  const Driver driver;
  if (!driver.Missing().empty()) {
    probe.found->Skip(name + ".mapping", "the driver has no " + driver.Missing());
    return;
  }
  const CUmemAllocationProp prop = DeviceMemory();
  const CUmemAccessDesc access = DeviceAccess();
  CUdeviceptr base = 0;
  HOTPACK_NEED_DRIVER(driver.cuMemAddressReserve(&base, total, 0, 0, 0));
  std::vector<CUmemGenericAllocationHandle> handles(total / block);
  const Stopwatch watch;
  for (size_t i = 0; i < handles.size(); ++i) {
    HOTPACK_NEED_DRIVER(driver.cuMemCreate(&handles[i], block, &prop, 0));
    HOTPACK_NEED_DRIVER(driver.cuMemMap(base + i * block, block, 0, handles[i], 0));
  }
  HOTPACK_NEED_DRIVER(driver.cuMemSetAccess(base, total, &access, 1));
  const double mapped = watch.Nanoseconds();
  for (size_t i = 0; i < handles.size(); ++i) {
    HOTPACK_NEED_DRIVER(driver.cuMemUnmap(base + i * block, block));
    HOTPACK_NEED_DRIVER(driver.cuMemRelease(handles[i]));
  }
  HOTPACK_NEED_DRIVER(driver.cuMemAddressFree(base, total));
  if (!probe.simulated) {
    const double per_gib = mapped * static_cast<double>(kGiB) / static_cast<double>(total);
    probe.found->AddFigure(name + ".mapping", "ns a GiB", {per_gib});
  }
}

void CheckHeld(const Probe& probe, const std::string& name, size_t total) {
  const uint64_t held = probe.Stats().reserved_peak;
  probe.found->AddFigure(name + ".held", "bytes", {static_cast<double>(held)});
  // A plain arena takes most of the device at once.
  const size_t margin = std::max(total / 200, 64 * kMiB);
  probe.found->Check(held <= total + margin, name + ".memory", "at most 0.5 % or 64 MiB more than requested is held",
                     std::to_string(held) + " bytes for " + std::to_string(total));
}

void Grow(const Probe& probe, size_t mebibytes) {
  const std::string name = "growth_" + std::to_string(mebibytes);
  const size_t block = mebibytes * kMiB, total = Total(probe, block);
  if (total < kGiB / 2) {
    probe.found->Skip(name, "less than 1 GiB of the device is free");
    return;
  }
  if (!probe.hotpack) MapByDriver(probe, name, block, total);
  std::vector<void*> blocks(total / block);
  std::vector<double> each, whole;
  size_t wrong = 0;
  for (int round = 0; round < 2; ++round) {  // the second time hotpack has the memory already
    const Stopwatch watch;
    for (void*& pointer : blocks) {
      const Stopwatch request;
      HOTPACK_NEED(cudaMalloc(&pointer, block));
      if (round == 0) each.push_back(request.Nanoseconds());
    }
    const double requested = watch.Nanoseconds();
    for (size_t i = 0; i < blocks.size(); ++i) Mark(blocks[i], block, ValueOf(i));
    for (size_t i = 0; i < blocks.size(); ++i) wrong += CountWrong(blocks[i], block, ValueOf(i));
    const Stopwatch releasing;
    for (void* pointer : blocks) HOTPACK_NEED(cudaFree(pointer));
    if (probe.simulated) continue;
    probe.found->AddFigure(name + (round == 0 ? ".first" : ".again"), "ns", {requested});
    probe.found->AddFigure(name + (round == 0 ? ".release" : ".release_again"), "ns", {releasing.Nanoseconds()});
  }
  probe.found->AddFigure(name + ".total", "bytes", {static_cast<double>(total)});
  if (!probe.simulated) probe.found->AddFigure(name + ".request", "ns", each);
  probe.Must(wrong == 0, name + ".values", "both ends of every block keep their values",
             std::to_string(wrong) + " bytes wrong in " + std::to_string(blocks.size()) + " blocks");
  if (probe.hotpack) CheckHeld(probe, name, total);
}

}  // namespace

void RunGrowth2(Probe& probe) { Grow(probe, 2); }
void RunGrowth20(Probe& probe) { Grow(probe, 20); }
void RunGrowth64(Probe& probe) { Grow(probe, 64); }

}  // namespace hotpack::gpu
