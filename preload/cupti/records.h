// Activity records: the memory that CUPTI writes them to, and what the recording gets of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/collect/collector_host.h"
#include "preload/cupti/cupti_library.h"

namespace hotpack::cupti {

// The kinds that are collected. Kernels inside a graph are not told apart: a graph's launch is one piece of work, as it
// has one correlation id, and costs one record however many nodes it has.
inline constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,  // without this one nothing is collected
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE};

// Buffers for CUPTI: it has at most kMax of them at a time, 32 MiB in all, and drops records (and counts them) beyond
// that. From malloc one by one, so that another tool that takes CUPTI over with a buffer of ours in it can free it, as
// NVIDIA's samples do. Thread-safe.
class Buffers {
 public:
  static constexpr size_t kBytes = size_t{256} << 10;
  static constexpr int kMax = 128;
  uint8_t* Take();  // null: no more
  void Return(uint8_t* buffer);

 private:
  std::atomic<int> out_{0};
};

// From CUPTI's clock to the recording's: what is to be added, as last measured. The two drift apart where the system
// corrects one of them, so it is measured again every now and then. Thread-safe.
class ClockDifference {
 public:
  // The shortest of several looks at one clock between two at the other.
  void Measure(const Library& library, const hotpack_collector_host& host);
  // 0, which stands for not known, stays 0.
  uint64_t ToHost(uint64_t cupti_ns) const {
    return cupti_ns == 0 ? 0 : cupti_ns + difference_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> difference_{0};  // modulo 2^64
};

// Hands the records of a buffer to the host. Returns how many were of work that it awaited. Calls
// nothing of CUPTI but the iteration over the buffer. O(records).
uint64_t HandOver(const Library& library, const hotpack_collector_host& host, const ClockDifference& clock,
                  uint8_t* buffer, size_t valid_bytes);

}  // namespace hotpack::cupti
