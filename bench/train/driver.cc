#include "bench/train/driver.h"

#include <dlfcn.h>

#include <stdexcept>

namespace hotpack::train {
namespace {

void* Symbol(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
  return symbol;
}

Driver Load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) throw std::runtime_error(std::string("no CUDA driver: ") + dlerror());
  Driver driver;
#define HOTPACK_TRAIN_TEXT(name) #name
#define HOTPACK_TRAIN_LOAD(name) \
  driver.name##_call = reinterpret_cast<decltype(&::name)>(Symbol(library, HOTPACK_TRAIN_TEXT(name)));
  HOTPACK_TRAIN_DRIVER_CALLS(HOTPACK_TRAIN_LOAD)
  return driver;
}

}  // namespace

const Driver& GetDriver() {
  static const Driver driver = Load();
  return driver;
}

void CheckDriver(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  const char* words = nullptr;
  GetDriver().cuGetErrorString_call(result, &words);
  throw std::runtime_error(std::string(call) + ": " +
                           (words != nullptr ? words : "CUresult " + std::to_string(static_cast<int>(result))));
}

}  // namespace hotpack::train
