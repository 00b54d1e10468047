#include "tools/run/run_setup.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "tools/cli/environment.h"

#ifndef HOTPACK_INSTALL_LIBDIR
#define HOTPACK_INSTALL_LIBDIR "lib"
#endif

namespace hotpack {
namespace {

namespace fs = std::filesystem;

std::string FirstThatExists(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::exists(path, error)) return fs::weakly_canonical(path, error).string();
  }
  return "";
}

// A page shows at most some tens of millions of events.
constexpr char kReportTraceMebibytes[] = "256";

// Variables that make frameworks ask the driver for every tensor, instead of dividing large pieces themselves. The
// user's settings stay. (CuPy has no such variable: hotpack.enable_cupy().)
constexpr const char* kNoCaching[][2] = {
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "1"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR",
     "cuda_async"},  // by cuMemAllocFromPoolAsync; "platform" maps memory itself (JAX 0.10)
    {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"},
};

// The package's part of `hotpack record --graph` (python/hotpack/_graph) reads these.
void PrepareGraph(const RunOptions& options) {
  std::error_code error;
  setenv("HOTPACK_GRAPH", fs::absolute(options.graph, error).c_str(), 1);  // the program may change its directory
  setenv("HOTPACK_GRAPH_STEP", std::to_string(options.graph_step).c_str(), 1);
  if (!options.graph_gpu.empty()) setenv("HOTPACK_GRAPH_GPU", options.graph_gpu.c_str(), 1);
}

// If the program's ranges matter, hotpack's is the injection library and passes ranges to the previous one.
void PrepareRanges(const RunOptions& options, const RunLibraries& libraries) {
  const bool wanted = !options.trace.empty() || options.variables.contains("HOTPACK_ITERATION_RANGE") ||
                      options.variables.contains("HOTPACK_INTERRUPT_RANGE") ||
                      getenv("HOTPACK_ITERATION_RANGE") != nullptr || getenv("HOTPACK_INTERRUPT_RANGE") != nullptr;
  if (!wanted || libraries.nvtx.empty()) return;
  const std::string there = Environment("NVTX_INJECTION64_PATH");
  std::error_code error;
  if (!there.empty() && !fs::equivalent(there, libraries.nvtx, error)) setenv("HOTPACK_NVTX_NEXT", there.c_str(), 1);
  setenv("NVTX_INJECTION64_PATH", libraries.nvtx.c_str(), 1);
}

}  // namespace

std::string FindProgram(const std::string& name, bool* found_but_not_executable) {
  *found_but_not_executable = false;
  const auto usable = [&](const std::string& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0) return false;
    if (!S_ISDIR(status.st_mode) && access(path.c_str(), X_OK) == 0) return true;
    *found_but_not_executable = true;
    return false;
  };
  if (name.find('/') != std::string::npos) return usable(name) ? name : "";
  if (name.empty()) return "";
  std::string path = Environment("PATH");
  if (getenv("PATH") == nullptr) path = "/usr/local/bin:/usr/bin:/bin";
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const std::string directory = end == begin ? "." : path.substr(begin, end - begin);
    if (usable(directory + "/" + name)) return directory + "/" + name;
    begin = end + 1;
  }
  return "";
}

RunLibraries FindLibraries() {
  std::error_code error;
  const std::string here = fs::read_symlink("/proc/self/exe", error).parent_path().string();
  const std::string up = here + "/..";
  const std::string installed = up + "/" + HOTPACK_INSTALL_LIBDIR;
  RunLibraries libraries;
  libraries.preload = FirstThatExists({up + "/lib/libhotpack_preload.so.0", installed + "/libhotpack_preload.so.0"});
  libraries.home = fs::weakly_canonical(up, error).string();
  // Of a wheel, of a checkout that contains its build, of an installation.
  for (const char* package : {"/..", "/../python/hotpack", "/share/hotpack/python/hotpack"}) {
    const std::string startup = up + package + "/_startup";
    if (libraries.python_startup.empty() && fs::exists(startup + "/sitecustomize.py", error)) {
      libraries.python_startup = fs::weakly_canonical(startup, error).string();
    }
  }
  libraries.nvtx = FirstThatExists({up + "/lib/libhotpack_nvtx.so.0", installed + "/libhotpack_nvtx.so.0"});
  const std::string driver = FirstThatExists({up + "/lib/simgpu/libcuda.so.1", installed + "/simgpu/libcuda.so.1",
                                              installed + "/hotpack/simgpu/libcuda.so.1"});
  if (driver.empty()) return libraries;
  // weakly_canonical follows links such as libcuda.so.1 -> libcuda.so.1.0; the directory is the same.
  libraries.simgpu_directory = fs::path(driver).parent_path().string();
  libraries.simgpu_witness = FirstThatExists({libraries.simgpu_directory + "/libsimgpu_witness.so"});
  const std::string cudart = libraries.simgpu_directory + "/libcudart.so.13";
  if (fs::exists(cudart, error)) libraries.simgpu_cudart = cudart;
  for (const char* name : {"/libcublasLt.so.13", "/libcublas.so.13", "/libcudnn.so.9"}) {
    const std::string path = libraries.simgpu_directory + name;
    if (fs::exists(path, error)) libraries.simgpu_others.push_back(path);
  }
  return libraries;
}

bool HasDriver() { return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

std::string CheckerReportPath(const std::string& directory) { return directory + "/checker"; }

std::string RecordingPath(const RunOptions& options, const std::string& directory) {
  if (options.trace.empty()) return options.report.empty() ? "" : directory + "/job.trace";
  std::error_code error;
  const fs::path absolute = fs::absolute(options.trace, error);     // the program may change its directory
  const fs::path followed = fs::weakly_canonical(absolute, error);  // a link's target is replaced
  return (error ? absolute : followed).string();
}

std::string PrepareEnvironment(const RunOptions& options, const RunLibraries& libraries, const std::string& directory) {
  std::vector<std::string> preload;
  if (options.simulate) preload.push_back(libraries.simgpu_witness);
  preload.push_back(libraries.preload);
  // A program's RPATH precedes LD_LIBRARY_PATH. A loaded library already satisfies its NEEDED entry by soname.
  if (options.simulate) {
    preload.push_back(libraries.simgpu_cudart);
    preload.insert(preload.end(), libraries.simgpu_others.begin(), libraries.simgpu_others.end());
  }
  for (const std::string& path : preload) {
    if (path.find_first_of(": ") != std::string::npos)
      return "LD_PRELOAD cannot hold a path with a colon or a space: " + path;
  }
  preload.push_back(Environment("LD_PRELOAD"));
  setenv("LD_PRELOAD", JoinPaths(preload).c_str(), 1);
  if (options.simulate) {
    setenv("LD_LIBRARY_PATH", JoinPaths({libraries.simgpu_directory, Environment("LD_LIBRARY_PATH")}).c_str(), 1);
    setenv("SIMGPU_REPORT_FILE", CheckerReportPath(directory).c_str(), 1);
    if (!options.memory.empty()) setenv("SIMGPU_MEMORY", options.memory.c_str(), 1);
    setenv("HOTPACK_WAIT_PLAN", "1", 0);  // times mean nothing there, and figures should be reproducible
  }
  // Without hotpack a program keeps its own allocator: the comparison is with what it does otherwise.
  const bool off = Environment("HOTPACK") == "0" && !options.record;
  if (!options.keep_caching && !off) {
    for (const auto& [name, value] : kNoCaching) setenv(name, value, 0);
  }
  const bool served = !off && !options.record && !options.doctor && !options.keep_caching;
  const bool starts_python = (served && !options.compatibility) || !options.graph.empty();
  if (starts_python && !libraries.python_startup.empty()) {
    setenv("PYTHONPATH", JoinPaths({libraries.python_startup, Environment("PYTHONPATH")}).c_str(), 1);
    setenv("HOTPACK_HOME", libraries.home.c_str(), 0);
  }
  setenv("HOTPACK_STATS_DIR", directory.c_str(), 1);
  if (options.record) setenv("HOTPACK", "record", 1);
  if (!options.graph.empty()) PrepareGraph(options);
  if (options.doctor) setenv("HOTPACK_DOCTOR", directory.c_str(), 1);
  if (!options.report.empty()) setenv("HOTPACK_REPORT", "1", 1);
  unsetenv("HOTPACK_TRACE");
  if (const std::string recording = RecordingPath(options, directory); !recording.empty()) {
    setenv("HOTPACK_TRACE", recording.c_str(), 1);
    if (options.trace.empty()) setenv("HOTPACK_TRACE_LIMIT_MB", kReportTraceMebibytes, 0);
  }
  PrepareRanges(options, libraries);
  for (const auto& [name, value] : options.variables) setenv(name.c_str(), value.c_str(), 1);
  if (!options.plan.empty()) {  // the program may change its directory
    std::error_code error;
    setenv("HOTPACK_PLAN", fs::absolute(options.plan, error).c_str(), 1);
  }
  return "";
}

}  // namespace hotpack
