// hotpack's C interface, if it is loaded. Otherwise each function does nothing: the same program runs on the plain
// device.
#pragma once

#include <cstddef>

struct hotpack_stats;

namespace property {

struct HotpackCalls {
  void (*step)() = nullptr;
  void (*interrupt)() = nullptr;
  void (*resume)() = nullptr;
  int (*wait_plan)(int) = nullptr;
  int (*malloc)(void**, size_t, void*) = nullptr;
  int (*free)(void*, void*) = nullptr;
  int (*get_stats)(hotpack_stats*, size_t) = nullptr;
};

const HotpackCalls& Hotpack();

}  // namespace property
