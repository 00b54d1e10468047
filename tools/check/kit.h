// The files that gpu_check uses: programs, libraries and traces next to it, in a build tree or in a kit from another
// machine:
//
//   bin/                   gpu_check, hotpack, request_bench, gpu_probe*, train_*, the benchmarks
//   lib/                   libhotpack_preload.so.0, libhotpack.so.0, libhotpack_torch.so.0
//   lib/bench/, .../cxx/   libraries of the benchmarks; a C++ library if the machine's is too old (kits only)
//   lib/simgpu/            the simulated device
//   lib/cuda/              libcudart.so.13, for a machine without it (kits only)
//   share/hotpack/traces/  small recordings
//   bench/torch, python/   the training loops and the package; for a build tree those of its checkout
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack::check {

struct Kit {
  std::string root;  // absolute
  std::string Program(const std::string& name) const { return root + "/bin/" + name; }
  bool Has(const std::string& program) const;  // the program exists and is executable
  std::string SimulatedDevice() const { return root + "/lib/simgpu"; }
  bool HasSimulatedDevice() const;
  std::string BenchmarkLibraries() const { return root + "/lib/bench"; }
  // Returns bench/torch, here or in the checkout around a build tree; empty if there is none.
  std::string TorchDirectory() const;
};

// Returns the kit of the running executable.
Kit FindKit();

// Returns directories with cuBLAS or cuDNN from the usual places: /usr/local/cuda*/lib64 and Python's packages. Omits
// those that the loader searches anyway.
std::vector<std::string> FindLibraryDirectories(const std::string& scratch);

// Returns the environment in which a program finds its libraries. Removes settings of hotpack and of the simulated
// device (empty values). `simulated`: the simulated device's libraries come first, also for programs with other search
// paths.
std::map<std::string, std::string> LibraryEnvironment(const Kit& kit, const std::vector<std::string>& directories,
                                                      bool simulated);

// As LibraryEnvironment for Python, which finds its libraries itself: keeps the caller's search path. On the simulated
// device its libraries come first, also where Python's packages name others.
std::map<std::string, std::string> PythonEnvironment(const Kit& kit, bool simulated);

// Returns the recordings (.csv, .trace) directly in `directory`, sorted by name. Empty if it cannot be read.
std::vector<std::string> FindTraces(const std::string& directory);

}  // namespace hotpack::check
