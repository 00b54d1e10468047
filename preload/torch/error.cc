#include "preload/torch/error.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>
#include <typeinfo>

#include "preload/torch/driver.h"
#include "runtime/include/hotpack.h"

namespace hotpack_torch {
namespace {

// c10/util/Exception.h: what c10::Error's constructor takes, beside the text.
struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

// The exception's class lies in libc10.so, which this library is not linked with: it serves PyTorch built against any
// CUDA. By the C++ ABI (Itanium, 2.9.4 and 5.2) an object of it is its constructor, run on enough memory, and its type
// information and complete destructor (the vtable's first function, since std::exception's destructor is its first
// virtual one) are all that a throw needs.
struct ErrorClass {
  using Construct = void (*)(void* self, SourceLocation where, std::string text);
  using Destroy = void (*)(void* self);
  Construct construct = nullptr;
  std::type_info* type = nullptr;
  Destroy destroy = nullptr;
  bool Known() const { return construct != nullptr && type != nullptr && destroy != nullptr; }
};

ErrorClass FindErrorClass() {
  ErrorClass error;
  void* c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
  if (c10 == nullptr) return error;
  error.construct = reinterpret_cast<ErrorClass::Construct>(dlsym(
      c10, "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"));
  error.type = static_cast<std::type_info*>(dlsym(c10, "_ZTIN3c1016OutOfMemoryErrorE"));
  if (void** vtable = static_cast<void**>(dlsym(c10, "_ZTVN3c1016OutOfMemoryErrorE"))) {
    error.destroy = reinterpret_cast<ErrorClass::Destroy>(vtable[2]);  // behind the offset and the type information
  }
  return error;
}

std::string Size(size_t bytes) {
  static const char* const kUnits[] = {"bytes", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024 && unit < 3) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

std::string Describe(size_t bytes, int device) {
  char diagnosis[1024] = "";
  hotpack_explain(device, bytes, diagnosis, sizeof(diagnosis));
  return "CUDA out of memory. Tried to allocate " + Size(bytes) + ". GPU " + std::to_string(device) +
         " has a total capacity of " + Size(TotalBytes(device)) + " of which " + Size(FreeBytes(device)) + " is free. hotpack: " + diagnosis + ".";
}

}  // namespace

void ThrowOutOfMemory(size_t bytes, int device) {
  const std::string text = Describe(bytes, device);
  const ErrorClass error = FindErrorClass();
  if (!error.Known()) throw std::runtime_error(text);
  constexpr size_t kEnough = 1024;  // an object of today's PyTorch has some 150 bytes
  void* object = abi::__cxa_allocate_exception(kEnough);
  error.construct(object, {"hotpack_torch_malloc", "hotpack", 0}, text);
  abi::__cxa_throw(object, error.type, error.destroy);
}

}  // namespace hotpack_torch
