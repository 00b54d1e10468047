#include "bench/train/hotpack_calls.h"

#include <dlfcn.h>
#include <hotpack.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "simgpu/checker.h"

namespace hotpack::train {
namespace {

struct Checker {
  decltype(&simgpuBlockGiven) given = nullptr;
  decltype(&simgpuBlockReturned) returned = nullptr;
  decltype(&simgpuBlockKept) kept = nullptr;
};

// Returns null members if the driver has no checker.
Checker FindChecker() {
  Checker checker;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return checker;
  checker.given = reinterpret_cast<decltype(checker.given)>(dlsym(driver, "simgpuBlockGiven"));
  checker.returned = reinterpret_cast<decltype(checker.returned)>(dlsym(driver, "simgpuBlockReturned"));
  checker.kept = reinterpret_cast<decltype(checker.kept)>(dlsym(driver, "simgpuBlockKept"));
  return checker;
}

const Checker& GetChecker() {
  static const Checker checker = FindChecker();
  return checker;
}

void Check(int result, const std::string& call) {
  if (result != 0) throw std::runtime_error(call + ": CUresult " + std::to_string(result));
}

}  // namespace

void* HotpackMalloc(size_t bytes, void* stream) {
  void* pointer = nullptr;
  Check(hotpack_malloc(&pointer, bytes, stream), "hotpack_malloc of " + std::to_string(bytes) + " bytes");
  if (GetChecker().given != nullptr) GetChecker().given(reinterpret_cast<uint64_t>(pointer), bytes, stream);
  return pointer;
}

void HotpackFree(void* pointer, void* stream) {
  const auto address = reinterpret_cast<uint64_t>(pointer);
  if (GetChecker().returned != nullptr) GetChecker().returned(address, stream);
  const int result = hotpack_free(pointer, stream);
  if (result != 0 && GetChecker().kept != nullptr) GetChecker().kept(address);
  Check(result, "hotpack_free");
}

}  // namespace hotpack::train
