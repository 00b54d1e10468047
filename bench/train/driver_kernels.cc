#include "bench/train/driver_kernels.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/train/driver.h"
#include "bench/train/launch_stream.h"

// The fat binary of the kernels, made by nvcc.
asm(R"(
  .section .rodata
  .balign 64
  .globl hotpack_train_fatbin
  .hidden hotpack_train_fatbin
hotpack_train_fatbin:
  .incbin ")" HOTPACK_TRAIN_FATBIN R"("
  .text
)");
extern "C" const unsigned char hotpack_train_fatbin[];

namespace hotpack::train {
namespace {

struct NamedKernel {
  std::string name;  // mangled
  CUfunction function;
};

std::vector<NamedKernel> LoadKernels() {
  const Driver& driver = GetDriver();
  CUmodule module = nullptr;
  CheckDriver(driver.cuModuleLoadData_call(&module, hotpack_train_fatbin), "cuModuleLoadData");
  unsigned count = 0;
  CheckDriver(driver.cuModuleGetFunctionCount_call(&count, module), "cuModuleGetFunctionCount");
  std::vector<CUfunction> functions(count);
  CheckDriver(driver.cuModuleEnumerateFunctions_call(functions.data(), count, module), "cuModuleEnumerateFunctions");
  std::vector<NamedKernel> kernels;
  for (CUfunction function : functions) {
    const char* name = nullptr;
    CheckDriver(driver.cuFuncGetName_call(&name, function), "cuFuncGetName");
    kernels.push_back({name, function});
  }
  return kernels;
}

// "... Launch(...) [with auto Function = hotpack::train::{anonymous}::FillElement; ...]" has the function FillElement.
std::string FunctionOf(const std::string& launcher) {
  const size_t argument = launcher.find("Function = ");
  const size_t end = argument == std::string::npos ? argument : launcher.find_first_of(";,]", argument);
  if (end == std::string::npos) throw std::runtime_error("no function in " + launcher);
  const size_t before = launcher.find_last_of(": =&", end - 1);
  return launcher.substr(before + 1, end - before - 1);
}

}  // namespace

// The kernels' mangled names contain the name of their function in a nested name, its length in front and an E behind
// it (Itanium C++ ABI, section 5.1.2): 11FillElementE.
DriverKernel FindDriverKernel(const char* launcher) {
  static const std::vector<NamedKernel> kernels = LoadKernels();
  const std::string function = FunctionOf(launcher);
  const std::string mangled = std::to_string(function.size()) + function + "E";
  DriverKernel found = nullptr;
  for (const NamedKernel& kernel : kernels) {
    if (kernel.name.find(mangled) == std::string::npos) continue;
    if (found != nullptr) throw std::runtime_error("more than one kernel of " + function);
    found = kernel.function;
  }
  if (found == nullptr) throw std::runtime_error("no kernel of " + function);
  return found;
}

void LaunchDriverKernel(DriverKernel kernel, unsigned blocks, unsigned threads, void** arguments) {
  CheckDriver(GetDriver().cuLaunchKernel_call(static_cast<CUfunction>(kernel), blocks, 1, 1, threads, 1, 1, 0,
                                              static_cast<CUstream>(launch_stream), arguments, nullptr),
              "kernel launch");
}

}  // namespace hotpack::train
