#include "tools/check/kit.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "tools/check/child.h"
#include "tools/cli/environment.h"

namespace hotpack::check {
namespace {

namespace fs = std::filesystem;

// Prints Python's directories of packages, one per line.
constexpr char kPythonScript[] =
    "import site,sys\n"
    "for d in site.getsitepackages()+[site.getusersitepackages()]: print(d)";

bool HoldsLibraries(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("libcublas.so", 0) == 0 || name.rfind("libcudnn.so", 0) == 0) return true;
  }
  return false;
}

std::vector<fs::path> Children(const fs::path& directory) {
  std::vector<fs::path> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) children.push_back(entry.path());
  std::sort(children.begin(), children.end(), std::greater<>());  // the newest version first
  return children;
}

// Removes the caller's settings for other purposes, so that they do not change the checks: all of hotpack and of the
// simulated device, and what changes PyTorch's memory.
void RemoveSettings(std::map<std::string, std::string>* environment) {
  for (char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::string_view name = text.substr(0, text.find('='));
    if (name == "HOTPACK" || name.starts_with("HOTPACK_") || name.starts_with("SIMGPU_")) {
      (*environment)[std::string(name)] = "";
    }
  }
  for (const char* name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"}) {
    (*environment)[name] = "";
  }
}

}  // namespace

bool Kit::Has(const std::string& program) const { return access(Program(program).c_str(), X_OK) == 0; }

bool Kit::HasSimulatedDevice() const { return access((SimulatedDevice() + "/libcuda.so.1").c_str(), R_OK) == 0; }

std::string Kit::TorchDirectory() const {
  for (const std::string& place : {root + "/bench/torch", root + "/../bench/torch"}) {
    if (access((place + "/train.py").c_str(), R_OK) == 0) return place;
  }
  return "";
}

Kit FindKit() {
  std::error_code error;
  return {fs::read_symlink("/proc/self/exe", error).parent_path().parent_path().string()};
}

std::vector<std::string> FindLibraryDirectories(const std::string& scratch) {
  std::vector<fs::path> candidates;
  for (const fs::path& path : Children("/usr/local")) {
    if (path.filename().string().rfind("cuda", 0) == 0) candidates.push_back(path / "lib64");
  }
  const Outcome python = RunChild({"python3", "-c", kPythonScript}, {{"LD_PRELOAD", ""}}, 10, scratch);
  std::istringstream lines(python.code == 0 ? python.out : "");
  for (std::string line; std::getline(lines, line);) {
    for (const fs::path& package : Children(fs::path(line) / "nvidia")) candidates.push_back(package / "lib");
  }
  std::vector<std::string> found;
  std::set<std::string> seen;
  for (const fs::path& candidate : candidates) {
    std::error_code error;
    if (!HoldsLibraries(candidate)) continue;
    const std::string path = fs::canonical(candidate, error).string();
    if (!error && seen.insert(path).second) found.push_back(path);
  }
  return found;
}

std::map<std::string, std::string> LibraryEnvironment(const Kit& kit, const std::vector<std::string>& directories,
                                                      bool simulated) {
  std::vector<std::string> path;
  if (simulated) path.push_back(kit.SimulatedDevice());
  path.push_back(Environment("LD_LIBRARY_PATH"));
  path.push_back(kit.root + "/lib");
  path.insert(path.end(), directories.begin(), directories.end());
  path.push_back(kit.root + "/lib/cuda");  // last: the machine's own runtime is preferred
  std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", JoinPaths(path)}, {"LD_PRELOAD", ""}};
  RemoveSettings(&environment);
  // A program's own search path precedes LD_LIBRARY_PATH. A preloaded library already satisfies it.
  if (simulated) environment["LD_PRELOAD"] = kit.SimulatedDevice() + "/libcudart.so.13";
  return environment;
}

std::map<std::string, std::string> PythonEnvironment(const Kit& kit, bool simulated) {
  std::map<std::string, std::string> environment = {
      {"LD_LIBRARY_PATH", Environment("LD_LIBRARY_PATH")}, {"LD_PRELOAD", ""}, {"PYTHONDONTWRITEBYTECODE", "1"}};
  RemoveSettings(&environment);
  if (!simulated) return environment;
  environment["LD_LIBRARY_PATH"] = JoinPaths({kit.SimulatedDevice(), Environment("LD_LIBRARY_PATH")});
  std::vector<std::string> preloaded;
  for (const char* name : {"libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libcudnn.so.9"}) {
    const std::string library = kit.SimulatedDevice() + "/" + name;
    if (access(library.c_str(), R_OK) == 0) preloaded.push_back(library);
  }
  environment["LD_PRELOAD"] = JoinPaths(preloaded);
  return environment;
}

std::vector<std::string> FindTraces(const std::string& directory) {
  std::vector<std::string> traces;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string suffix = entry.path().extension().string();
    if (suffix == ".csv" || suffix == ".trace") traces.push_back(entry.path().string());
  }
  std::sort(traces.begin(), traces.end());
  return traces;
}

}  // namespace hotpack::check
