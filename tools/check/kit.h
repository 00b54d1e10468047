// What gpu_check works with: programs, libraries and traces that lie next to it, in a build tree or in a kit that was
// carried here:
//
//   bin/                   gpu_check, hotpack, request_bench, gpu_probe*, train_*, the benchmarks
//   lib/                   libhotpack_preload.so.0, libhotpack.so.0, libhotpack_torch.so.0
//   lib/bench/, .../cxx/   what the benchmarks alone are linked with; a C++ library where the machine's does not do (kits only)
//   lib/simgpu/            the simulated device
//   lib/cuda/              libcudart.so.13, for a machine that has none (kits only)
//   share/hotpack/traces/  small recordings
//   bench/torch, python/   the training loops and the package; of a build tree those of the checkout around it
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack::check {

struct Kit {
  std::string root;  // absolute
  std::string Program(const std::string& name) const { return root + "/bin/" + name; }
  bool Has(const std::string& program) const;  // and it can be executed
  std::string SimulatedDevice() const { return root + "/lib/simgpu"; }
  bool HasSimulatedDevice() const;
  std::string BenchmarkLibraries() const { return root + "/lib/bench"; }
  // bench/torch, here or in the checkout around a build tree; empty if there is none.
  std::string TorchDirectory() const;
};

// The kit of the running executable.
Kit FindKit();

// Directories with cuBLAS or cuDNN, in the usual places: /usr/local/cuda*/lib64 and Python's packages. Those that the
// loader searches anyway are not among them.
std::vector<std::string> FindLibraryDirectories(const std::string& scratch);

// What a program is started with so that it finds its libraries; settings of hotpack and of the simulated device are
// removed (empty values). `simulated`: the simulated device's come first, also for
// programs whose own search path names others.
std::map<std::string, std::string> LibraryEnvironment(const Kit& kit, const std::vector<std::string>& directories,
                                                      bool simulated);

// The same for Python, which finds its libraries itself: the search path is the caller's. On the simulated device its
// libraries come first, also where Python's packages name others.
std::map<std::string, std::string> PythonEnvironment(const Kit& kit, bool simulated);

// The recordings (.csv, .trace) directly in `directory`, sorted by name. Empty if it cannot be read.
std::vector<std::string> FindTraces(const std::string& directory);

}  // namespace hotpack::check
