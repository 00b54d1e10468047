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

// c10/util/Exception.h: the argument of c10::Error's constructor, in addition to the text.
struct SourceLocation {
  const char* function;
  const char* file;
  uint32_t line;
};

// The exception's class is in PyTorch's libraries. This library does not link to them, because it serves PyTorch built
// for any CUDA version. By the C++ ABI (Itanium, 2.9.4 and 5.2) a throw needs three things:
//  - an object, which is its constructor run on enough memory;
//  - its type information;
//  - its complete destructor: the vtable's first function, since std::exception's destructor is its first virtual one.
// Before PyTorch 2.15 the class has no constructor of its own. It adds nothing to c10::Error, so an object is a
// c10::Error with the class's vtable.
struct ErrorClass {
  using Construct = void (*)(void* self, SourceLocation where, std::string text);
  using Destroy = void (*)(void* self);
  Construct construct = nullptr;
  std::type_info* type = nullptr;
  void** vtable = nullptr;  // behind the offset and the type information: where objects point to
  bool Known() const { return construct != nullptr && type != nullptr && vtable != nullptr; }
  Destroy destroy() const { return reinterpret_cast<Destroy>(vtable[0]); }
};

void* Symbol(const char* name) {
  for (const char* library : {"libc10.so", "libc10_cuda.so"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (void* symbol = handle != nullptr ? dlsym(handle, name) : nullptr) return symbol;
  }
  return nullptr;
}

ErrorClass FindErrorClass() {
  constexpr char kOwn[] =
      "_ZN3c1016OutOfMemoryErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  constexpr char kBase[] = "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
  ErrorClass error;
  void* construct = Symbol(kOwn);
  if (construct == nullptr) construct = Symbol(kBase);
  error.construct = reinterpret_cast<ErrorClass::Construct>(construct);
  error.type = static_cast<std::type_info*>(Symbol("_ZTIN3c1016OutOfMemoryErrorE"));
  if (void** vtable = static_cast<void**>(Symbol("_ZTVN3c1016OutOfMemoryErrorE"))) error.vtable = vtable + 2;
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
         " has a total capacity of " + Size(TotalBytes(device)) + " of which " + Size(FreeBytes(device)) +
         " is free. hotpack: " + diagnosis + ".";
}

}  // namespace

void ThrowOutOfMemory(size_t bytes, int device) {
  const std::string text = Describe(bytes, device);
  const ErrorClass error = FindErrorClass();
  if (!error.Known()) throw std::runtime_error(text);
  constexpr size_t kEnough = 1024;  // today's PyTorch needs about 150 bytes
  void* object = abi::__cxa_allocate_exception(kEnough);
  error.construct(object, {"hotpack_torch_malloc", "hotpack", 0}, text);
  *static_cast<void***>(object) = error.vtable;
  abi::__cxa_throw(object, error.type, error.destroy());
}

}  // namespace hotpack_torch
