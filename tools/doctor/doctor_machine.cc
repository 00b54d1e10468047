// The machine, the environment and the executable, for `hotpack doctor`.
#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tools/doctor/doctor_facts.h"

namespace hotpack {
namespace {

using Json = nlohmann::json;

template <typename Function>
Function Find(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

std::string NameOf(void* library, CUresult result) {
  const char* text = nullptr;
  const auto get = Find<decltype(&cuGetErrorName)>(library, "cuGetErrorName");
  if (get != nullptr) get(result, &text);
  return text != nullptr ? text : absl::StrCat("CUresult ", static_cast<int>(result));
}

Json AskDevice(void* library, int ordinal) {
  CUdevice device = 0;
  char name[256] = "";
  size_t bytes = 0;
  int virtual_memory = 0, managed = 0;
  const auto get = Find<decltype(&cuDeviceGet)>(library, "cuDeviceGet");
  const auto get_name = Find<decltype(&cuDeviceGetName)>(library, "cuDeviceGetName");
  const auto total = Find<decltype(&cuDeviceTotalMem)>(library, "cuDeviceTotalMem_v2");
  const auto attribute = Find<decltype(&cuDeviceGetAttribute)>(library, "cuDeviceGetAttribute");
  if (get == nullptr || get(&device, ordinal) != CUDA_SUCCESS) return {};
  if (get_name != nullptr) get_name(name, sizeof(name), device);
  if (total != nullptr) total(&bytes, device);
  if (attribute != nullptr) {
    attribute(&virtual_memory, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device);
    attribute(&managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device);
  }
  return {{"name", name}, {"bytes", bytes}, {"virtual_memory", virtual_memory != 0}, {"managed_faults", managed != 0}};
}

// In a child, because a driver may crash or hang.
Json AskDriver(const std::string& path) {
  Json answer = {{"driver", ""}, {"version", 0}, {"failure", ""}, {"devices", Json::array()}};
  void* library = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    answer["failure"] = dlerror();
    return answer;
  }
  Dl_info info = {};
  void* init_address = dlsym(library, "cuInit");
  answer["driver"] = init_address != nullptr && dladdr(init_address, &info) != 0 ? info.dli_fname : path.c_str();
  int version = 0, count = 0;
  if (const auto get = Find<decltype(&cuDriverGetVersion)>(library, "cuDriverGetVersion")) get(&version);
  answer["version"] = version;
  const auto init = reinterpret_cast<decltype(&cuInit)>(init_address);
  const CUresult result = init != nullptr ? init(0) : CUDA_ERROR_NOT_FOUND;
  if (result != CUDA_SUCCESS) {
    answer["failure"] = "cuInit answers " + NameOf(library, result);
    return answer;
  }
  if (const auto get = Find<decltype(&cuDeviceGetCount)>(library, "cuDeviceGetCount")) get(&count);
  if (count == 0) answer["failure"] = "there is no device";
  for (int i = 0; i < count; ++i) answer["devices"].push_back(AskDevice(library, i));
  return answer;
}

// Returns AskDriver's answer from a child; nothing if the child did not survive.
Json AskDriverInChild(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string text = AskDriver(path).dump(-1, ' ', false, Json::error_handler_t::replace);
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char piece[4096];
  for (ssize_t got; child > 0 && (got = read(ends[0], piece, sizeof(piece))) > 0;)
    text.append(piece, static_cast<size_t>(got));
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return Json::parse(text, nullptr, false);
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  ..."
std::string KernelModule() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line, word;
  std::getline(file, line);
  for (std::istringstream words(line); words >> word;) {
    if (!word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0 && absl::StrContains(word, "."))
      return word;
  }
  return "";
}

std::string BeginOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string begin(4096, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return begin;
}

void LookAtElf(const std::string& path, ProgramFacts* facts) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header = {};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  facts->is_elf = true;
  facts->is_other_machine = header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64;
  if (facts->is_other_machine) return;
  facts->is_static = true;
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment = {};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + static_cast<uint64_t>(i) * header.e_phentsize));
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof(segment)) || segment.p_type != PT_INTERP) continue;
    constexpr size_t kLongest = 4096;
    std::string linker(std::min<size_t>(segment.p_filesz, kLongest), '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(linker.data(), static_cast<std::streamsize>(linker.size()));
    facts->is_static = false;
    facts->is_other_library = !absl::StrContains(linker, "ld-linux");
  }
}

}  // namespace

MachineFacts AskMachine(const RunLibraries& libraries, bool simulate) {
  MachineFacts facts;
  facts.simulated = simulate;
  facts.preload = libraries.preload;
  if (simulate && libraries.simgpu_directory.empty()) {
    facts.failure = "the simulated device was not found next to this command";
    return facts;
  }
  const Json answer = AskDriverInChild(simulate ? libraries.simgpu_directory + "/libcuda.so.1" : "libcuda.so.1");
  if (!answer.is_object()) {
    facts.failure = "the driver library ended the process that loaded it";
    return facts;
  }
  facts.driver = answer["driver"];
  facts.driver_version = answer["version"];
  facts.failure = answer["failure"];
  if (!simulate) facts.kernel_module = KernelModule();
  for (const Json& device : answer["devices"]) {
    if (device.is_object())
      facts.devices.push_back({device["name"], device["bytes"], device["virtual_memory"], device["managed_faults"]});
  }
  return facts;
}

std::vector<std::pair<std::string, std::string>> RelevantEnvironment() {
  std::vector<std::pair<std::string, std::string>> found;
  constexpr const char* kNames[] = {
      "LD_PRELOAD",          "LD_AUDIT", "LD_LIBRARY_PATH", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
      "CUDA_VISIBLE_DEVICES"};
  constexpr const char* kPrefixes[] = {"HOTPACK", "PYTORCH_", "XLA_PYTHON_CLIENT_", "SIMGPU_", "NV_SANITIZER"};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* end = strchr(*entry, '=');
    if (end == nullptr || end[1] == '\0') continue;
    const std::string name(*entry, static_cast<size_t>(end - *entry));
    const bool relevant =
        std::any_of(std::begin(kNames), std::end(kNames), [&](const char* known) { return name == known; }) ||
        std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                    [&](const char* prefix) { return absl::StartsWith(name, prefix); });
    if (relevant) found.emplace_back(name, end + 1);
  }
  std::sort(found.begin(), found.end());
  return found;
}

ProgramFacts LookAtProgram(const std::string& path) {
  ProgramFacts facts;
  facts.path = path;
  std::string executable = path;
  std::string begin = BeginOf(executable);
  constexpr int kMaxInterpreters = 4;  // the kernel's limit
  for (int i = 0; i < kMaxInterpreters && absl::StartsWith(begin, "#!"); ++i) {
    std::istringstream line(begin.substr(2, begin.find('\n') - 2));
    std::string word;
    line >> word;
    const bool by_env = absl::EndsWith(word, "/env");
    while (by_env && line >> word && (word[0] == '-' || absl::StrContains(word, "="))) {
    }
    bool not_executable = false;
    executable = FindProgram(word, &not_executable);
    facts.interpreter = executable.empty() ? word : executable;
    begin = BeginOf(executable);
  }
  if (!absl::StartsWith(begin, ELFMAG)) return facts;
  LookAtElf(executable, &facts);
  struct stat status = {};
  const bool known = stat(executable.c_str(), &status) == 0;
  const bool becomes_another = known && (((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) ||
                                         ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()));
  facts.is_privileged =
      becomes_another || (getuid() != 0 && getxattr(executable.c_str(), "security.capability", nullptr, 0) > 0);
  return facts;
}

}  // namespace hotpack
