// cuGetProcAddress: from a base name and a CUDA version to the entry point that had that signature then.
//
// Returns the newest variant that is not newer than the request. Names are base names (cuMemAlloc, not cuMemAlloc_v2).
// Versions are those of the PFN_ types in cudaTypedefs.h.
#include <cstdint>
#include <cstring>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simgpu/driver/entry.h"

// Does not include cuda.h: it needs only addresses, and the table names some entry points by more than one type.
#define SIMGPU_ENTRY(base, version, symbol, per_thread) extern "C" int symbol();
#define SIMGPU_STUB SIMGPU_ENTRY
#include "simgpu/driver/entry_points.inc"
#undef SIMGPU_ENTRY

namespace simgpu {
namespace {

constexpr int kSuccess = 0, kInvalidValue = 1, kNotFound = 500;
constexpr uint64_t kLegacyStream = 1, kPerThreadStream = 2;
enum QueryResult : int { kFound = 0, kNoSuchSymbol = 1, kVersionTooLow = 2 };

struct Variant {
  int version;
  bool per_thread;
  void* function;
};

using Table = std::unordered_map<std::string_view, std::vector<Variant>>;

const Table& Variants() {
  static const Table* table = [] {
    auto* made = new Table;
#define SIMGPU_ENTRY(base, version, symbol, per_thread) \
  (*made)[#base].push_back({version, per_thread, reinterpret_cast<void*>(&::symbol)});
#include "simgpu/driver/entry_points.inc"
#undef SIMGPU_ENTRY
    return made;
  }();
  return *table;
}

const Variant* Highest(const std::vector<Variant>& variants, int version, bool per_thread) {
  const Variant* best = nullptr;
  for (const Variant& v : variants) {
    if (v.per_thread != per_thread || v.version > version) continue;
    if (best == nullptr || v.version > best->version) best = &v;
  }
  return best;
}

int Find(const char* name, void** function, int version, uint64_t flags, int* status) {
  static EntryPoint entry("cuGetProcAddress");
  if (const int early = entry.Enter(false); early != 0) return early;
  if (status != nullptr) *status = kNoSuchSymbol;
  if (name == nullptr || function == nullptr || (flags & ~(kLegacyStream | kPerThreadStream)) != 0 ||
      flags == (kLegacyStream | kPerThreadStream)) {
    return kInvalidValue;
  }
  *function = nullptr;
  const auto found = Variants().find(name);
  if (found == Variants().end()) return kNotFound;
  const Variant* best = nullptr;
  if (flags == kPerThreadStream) best = Highest(found->second, version, true);
  if (best == nullptr) best = Highest(found->second, version, false);
  if (best == nullptr) {
    if (status != nullptr) *status = kVersionTooLow;
    return kNotFound;
  }
  if (status != nullptr) *status = kFound;
  *function = best->function;
  return kSuccess;
}

}  // namespace
}  // namespace simgpu

extern "C" __attribute__((visibility("default"))) int SimgpuGetProcAddress(const char* name, void** function,
                                                                           int version,
                                                                           uint64_t flags) __asm__("cuGetProcAddress");
extern "C" int SimgpuGetProcAddress(const char* name, void** function, int version, uint64_t flags) {
  return simgpu::Find(name, function, version, flags, nullptr);
}

extern "C" __attribute__((visibility("default"))) int SimgpuGetProcAddressV2(
    const char* name, void** function, int version, uint64_t flags, int* status) __asm__("cuGetProcAddress_v2");
extern "C" int SimgpuGetProcAddressV2(const char* name, void** function, int version, uint64_t flags, int* status) {
  return simgpu::Find(name, function, version, flags, status);
}
