// The calls of hotpack.h about a device's memory, and the promises of programs whose streams are not seen. The rest of
// the C interface is in preload/capi/allocate.cc, preload/capi/save_plan.cc and runtime/process/c_api.cc.
#include <algorithm>
#include <cstring>
#include <vector>

#include "preload/process/driver_access.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/device_limits.h"
#include "preload/serve/driver_blocks.h"
#include "preload/serve/out_of_memory.h"
#include "preload/streams/stream_order.h"
#include "runtime/include/hotpack.h"

namespace {

template <typename Function>
void ForEachOn(int device, Function function) {
  hotpack::Arenas().ForEach([&](hotpack::ContextArena* arena) {
    if (arena->memory->device() == device) function(arena);
  });
}

size_t List(int device, bool blocks, hotpack_extent* out, size_t capacity) {
  size_t count = 0;
  int ordinal = 0;
  ForEachOn(device, [&](hotpack::ContextArena* arena) {
    std::vector<hotpack::Engine::Extent> live, mapped;
    arena->engine->List(&live, &mapped);
    for (const auto& extent : blocks ? live : mapped) {
      if (count < capacity) out[count] = {extent.address, extent.bytes, extent.planned ? 1 : 0, ordinal};
      ++count;
    }
    ++ordinal;
  });
  return count;
}

}  // namespace

extern "C" {

void hotpack_keep_streams(void) { hotpack::Order().KeepStreams(); }

void hotpack_except_stream(void* stream) {
  hotpack::HookScope scope;
  try {
    if (scope.Active()) hotpack::Order().StreamMayEnd(static_cast<CUstream>(stream));
  } catch (...) {
    // Out of host memory: the stream has no number yet, so it is never queried.
  }
}

void hotpack_capture_begin(void) {
  if (hotpack::kHooksPresent) return;
  hotpack::Order().BeginCapture(CU_STREAM_LEGACY);
  // A release under way has not seen the announcement.
  const auto until_no_release_is_under_way = hotpack::BlocksOfDriver().HoldReleases();
}

void hotpack_capture_end(void) {
  hotpack::HookScope scope;
  if (!hotpack::kHooksPresent) hotpack::Order().CancelCapture();
}

void hotpack_allow_peer(int device, int peer) {
  hotpack::HookScope scope;
  try {
    ForEachOn(device, [&](hotpack::ContextArena* arena) { arena->memory->AddPeer(peer); });
  } catch (...) {
    // Out of host memory: the driver refuses the peer's accesses.
  }
}

int hotpack_get_memory(int device, hotpack_memory* memory, size_t size) {
  if (memory == nullptr) return -1;
  hotpack_memory sum = {};
  bool any = false;
  sum.limit = hotpack::DeviceLimit(device);
  ForEachOn(device, [&](hotpack::ContextArena* arena) {
    const hotpack::EngineUsage usage = arena->engine->Usage();
    any = true;
    sum.live += usage.live;
    sum.reserved += usage.held;
    sum.reserved_peak += usage.held_peak;
    sum.passed_through += usage.passed_through;
  });
  std::memset(memory, 0, size);
  std::memcpy(memory, &sum, std::min(size, sizeof(sum)));
  return any ? 0 : -1;
}

void hotpack_reset_peak(int device) {
  ForEachOn(device, [](hotpack::ContextArena* arena) { arena->engine->ResetPeak(); });
}

int hotpack_set_limit(int device, uint64_t bytes) {
  if (device < 0 || device >= hotpack::kLimitedDevices) return -1;
  hotpack::SetDeviceLimit(device, bytes);
  return 0;
}

size_t hotpack_explain(int device, uint64_t bytes, char* text, size_t size) {
  if (text == nullptr || size == 0) return 0;
  hotpack::HookScope scope;
  return hotpack::DescribeOutOfMemory(device, "a request", bytes, text, size);
}

size_t hotpack_list_blocks(int device, hotpack_extent* blocks, size_t capacity) try {
  return List(device, true, blocks, capacity);
} catch (...) {
  return 0;
}

size_t hotpack_list_mapped(int device, hotpack_extent* runs, size_t capacity) try {
  return List(device, false, runs, capacity);
} catch (...) {
  return 0;
}

}  // extern "C"
