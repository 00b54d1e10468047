// Activity records: the memory that CUPTI writes them to, and the notes that the recording gets.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/collect/collector_host.h"
#include "preload/cupti/cupti_library.h"

namespace hotpack::cupti {

// The kinds that are collected. A graph's launch is one piece of work with one correlation id, and costs one record
// whatever its number of nodes. Its kernels are not told apart.
inline constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,  // without this one nothing is collected
    CUPTI_ACTIVITY_KIND_MEMCPY,
    CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET,
    CUPTI_ACTIVITY_KIND_MEMORY2,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE};

// Buffers for CUPTI: at most kMax at a time, 32 MiB in total. Beyond that CUPTI drops records, and counts them. Each
// comes from malloc, so that another tool that takes CUPTI over can free a buffer in it, as NVIDIA's samples do.
// Thread-safe.
class Buffers {
 public:
  static constexpr size_t kBytes = size_t{256} << 10;
  static constexpr int kMax = 128;
  uint8_t* Take();  // null: no more
  void Return(uint8_t* buffer);

 private:
  std::atomic<int> out_{0};
};

// The difference from CUPTI's clock to the recording's, as last measured. The two drift apart where the system corrects
// one of them, so it is measured again from time to time. Thread-safe.
class ClockDifference {
 public:
  // Measures several times one clock between two readings of the other, and keeps the shortest.
  void Measure(const Library& library, const hotpack_collector_host& host);
  // Converts a time. 0 (unknown) stays 0.
  uint64_t ToHost(uint64_t cupti_ns) const {
    return cupti_ns == 0 ? 0 : cupti_ns + difference_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<uint64_t> difference_{0};  // modulo 2^64
};

// Hands the records of a buffer to the host. Returns the number of records whose work the host awaited. Of CUPTI it
// calls only the iteration over the buffer. O(records).
uint64_t HandOver(const Library& library, const hotpack_collector_host& host, const ClockDifference& clock,
                  uint8_t* buffer, size_t valid_bytes);

}  // namespace hotpack::cupti
