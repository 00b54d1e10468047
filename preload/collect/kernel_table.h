// Kernels by handle: their name, and which parameters may hold pointers.
//
// cuLaunchKernel takes a CUfunction or a CUkernel (cuda.h), which need different driver queries. The call that returned
// the handle tells which one it is (kernel_hooks.cc).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace hotpack {

struct Kernel {
  struct Parameter {
    size_t ordinal;
    size_t bytes;
  };
  std::string name;                   // the driver's, mangled; empty: unknown
  std::vector<Parameter> parameters;  // those that may hold an address
  bool layout_known = false;
};

// Returns the kernel of a handle; asks the driver at the first use. Never null. Throws bad_alloc.
std::shared_ptr<const Kernel> FindKernel(CUfunction handle);

// Notes a handle that the driver has returned: of a CUkernel, or a CUfunction.
void KernelGiven(const void* handle, const char* name, bool is_kernel);

// Forgets all kernels, because modules or libraries were unloaded: other kernels may get their handles.
void ForgetKernels();
void ForgetKernelsAfterFork();

// cuda.h, cuLaunchKernel: `extra` is a list of names and values that ends with CU_LAUNCH_PARAM_END.
inline const char* BufferOf(void* const* extra, size_t* bytes) {
  const char* buffer = nullptr;
  *bytes = 0;
  for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[1]);
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) *bytes = *static_cast<const size_t*>(extra[1]);
  }
  return buffer;
}

// Calls word(uint64_t) for each 8 bytes of the parameters that may be an address: parameters of 8 bytes, and words at
// multiples of 8 in larger ones. (A struct's pointers are aligned, and so is a struct that has one.)
template <typename Word>
void ForEachWord(const Kernel& kernel, void* const* parameters, void* const* extra, Word word) {
  auto scan = [&word](const char* from, size_t bytes) {
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      uint64_t value;
      memcpy(&value, from + at, sizeof(value));
      word(value);
    }
  };
  size_t buffer_bytes = 0;
  const char* buffer = parameters == nullptr ? BufferOf(extra, &buffer_bytes) : nullptr;
  if (buffer != nullptr) scan(buffer, buffer_bytes);
  if (parameters == nullptr) return;
  for (const Kernel::Parameter& parameter : kernel.parameters) {
    const auto* value = static_cast<const char*>(parameters[parameter.ordinal]);
    if (value != nullptr) scan(value, parameter.bytes);
  }
}

}  // namespace hotpack
