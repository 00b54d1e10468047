// Optional data that collectors add to a recording: kernel launches with the blocks that they name, kernel times, the
// program's own ranges (NVTX), and the origins of requests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hotpack {

// An ordinal in Notes::names.
using NameOrdinal = uint32_t;
inline constexpr NameOrdinal kNoName = UINT32_MAX;

// A kernel launch, copy or memset, as it was submitted.
struct Launch {
  uint64_t position = 0;  // events of the recording before it (an index into Trace::events)
  uint64_t time_ns = 0;   // of the submission, since the start of the recording; 0: unknown
  uint64_t start_ns = 0;  // of the work on the device, on the same clock; both 0: unknown
  uint64_t end_ns = 0;
  // Notes::launch_blocks[first_block, first_block + blocks): the blocks that its parameters name.
  uint64_t first_block = 0;
  uint32_t blocks = 0;
  NameOrdinal name = kNoName;  // of the kernel; kNoName: not available
  uint32_t stream = 0;         // as Event::stream
  uint16_t thread = 0;         // as Event::thread
};

enum class RangeKind : uint8_t {
  kPush = 1,   // begins, nested on its thread
  kPop = 2,    // ends the innermost range of the thread
  kStart = 3,  // begins, may end on another thread
  kEnd = 4,
  kMark = 5,  // a single moment
};

// One edge of a range that the program named.
struct RangeEdge {
  uint64_t position = 0;  // as Launch::position
  uint64_t time_ns = 0;
  uint64_t id = 0;             // kStart, kEnd: the same for both edges
  NameOrdinal name = kNoName;  // of kPush, kStart, kMark
  uint16_t thread = 0;
  RangeKind kind = RangeKind::kMark;
};

// The call stack of a block's request.
struct BlockStack {
  uint64_t id = 0;              // as Event::id
  NameOrdinal stack = kNoName;  // one line per frame, the innermost first: "function (file:line)"
};

// Device memory as the driver provided it or took it back, for any requester (CUPTI's memory records).
struct DriverMemory {
  uint64_t position = 0;  // as Launch::position
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  NameOrdinal name = kNoName;  // of the requester: a symbol, a pool
  uint32_t kind = 0;           // CUpti_ActivityMemoryKind; 0: unknown
  uint16_t thread = 0;
  bool released = false;
};

// All lists are in the order of the recording; positions never decrease.
struct Notes {
  std::vector<std::string> names;
  std::vector<Launch> launches;
  std::vector<uint64_t> launch_blocks;  // ids of blocks that were live at the launch
  std::vector<RangeEdge> ranges;
  std::vector<BlockStack> stacks;  // by id, ascending, at most one of each
  std::vector<DriverMemory> memory;

  bool empty() const { return launches.empty() && ranges.empty() && stacks.empty() && memory.empty(); }
};

}  // namespace hotpack
