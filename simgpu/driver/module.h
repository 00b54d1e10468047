// Kernels of loaded modules and libraries.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/driver/image.h"

namespace simgpu {

struct Context;
struct Library;

// CUfunction and CUkernel both point here.
struct Kernel {
  std::string name;
  Library* library = nullptr;
  std::vector<KernelParameter> parameters;
  bool known = true;  // the parameters are known; else its uses are invisible
  bool warned = false;
  int attributes[32] = {};
};

// A CUmodule or a CUlibrary.
struct Library {
  Image image;
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::map<std::string, uint64_t> globals;  // addresses, made at the first query
  Context* context = nullptr;               // of a module
};

}  // namespace simgpu
