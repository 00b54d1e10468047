// Modules and libraries: their kernels and variables. Nothing is compiled or run.
#include "simgpu/driver/module.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "simgpu/driver/api.h"

namespace simgpu {
namespace {

Library* FromModule(CUmodule handle) { return reinterpret_cast<Library*>(handle); }
Library* FromLibrary(CUlibrary handle) { return reinterpret_cast<Library*>(handle); }
Kernel* From(CUkernel handle) { return reinterpret_cast<Kernel*>(handle); }
Kernel* From(CUfunction handle) { return reinterpret_cast<Kernel*>(handle); }

CUresult Load(Driver& d, Library** result, const void* data, Context* context) {
  if (result == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto library = std::make_unique<Library>();
  if (!ReadImage(data, &library->image)) return CUDA_ERROR_INVALID_IMAGE;
  library->context = context;
  for (auto& [name, parameters] : library->image.kernels) {
    auto kernel = std::make_unique<Kernel>();
    kernel->name = name;
    kernel->library = library.get();
    kernel->parameters = parameters;
    d.kernels.insert(kernel.get());
    library->kernels.emplace(name, std::move(kernel));
  }
  *result = library.get();
  d.libraries.emplace(library.get(), std::move(library));
  return CUDA_SUCCESS;
}

CUresult LoadFile(Driver& d, Library** result, const char* path, Context* context) {
  if (result == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  FILE* file = fopen(path, "rbe");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::vector<char> data;
  char buffer[65536];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, file)) > 0;) data.insert(data.end(), buffer, buffer + got);
  fclose(file);
  data.resize(data.size() + 64);  // ends PTX text
  return Load(d, result, data.data(), context);
}

CUresult Unload(Driver& d, Library* library) {
  auto it = d.libraries.find(library);
  if (it == d.libraries.end()) return CUDA_ERROR_INVALID_HANDLE;
  for (const auto& [name, kernel] : library->kernels) d.kernels.erase(kernel.get());
  for (const auto& [name, address] : library->globals) {
    Allocation* allocation = d.memory.FindAllocationStart(address);
    if (allocation == nullptr) continue;
    d.checker.Returned(address, Teller::kDriver);
    d.memory.Free(allocation, &d.devices[allocation->device].physical);
  }
  d.libraries.erase(it);
  return CUDA_SUCCESS;
}

CUresult GetKernel(Driver& d, Library* library, const char* name, Kernel** result) {
  if (!d.libraries.contains(library)) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr || result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto it = library->kernels.find(name);
  if (it == library->kernels.end()) {
    if (!library->image.incomplete) return CUDA_ERROR_NOT_FOUND;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = name;
    kernel->library = library;
    kernel->known = false;
    d.kernels.insert(kernel.get());
    it = library->kernels.emplace(name, std::move(kernel)).first;
  }
  *result = it->second.get();
  return CUDA_SUCCESS;
}

CUresult GetGlobal(Driver& d, Library* library, const char* name, CUdeviceptr* address, size_t* bytes) {
  SIMGPU_CONTEXT(context);
  if (!d.libraries.contains(library)) return CUDA_ERROR_INVALID_HANDLE;
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  auto variable = library->image.variables.find(name);
  if (variable == library->image.variables.end()) return CUDA_ERROR_NOT_FOUND;
  uint64_t& base = library->globals[name];
  if (base == 0) {
    Allocation* allocation = AllocateOnDevice(d, context, variable->second.bytes);
    if (allocation == nullptr) {
      library->globals.erase(name);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    base = allocation->base;
    const std::vector<char>& initial = variable->second.initial;
    if (!initial.empty()) MoveBytes(d, base, reinterpret_cast<uint64_t>(initial.data()), initial.size());
  }
  if (address != nullptr) *address = base;
  if (bytes != nullptr) *bytes = variable->second.bytes;
  return CUDA_SUCCESS;
}

CUresult ParameterInfo(Driver& d, Kernel* kernel, size_t index, size_t* offset, size_t* bytes) {
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  if (offset == nullptr || index >= kernel->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->parameters[index].offset;
  if (bytes != nullptr) *bytes = kernel->parameters[index].bytes;
  return CUDA_SUCCESS;
}

// Name and library of a kernel, and the number of kernels of a library.
CUresult GetName(Driver& d, Kernel* kernel, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *name = kernel->name.c_str();
  return CUDA_SUCCESS;
}

CUresult GetLibrary(Driver& d, Kernel* kernel, Library** library) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(kernel)) return CUDA_ERROR_INVALID_HANDLE;
  *library = kernel->library;
  return CUDA_SUCCESS;
}

CUresult GetCount(Driver& d, Library* library, unsigned* count) {
  if (count == nullptr || !d.libraries.contains(library)) return CUDA_ERROR_INVALID_VALUE;
  *count = library->kernels.size();
  return CUDA_SUCCESS;
}

CUresult Enumerate(Driver& d, Library* library, Kernel** result, unsigned count) {
  if (!d.libraries.contains(library)) return CUDA_ERROR_INVALID_HANDLE;
  if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned i = 0;
  for (const auto& [name, kernel] : library->kernels) {
    if (i < count) result[i++] = kernel.get();
  }
  return CUDA_SUCCESS;
}

}  // namespace

#define SIMGPU_MODULE_LOAD(name, parameters, call) \
  SIMGPU_API name parameters {                     \
    SIMGPU_ENTER(name);                            \
    SIMGPU_CONTEXT(context);                       \
    SIMGPU_UNSAFE();                               \
    return call;                                   \
  }

SIMGPU_MODULE_LOAD(cuModuleLoad, (CUmodule * module, const char* path),
                   LoadFile(d, reinterpret_cast<Library**>(module), path, context))
SIMGPU_MODULE_LOAD(cuModuleLoadData, (CUmodule * module, const void* data),
                   Load(d, reinterpret_cast<Library**>(module), data, context))
SIMGPU_MODULE_LOAD(cuModuleLoadDataEx, (CUmodule * module, const void* data, unsigned, CUjit_option*, void**),
                   Load(d, reinterpret_cast<Library**>(module), data, context))
SIMGPU_MODULE_LOAD(cuModuleLoadFatBinary, (CUmodule * module, const void* data),
                   Load(d, reinterpret_cast<Library**>(module), data, context))

SIMGPU_API cuModuleUnload(CUmodule module) {
  SIMGPU_ENTER(cuModuleUnload);
  SIMGPU_UNSAFE();
  return Unload(d, FromModule(module));
}

SIMGPU_API cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  SIMGPU_ENTER(cuModuleGetFunction);
  return GetKernel(d, FromModule(module), name, reinterpret_cast<Kernel**>(function));
}

SIMGPU_API cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  SIMGPU_ENTER(cuModuleGetFunctionCount);
  return GetCount(d, FromModule(module), count);
}

SIMGPU_API cuModuleEnumerateFunctions(CUfunction* functions, unsigned count, CUmodule module) {
  SIMGPU_ENTER(cuModuleEnumerateFunctions);
  return Enumerate(d, FromModule(module), reinterpret_cast<Kernel**>(functions), count);
}

SIMGPU_API cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module, const char* name) {
  SIMGPU_ENTER(cuModuleGetGlobal);
  return GetGlobal(d, FromModule(module), name, address, bytes);
}

SIMGPU_API cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  SIMGPU_ENTER(cuModuleGetLoadingMode);
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

SIMGPU_API cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**, unsigned, CUlibraryOption*,
                             void**, unsigned) {
  SIMGPU_ENTER(cuLibraryLoadData);
  SIMGPU_STRICTLY_UNSAFE();
  return Load(d, reinterpret_cast<Library**>(library), code, nullptr);
}

SIMGPU_API cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**, unsigned,
                                 CUlibraryOption*, void**, unsigned) {
  SIMGPU_ENTER(cuLibraryLoadFromFile);
  SIMGPU_STRICTLY_UNSAFE();
  return LoadFile(d, reinterpret_cast<Library**>(library), path, nullptr);
}

SIMGPU_API cuLibraryUnload(CUlibrary library) {
  SIMGPU_ENTER(cuLibraryUnload);
  SIMGPU_STRICTLY_UNSAFE();
  return Unload(d, FromLibrary(library));
}

SIMGPU_API cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  SIMGPU_ENTER(cuLibraryGetKernel);
  return GetKernel(d, FromLibrary(library), name, reinterpret_cast<Kernel**>(kernel));
}

SIMGPU_API cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  SIMGPU_ENTER(cuLibraryGetKernelCount);
  return GetCount(d, FromLibrary(library), count);
}

SIMGPU_API cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  SIMGPU_ENTER(cuLibraryEnumerateKernels);
  return Enumerate(d, FromLibrary(library), reinterpret_cast<Kernel**>(kernels), count);
}

SIMGPU_API cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  SIMGPU_ENTER(cuLibraryGetModule);
  if (module == nullptr || !d.libraries.contains(FromLibrary(library))) return CUDA_ERROR_INVALID_HANDLE;
  *module = reinterpret_cast<CUmodule>(library);
  return CUDA_SUCCESS;
}

SIMGPU_API cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary library, const char* name) {
  SIMGPU_ENTER(cuLibraryGetGlobal);
  return GetGlobal(d, FromLibrary(library), name, address, bytes);
}

SIMGPU_API cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  SIMGPU_ENTER(cuKernelGetFunction);
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!d.kernels.contains(From(kernel))) return CUDA_ERROR_INVALID_HANDLE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}

SIMGPU_API cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  SIMGPU_ENTER(cuKernelGetLibrary);
  return GetLibrary(d, From(kernel), reinterpret_cast<Library**>(library));
}

SIMGPU_API cuFuncGetModule(CUmodule* module, CUfunction function) {
  SIMGPU_ENTER(cuFuncGetModule);
  return GetLibrary(d, From(function), reinterpret_cast<Library**>(module));
}

SIMGPU_API cuKernelGetName(const char** name, CUkernel kernel) {
  SIMGPU_ENTER(cuKernelGetName);
  return GetName(d, From(kernel), name);
}

SIMGPU_API cuFuncGetName(const char** name, CUfunction function) {
  SIMGPU_ENTER(cuFuncGetName);
  return GetName(d, From(function), name);
}

SIMGPU_API cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* bytes) {
  SIMGPU_ENTER(cuKernelGetParamInfo);
  return ParameterInfo(d, From(kernel), index, offset, bytes);
}

SIMGPU_API cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  SIMGPU_ENTER(cuFuncGetParamInfo);
  return ParameterInfo(d, From(function), index, offset, bytes);
}

}  // namespace simgpu
