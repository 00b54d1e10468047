// Registrations by nvcc's generated code before main: fat binaries, their kernels and variables. They run before this
// library's C++ constructors, so everything is made at first use. Nothing is loaded until it is needed.
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "simgpu/runtime/runtime.h"

using simgpu_runtime::Driver;
using simgpu_runtime::DriverTable;
using simgpu_runtime::Set;

namespace {

struct Module {
  const void* fat_binary = nullptr;
  CUlibrary library = nullptr;
  std::vector<const void*> hosts;  // the addresses of its functions and variables in the program
};

struct Function {
  Module* module = nullptr;
  std::string name;
  CUkernel kernel = nullptr;
};

struct Variable {
  Module* module = nullptr;
  std::string name;
  void** managed = nullptr;  // the address of a __managed__ variable's pointer
  size_t bytes = 0;
};

struct Registry {
  std::mutex mutex;
  std::unordered_map<const void*, Function> functions;
  std::unordered_map<const void*, Variable> variables;
};

Registry& TheRegistry() {
  static Registry* registry = new Registry;
  return *registry;
}

CUresult Load(Module* module) {
  if (module->library != nullptr) return CUDA_SUCCESS;
  // Loads at a first use, which may come during a capture: the program did not ask for them.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const auto exchange = Driver().cuThreadExchangeStreamCaptureMode;
  const bool exchanged = exchange(&mode) == CUDA_SUCCESS;
  const CUresult result =
      Driver().cuLibraryLoadData(&module->library, module->fat_binary, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (exchanged) exchange(&mode);
  return result;
}

}  // namespace

namespace simgpu_runtime {

CUresult FindKernel(const void* function, CUkernel* kernel) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto it = r.functions.find(function);
  if (it == r.functions.end()) {  // the function may be a cudaKernel_t
    *kernel = static_cast<CUkernel>(const_cast<void*>(function));
    return function == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  }
  Function& f = it->second;
  if (f.kernel == nullptr) {
    if (const CUresult status = Load(f.module); status != CUDA_SUCCESS) return status;
    const CUresult status = Driver().cuLibraryGetKernel(&f.kernel, f.module->library, f.name.c_str());
    if (status != CUDA_SUCCESS) return status;
  }
  *kernel = f.kernel;
  return CUDA_SUCCESS;
}

CUresult FindVariable(const void* symbol, CUdeviceptr* address, size_t* bytes) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto it = r.variables.find(symbol);
  if (it == r.variables.end()) return static_cast<CUresult>(cudaErrorInvalidSymbol);
  const Variable& v = it->second;
  if (const CUresult status = Load(v.module); status != CUDA_SUCCESS) return status;
  size_t found = 0;
  const CUresult status = Driver().cuLibraryGetGlobal(address, &found, v.module->library, v.name.c_str());
  if (bytes != nullptr) *bytes = v.bytes;
  return status;
}

}  // namespace simgpu_runtime

#define CUDART_INTERNAL extern "C" CUDART_VISIBLE

CUDART_INTERNAL void** CUDARTAPI __cudaRegisterFatBinary(void* fat_binary) {
  auto* module = new Module;
  module->fat_binary = fat_binary;
  return reinterpret_cast<void**>(module);
}

CUDART_INTERNAL void CUDARTAPI __cudaRegisterFatBinaryEnd(void**) {}

// At exit the driver may be gone, and everything ends with the process. Only forgets the names, in case the code is
// unloaded.
CUDART_INTERNAL void CUDARTAPI __cudaUnregisterFatBinary(void** handle) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  const Module* module = reinterpret_cast<Module*>(handle);
  for (const void* host : module->hosts) {
    if (auto f = r.functions.find(host); f != r.functions.end() && f->second.module == module) r.functions.erase(f);
    if (auto v = r.variables.find(host); v != r.variables.end() && v->second.module == module) r.variables.erase(v);
  }
}

CUDART_INTERNAL void CUDARTAPI __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int,
                                                      uint3*, uint3*, dim3*, dim3*, int*) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto* module = reinterpret_cast<Module*>(handle);
  r.functions[host] = {module, name, nullptr};
  module->hosts.push_back(host);
}

CUDART_INTERNAL void CUDARTAPI __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, size_t bytes,
                                                 int, int) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto* module = reinterpret_cast<Module*>(handle);
  r.variables[host] = {module, name, nullptr, bytes};
  module->hosts.push_back(host);
}

CUDART_INTERNAL void CUDARTAPI __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                                                        size_t bytes, int, int) {
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  auto* module = reinterpret_cast<Module*>(handle);
  r.variables[host] = {module, name, host, bytes};
  module->hosts.push_back(host);
}

// Allocates the __managed__ variables of the module. The file's own type is char.
CUDART_INTERNAL char CUDARTAPI __cudaInitModule(void** handle) {
  if (simgpu_runtime::Ready() != CUDA_SUCCESS) return 0;
  Registry& r = TheRegistry();
  std::lock_guard<std::mutex> lock(r.mutex);
  for (auto& [host, variable] : r.variables) {
    if (variable.module != reinterpret_cast<Module*>(handle) || variable.managed == nullptr) continue;
    if (*variable.managed != nullptr) continue;
    CUdeviceptr address = 0;
    if (Driver().cuMemAllocManaged(&address, variable.bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) return 0;
    *variable.managed = reinterpret_cast<void*>(address);
  }
  return 1;
}
