// The common part of the checker's cases. CASE(Name) { … } is one small program with the behaviour of a wrong (or
// right) allocator or program. checker_test.cc says which report each must give.
//
// The "allocator" is the case itself: it maps an arena, and reports to the checker which parts of it the application
// got.
#pragma once

#include "simgpu/checker.h"
#include "tests/simgpu/support.h"

namespace simgpu_test {

struct RegisterCase {
  RegisterCase(const char* name, void (*run)());
};

#define CASE(name)                                                       \
  static void name();                                                    \
  static const ::simgpu_test::RegisterCase register_##name(#name, name); \
  static void name()

inline CUdeviceptr arena;  // four pages
inline CUstream s1, s2;    // neither waits for the legacy stream

inline void Give(CUdeviceptr address, size_t bytes) { simgpuBlockGiven(address, bytes, SIMGPU_NO_STREAM); }
inline void Return(CUdeviceptr address) { simgpuBlockReturned(address, SIMGPU_NO_STREAM); }
inline void Keep(CUdeviceptr address) { simgpuBlockKept(address); }

// A block used on s1, and returned.
inline void UsedOnce() {
  Give(arena, 8192);
  Touch(s1, arena);
  Return(arena);
}

inline void EventEdge(CUstream from, CUstream to) {
  const CUevent event = NewEvent();
  MUST(cuEventRecord(event, from));
  MUST(cuStreamWaitEvent(to, event, 0));
  MUST(cuEventDestroy(event));
}

}  // namespace simgpu_test
