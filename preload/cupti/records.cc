#include "preload/cupti/records.h"

#include <cstdlib>

namespace hotpack::cupti {
namespace {

// Records only grow at their end from version to version, so the older structures read the newer records.
#if CUPTI_API_VERSION >= 130000
#define HOTPACK_SAME(older, newer, field) static_assert(offsetof(older, field) == offsetof(newer, field))
HOTPACK_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, start);
HOTPACK_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, end);
HOTPACK_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, correlationId);
HOTPACK_SAME(CUpti_ActivityKernel9, CUpti_ActivityKernel10, name);
HOTPACK_SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, end);
HOTPACK_SAME(CUpti_ActivityMemcpy5, CUpti_ActivityMemcpy6, correlationId);
HOTPACK_SAME(CUpti_ActivityMemory3, CUpti_ActivityMemory4, correlationId);
HOTPACK_SAME(CUpti_ActivityMemory3, CUpti_ActivityMemory4, timestamp);
HOTPACK_SAME(CUpti_ActivityMemory3, CUpti_ActivityMemory4, name);
HOTPACK_SAME(CUpti_ActivityGraphTrace, CUpti_ActivityGraphTrace2, end);
#undef HOTPACK_SAME
#endif

template <typename Record>
const Record& As(const CUpti_Activity* activity) {
  return *reinterpret_cast<const Record*>(activity);
}

const char* CopyName(uint8_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "memcpy DtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
      return "memcpy HtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "memcpy peer";
    default:
      return "memcpy";
  }
}

void HandOverMemory(const hotpack_collector_host& host, const ClockDifference& clock,
                    const CUpti_ActivityMemory3& record) {
  hotpack_note_memory note = {};
  note.time_ns = clock.ToHost(record.timestamp);
  note.address = record.address;
  note.bytes = record.bytes;
  note.correlation = record.correlationId;
  note.name = record.name;
  note.released = record.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE ? 1 : 0;
  note.kind = record.memoryKind;
  host.memory(&note);
}

}  // namespace

uint8_t* Buffers::Take() {
  if (out_.fetch_add(1, std::memory_order_relaxed) < kMax) {
    if (void* buffer = malloc(kBytes)) return static_cast<uint8_t*>(buffer);
  }
  out_.fetch_sub(1, std::memory_order_relaxed);
  return nullptr;
}

void Buffers::Return(uint8_t* buffer) {
  free(buffer);
  out_.fetch_sub(1, std::memory_order_relaxed);
}

void ClockDifference::Measure(const Library& library, const hotpack_collector_host& host) {
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < 8; ++i) {
    uint64_t theirs = 0;
    const uint64_t before = host.now_ns();
    if (library.cuptiGetTimestamp(&theirs) != CUPTI_SUCCESS) return;
    const uint64_t took = host.now_ns() - before;
    if (took >= shortest) continue;
    shortest = took;
    difference_.store(before + took / 2 - theirs, std::memory_order_relaxed);
  }
}

uint64_t HandOver(const Library& library, const hotpack_collector_host& host, const ClockDifference& clock,
                  uint8_t* buffer, size_t valid_bytes) {
  uint64_t works = 0;
  const auto work = [&](uint32_t correlation, const char* name, uint64_t start, uint64_t end) {
    works += host.work(correlation, name, clock.ToHost(start), clock.ToHost(end)) != 0 ? 1 : 0;
  };
  // An incomplete record (CUPTI_ERROR_INVALID_KIND) ends the buffer, as its end (CUPTI_ERROR_MAX_LIMIT_REACHED) does.
  CUpti_Activity* activity = nullptr;
  while (library.cuptiActivityGetNextRecord(buffer, valid_bytes, &activity) == CUPTI_SUCCESS) {
    switch (activity->kind) {
      case CUPTI_ACTIVITY_KIND_KERNEL:
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& record = As<CUpti_ActivityKernel9>(activity);
        work(record.correlationId, record.name, record.start, record.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& record = As<CUpti_ActivityMemcpy5>(activity);
        work(record.correlationId, CopyName(record.copyKind), record.start, record.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY2: {
        const auto& record = As<CUpti_ActivityMemcpyPtoP4>(activity);
        work(record.correlationId, CopyName(record.copyKind), record.start, record.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& record = As<CUpti_ActivityMemset4>(activity);
        work(record.correlationId, "memset", record.start, record.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: {
        const auto& record = As<CUpti_ActivityGraphTrace>(activity);
        work(record.correlationId, "graph", record.start, record.end);
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMORY2:
        HandOverMemory(host, clock, As<CUpti_ActivityMemory3>(activity));
        break;
      default:
        break;
    }
  }
  return works;
}

}  // namespace hotpack::cupti
