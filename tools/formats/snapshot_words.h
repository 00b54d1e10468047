// The keys and values of a PyTorch memory snapshot that matter to hotpack; docs/snapshots.md describes their use.
#pragma once

#include <cstdint>
#include <string_view>

namespace hotpack::snapshot {

enum Word : uint8_t {
  kSegments,
  kDeviceTraces,
  kDevice,
  kAddress,
  kAddr,
  kTotalSize,
  kSize,
  kRequestedSize,
  kRealSize,
  kStream,
  kBlocks,
  kHistory,
  kState,
  kAction,
  kTimeUs,
  kUserMetadata,
  kFrames,
  kFilename,
  kName,
  kLine,
  kActiveAllocated,
  kAlloc,
  kFree,
  kFreeRequested,
  kFreeCompleted,
  kOom,
  kSnapshot,
  kMarkStep,
  kMarkInterrupt,
  kMarkResume,
  kMarkExpect,
  kWords,
};

// Their texts.
inline constexpr std::string_view kText[] = {
    "segments", "device_traces", "device", "address", "addr", "total_size", "size", "requested_size", "real_size",
    "stream", "blocks", "history", "state", "action", "time_us", "user_metadata", "frames", "filename", "name", "line",
    "active_allocated", "alloc", "free", "free_requested", "free_completed", "oom", "snapshot",
    // Marks of an exported recording, as `user_metadata` of a "snapshot" entry.
    "hotpack step", "hotpack interrupt", "hotpack resume", "hotpack expect"};
static_assert(std::size(kText) == kWords);

}  // namespace hotpack::snapshot
