// Calls that need device memory of the driver itself. They pass through; if the driver is out of memory, hotpack trims
// its idle memory and retries (preload/serve/out_of_memory.h). cuMemGetInfo counts the arena's idle memory as free, so
// without the retry a program would fail for memory that it sees as free.
#include <algorithm>
#include <type_traits>

#include "preload/hooks/hook_table.h"
#include "preload/process/hook_scope.h"
#include "preload/serve/out_of_memory.h"

using hotpack::HookId;
using hotpack::HookScope;
using hotpack::kUnknownBytes;
using hotpack::RetryAfterTrim;

namespace {

// The just-in-time compiler writes to some options: the sizes of log buffers come in and lengths go out (cuda.h,
// CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES). A retry starts with the program's values.
class JitValues {
 public:
  JitValues(void** values, unsigned int count) : values_(values), kept_(values != nullptr ? std::min(count, kMax) : 0) {
    std::copy_n(values, kept_, given_);
  }
  // Call before each attempt.
  void Restore() {
    if (used_) std::copy_n(given_, kept_, values_);
    used_ = true;
  }

 private:
  static constexpr unsigned int kMax = 64;  // there are about thirty kinds of options
  void** values_;
  unsigned int kept_;
  bool used_ = false;
  void* given_[kMax];
};

// Of a call that nothing is compiled for.
struct NoJitValues {
  void Restore() {}
};

struct Request {
  uint64_t bytes = kUnknownBytes;
  CUdevice device = hotpack::kCurrentDevice;
};

// One of the hooks below, as a type to overload on.
template <HookId id>
using Hook = std::integral_constant<HookId, id>;

// What a call asks for, from its arguments.
template <HookId id, typename... Arguments>
Request RequestOf(Hook<id>, const Arguments&...) {
  return {};
}
Request RequestOf(Hook<HookId::kcuMemCreate>, CUmemGenericAllocationHandle*, size_t bytes,
                  const CUmemAllocationProp* prop, unsigned long long) {
  const bool named = prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  return {.bytes = bytes, .device = named ? prop->location.id : hotpack::kCurrentDevice};
}
Request RequestOf(Hook<HookId::kcuMemAllocManaged>, CUdeviceptr*, size_t bytes, unsigned int) {
  return {.bytes = bytes};
}

// The values that the just-in-time compiler may write to, from a call's arguments.
template <HookId id, typename... Arguments>
NoJitValues JitValuesOf(Hook<id>, const Arguments&...) {
  return {};
}
JitValues JitValuesOf(Hook<HookId::kcuModuleLoadDataEx>, CUmodule*, const void*, unsigned int count, CUjit_option*,
                      void** values) {
  return {values, count};
}
JitValues JitValuesOf(Hook<HookId::kcuLibraryLoadData>, CUlibrary*, const void*, CUjit_option*, void** values,
                      unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return {values, count};
}
JitValues JitValuesOf(Hook<HookId::kcuLibraryLoadFromFile>, CUlibrary*, const char*, CUjit_option*, void** values,
                      unsigned int count, CUlibraryOption*, void**, unsigned int) {
  return {values, count};
}

// The function of a hook: its type has the parameters.
template <HookId id, typename Function>
struct Retried;
template <HookId id, typename... Arguments>
struct Retried<id, CUresult (*)(Arguments...)> {
  const char* name;
  CUresult operator()(Arguments... arguments) const {
    HookScope scope;
    const Request request = RequestOf(Hook<id>(), arguments...);
    auto values = JitValuesOf(Hook<id>(), arguments...);
    const auto call = [&] {
      values.Restore();
      return reinterpret_cast<CUresult (*)(Arguments...)>(hotpack::NextOf(id))(arguments...);
    };
    return RetryAfterTrim(scope, name, request.bytes, call, request.device);
  }
};

}  // namespace

#define HOTPACK_RETRY(symbol, base, version, stream, parameters, arguments) \
  CUresult Hook_##symbol parameters { return Retried<HookId::k##symbol, decltype(&Hook_##symbol)>{base} arguments; }
HOTPACK_RETRY_HOOKS(HOTPACK_RETRY)
