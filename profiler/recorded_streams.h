// The streams that the requests of a recording name.
#pragma once

#include <cstdint>
#include <vector>

#include "packer/stream_edges.h"
#include "profiler/event.h"
#include "profiler/profile.h"

namespace hotpack {

// Returns the stream of each request (kAllocate), as ProfileBlock::stream: its ordinal + 1; 0: it named none.
//   - hotpack's recordings flag requests that name a stream (kEventAsync). One without the flag names none.
//   - Imported recordings have no flags. If one of their requests names a stream, all do: without it the default one.
// O(events). Thread-safe.
std::vector<uint16_t> RecordedStreams(const Trace& trace);

// Converts streams as ProfileBlock has them into the packer's: of each block of ToInstance()'s instance, or of each
// request. O(n). Thread-safe.
BlockStreams ToBlockStreams(const Profile& profile, const std::vector<uint32_t>& index);
BlockStreams ToBlockStreams(const std::vector<uint16_t>& streams);

}  // namespace hotpack
