#include "runtime/memory/guards.h"

#include <algorithm>
#include <cstdio>

#include "profiler/history.h"

namespace hotpack {
namespace {

uint64_t RoundedUp(uint64_t bytes) { return (bytes + kBlockUnit - 1) / kBlockUnit * kBlockUnit; }

}  // namespace

Guards::Guards(DeviceMemory* memory, const GuardOptions& options, LogLine log)
    : memory_(memory), options_(options), log_(log) {}

// Returns the guarded bytes behind the block: up to the end of its last 512 bytes, and the gap.
uint64_t Guards::Tail(const Block& block) const { return RoundedUp(block.bytes) - block.bytes + options_.gap_bytes; }

// Waits for earlier work on the memory: the release that ended it only ordered later work.
bool Guards::Fill(DeviceAddress address, const Block& block) {
  if (options_.gap_bytes == 0 || !memory_->Synchronize()) return false;
  return memory_->Fill(address - options_.gap_bytes, options_.gap_bytes, kGuardByte) == MemoryStatus::kOk &&
         memory_->Fill(address + block.bytes, Tail(block), kGuardByte) == MemoryStatus::kOk;
}

DeviceAddress Guards::Given(DeviceAddress outer, uint64_t bytes, const GuardedRequest& request) {
  const DeviceAddress address = outer + options_.gap_bytes;
  Block block{bytes, request, 0, false};
  block.guarded = Fill(address, block);
  std::lock_guard lock(mutex_);
  block.serial = next_serial_++;
  blocks_[address] = block;
  live_bytes_ += RoundedUp(bytes);
  live_peak_ = std::max(live_peak_, live_bytes_);
  return address;
}

bool Guards::Returned(DeviceAddress address, DeviceAddress* outer) {
  Block block;
  {
    std::lock_guard lock(mutex_);
    auto it = blocks_.find(address);
    if (it == blocks_.end()) return false;
    block = it->second;
    blocks_.erase(it);
    live_bytes_ -= RoundedUp(block.bytes);
  }
  *outer = address - options_.gap_bytes;
  if (!memory_->Synchronize()) return true;  // a stream is capturing, or the driver is gone
  if (block.guarded) Report(address, block, Check(address, block));
  if (options_.poison) memory_->Fill(address, block.bytes, kPoisonByte);
  return true;
}

// Checks [from, from + bytes), in ascending order, for the first byte that differs from the fill, or the last one.
bool Guards::Look(DeviceAddress from, uint64_t bytes, DeviceAddress block, BadByte* bad, bool last) {
  constexpr uint64_t kPiece = uint64_t{1} << 16;
  std::vector<uint8_t> copy(std::min(bytes, kPiece));
  for (uint64_t done = 0; done < bytes && (last || !bad->found); done += kPiece) {
    const uint64_t piece = std::min(kPiece, bytes - done);
    if (memory_->Read(from + done, piece, copy.data()) != MemoryStatus::kOk) return false;
    for (uint64_t i = 0; i < piece && (last || !bad->found); ++i) {
      if (copy[i] != kGuardByte) *bad = {true, static_cast<int64_t>(from + done + i - block), copy[i]};
    }
  }
  return true;
}

// Reports the bad byte nearest to the block, which is the most informative: the last before it, the first after it.
Guards::Finding Guards::Check(DeviceAddress address, const Block& block) {
  Finding finding;
  const bool looked = Look(address - options_.gap_bytes, options_.gap_bytes, address, &finding.before, /*last=*/true) &&
                      Look(address + block.bytes, Tail(block), address, &finding.after, /*last=*/false);
  return looked ? finding : Finding{};
}

// Holds no lock while the driver copies. A block's gaps as read count only if the same block is live afterwards.
uint64_t Guards::CheckLive() {
  std::map<DeviceAddress, Block> live;
  {
    std::lock_guard lock(mutex_);
    live = blocks_;
  }
  const bool idle = memory_->Synchronize();
  for (const auto& [address, block] : live) {
    if (!idle || !block.guarded) continue;
    const Finding finding = Check(address, block);
    if (!finding.any()) continue;
    {
      std::lock_guard lock(mutex_);
      auto it = blocks_.find(address);
      if (it == blocks_.end() || it->second.serial != block.serial || !it->second.guarded) continue;
      it->second.guarded = false;
    }
    Report(address, block, finding);
  }
  return bad_writes();
}

void Guards::Report(DeviceAddress address, const Block& block, const Finding& finding) {
  if (finding.before.found) ReportOne(address, block, finding.before, /*before=*/true);
  if (finding.after.found) ReportOne(address, block, finding.after, /*before=*/false);
}

void Guards::ReportOne(DeviceAddress address, const Block& block, const BadByte& bad, bool before) {
  uint64_t count = 0;
  {
    std::lock_guard lock(mutex_);
    count = ++bad_writes_;
  }
  if (log_ == nullptr || count > kMaxReports) return;
  char request[64] = "a request outside the monitored ones";
  const GuardedRequest& name = block.request;
  const auto ordinal = static_cast<unsigned long long>(name.ordinal);
  if (name.ordinal != UINT64_MAX && name.has_iteration) {
    snprintf(request, sizeof(request), "request %llu (%llu of the iteration)", ordinal,
             static_cast<unsigned long long>(name.in_iteration));
  } else if (name.ordinal != UINT64_MAX) {
    snprintf(request, sizeof(request), "request %llu", ordinal);
  }
  const uint64_t distance =
      before ? static_cast<uint64_t>(-bad.offset) : static_cast<uint64_t>(bad.offset) - block.bytes;
  char line[320];
  snprintf(line, sizeof(line),
           "out of bounds: block 0x%llx of %llu bytes, %s: byte %llu %s was written, 0x%02x there%s",
           static_cast<unsigned long long>(address), static_cast<unsigned long long>(block.bytes), request,
           static_cast<unsigned long long>(distance), before ? "before its start" : "after its end", bad.value,
           count == kMaxReports ? "; further ones are not reported" : "");
  log_(line);
}

bool Guards::Find(DeviceAddress address, DeviceAddress* base, uint64_t* bytes) {
  std::lock_guard lock(mutex_);
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return false;
  --it;
  if (address - it->first >= RoundedUp(it->second.bytes)) return false;
  *base = it->first;
  *bytes = RoundedUp(it->second.bytes);
  return true;
}

uint64_t Guards::live_peak() {
  std::lock_guard lock(mutex_);
  return live_peak_;
}

uint64_t Guards::bad_writes() {
  std::lock_guard lock(mutex_);
  return bad_writes_;
}

}  // namespace hotpack
