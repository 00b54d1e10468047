// Does every way of looking up a driver function lead to hotpack, for each function that it hooks? A newer driver may
// answer a look-up with a variant that hotpack does not know: its calls would pass hotpack by.
#include <cuda.h>
#include <dlfcn.h>

#include <functional>

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"
#include "tests/gpu/driver.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

struct Hooked {
  const char* symbol;
  const char* name;
  int version;      // of CUDA, that introduced the signature
  bool per_thread;  // the variant for per-thread default streams
};

constexpr Hooked kHooked[] = {
#define HOTPACK_GPU_HOOKED(symbol, name, version, stream, ...) {#symbol, name, version, (stream) == 2},
    HOTPACK_HOOKS(HOTPACK_GPU_HOOKED) HOTPACK_WORK(HOTPACK_GPU_HOOKED)
#undef HOTPACK_GPU_HOOKED
};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* ByProcAddress(GetProcAddress get, const Hooked& hooked) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status;
  const auto flags =
      hooked.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM : CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  return get(hooked.name, &address, hooked.version, flags, &status) == CUDA_SUCCESS ? address : nullptr;
}

void* ByRuntime(const Hooked& hooked) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult status;
  const auto flags = hooked.per_thread ? cudaEnablePerThreadDefaultStream : cudaEnableLegacyStream;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(hooked.name, &address, static_cast<unsigned>(hooked.version), flags, &status);
  cudaGetLastError();
  return error == cudaSuccess && status == cudaDriverEntryPointSuccess ? address : nullptr;
}

// Returns the file that holds the function at `address`.
std::string FileOf(void* address) {
  Dl_info info;
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

class Audit {
 public:
  explicit Audit(const Probe& probe) : probe_(probe) {
    if (void* own = dlsym(RTLD_DEFAULT, "hotpack_get_stats"); own != nullptr) own_ = FileOf(own);
  }

  // Records how many of the functions that this driver has are hotpack's by this way.
  void Check(const std::string& way, const std::function<void*(const Hooked&)>& look_up) const {
    size_t found = 0, own = 0;
    std::string others;
    for (const Hooked& hooked : kHooked) {
      void* address = look_up(hooked);
      if (address == nullptr) continue;
      ++found;
      if (IsOwn(FileOf(address))) {
        ++own;
      } else if (others.size() < 200) {
        others += (others.empty() ? "; not " : ", ") + std::string(hooked.symbol);
      }
    }
    const std::string name = "lookups." + way, seen = std::to_string(own) + " of " + std::to_string(found);
    probe_.found->AddFigure(name + ".found", "functions", {static_cast<double>(found)});
    if (probe_.hotpack) {
      probe_.found->Check(found > 0 && own == found, name, "every hooked function that the driver has is hotpack's",
                          seen + others);
    } else {
      probe_.found->Fact(found > 0 && own == 0, name, "the driver answers for itself", seen + " are hotpack's");
    }
  }

  // Lists hooked functions that this driver does not have: an older driver lacks the newest ones.
  void ListMissing() const {
    size_t missing = 0;
    std::string names;
    for (const Hooked& hooked : kHooked) {
      if (DriverSymbol(hooked.symbol) != nullptr) continue;
      ++missing;
      if (names.size() < 400) names += (names.empty() ? ": " : ", ") + std::string(hooked.symbol);
    }
    probe_.found->Pass("lookups.missing", "any number: an older driver has fewer functions",
                       std::to_string(missing) + " of " + std::to_string(std::size(kHooked)) + names);
  }

 private:
  // The simulated device's witness stands before hotpack for the functions that allocate, and passes on to it.
  bool IsOwn(const std::string& file) const {
    return file == own_ || (probe_.hotpack && file.find("/libsimgpu_witness.so") != std::string::npos);
  }

  const Probe& probe_;
  std::string own_ = "no hotpack";
};

}  // namespace

void RunLookups(Probe& probe) {
  const Audit audit(probe);
  audit.Check("dlsym", [](const Hooked& hooked) { return DriverSymbol(hooked.symbol); });
  const auto get = reinterpret_cast<GetProcAddress>(DriverSymbol("cuGetProcAddress_v2"));
  if (get == nullptr) {
    probe.found->Skip("lookups.cuGetProcAddress", "the driver has no cuGetProcAddress_v2");
  } else {
    audit.Check("cuGetProcAddress", [get](const Hooked& hooked) { return ByProcAddress(get, hooked); });
  }
  audit.Check("cudaGetDriverEntryPoint", ByRuntime);
  audit.ListMissing();
}

}  // namespace hotpack::gpu
