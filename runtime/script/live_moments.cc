#include "runtime/script/live_moments.h"

#include <algorithm>
#include <cstdint>

namespace hotpack {

void LiveMoments::Reserve(uint32_t entry) {
  if (entry < conflicts_.size()) return;
  conflicts_.resize(entry + 1);
  overlaps_.resize(entry + 1, 0);
  live_count_.resize(entry + 1, 0);
}

bool LiveMoments::Conflict(uint32_t a, uint32_t b) const {
  return a < conflicts_.size() && b / 64 < conflicts_[a].size() && (conflicts_[a][b / 64] >> (b % 64) & 1) != 0;
}

bool LiveMoments::SetConflict(uint32_t a, uint32_t b) {
  if (Conflict(a, b)) return false;
  const auto set = [this](uint32_t row, uint32_t column) {
    std::vector<uint64_t>& bits = conflicts_[row];
    if (bits.size() <= column / 64) bits.resize(column / 64 + 1, 0);
    bits[column / 64] |= uint64_t{1} << (column % 64);
  };
  set(a, b);
  set(b, a);
  return true;
}

bool LiveMoments::Born(uint32_t entry) {
  Reserve(entry);
  bool fresh = SetConflict(entry, entry);  // the bit says that some moment has it
  for (const uint32_t other : live_) fresh = SetConflict(entry, other) || fresh;
  if (live_count_[entry]++ == 0) {
    live_.push_back(entry);
  } else {
    overlaps_[entry] = 1;
  }
  fresh_ = fresh_ || fresh;
  return fresh;
}

void LiveMoments::Died(uint32_t entry) {
  Close();
  if (--live_count_[entry] == 0) live_.erase(std::find(live_.begin(), live_.end(), entry));
}

void LiveMoments::Close() {
  if (!fresh_) return;
  fresh_ = false;
  moments_.push_back(live_);
}

std::vector<absl::InlinedVector<Residency, 1>> LiveMoments::Residencies(uint32_t entries) const {
  std::vector<absl::InlinedVector<Residency, 1>> residencies(entries);
  for (size_t t = 0; t < moments_.size(); ++t) {
    const auto now = static_cast<Clock>(t);
    for (const uint32_t entry : moments_[t]) {
      if (entry >= entries) continue;
      auto& residency = residencies[entry];
      if (!residency.empty() && residency.back().end == now) {
        residency.back().end = now + 1;
      } else {
        residency.push_back({now, now + 1});
      }
    }
  }
  return residencies;
}

uint64_t LiveMoments::Load(const std::vector<uint32_t>& units) const {
  uint64_t most = 0;
  for (const std::vector<uint32_t>& moment : moments_) {
    uint64_t sum = 0;
    for (const uint32_t entry : moment) sum += entry < units.size() ? units[entry] : 0;
    most = std::max(most, sum);
  }
  return most;
}

uint64_t LiveMoments::HostBytes() const {
  uint64_t bytes = overlaps_.capacity() + (live_count_.capacity() + live_.capacity()) * sizeof(uint32_t) +
                   conflicts_.capacity() * sizeof(conflicts_[0]) + moments_.capacity() * sizeof(moments_[0]);
  for (const std::vector<uint64_t>& row : conflicts_) bytes += row.capacity() * sizeof(uint64_t);
  for (const std::vector<uint32_t>& moment : moments_) bytes += moment.capacity() * sizeof(uint32_t);
  return bytes;
}

}  // namespace hotpack
