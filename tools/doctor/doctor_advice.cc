#include "tools/doctor/doctor_advice.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "preload/process/option_table.h"
#include "tools/cli/count_text.h"

namespace hotpack {
namespace {

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string NameOf(const ProcessFacts& process) {
  return absl::StrCat("process ", process.pid, " (", FileName(process.program), ")");
}

uint64_t Calls(const ProcessFacts& process, const std::string& prefix) {
  uint64_t calls = 0;
  for (const auto& [symbol, count] : process.handed_on) calls += absl::StartsWith(symbol, prefix) ? count : 0;
  return calls;
}

// Returns whether the file is mapped more than once, by its name.
std::string LoadedTwice(const ProcessFacts& process, const std::string& name) {
  std::map<std::string, int> times;
  for (const std::string& path : process.mapped) {
    if (absl::StartsWith(FileName(path), name) && ++times[FileName(path)] == 2) return path;
  }
  return "";
}

void OfMachine(const MachineFacts& machine, Advice* advice) {
  if (machine.preload.empty()) {
    advice->to_do.push_back("libhotpack_preload.so.0 is not next to this command (../lib): install hotpack as a whole");
  }
  if (!machine.failure.empty()) {
    advice->to_do.push_back(machine.driver.empty() && !machine.simulated
                                ? "There is no NVIDIA driver here (" + machine.failure +
                                      "): --simulate uses a simulated device, which needs none"
                                : "The driver cannot be used: " + machine.failure);
  }
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    if (machine.devices[i].virtual_memory) continue;
    advice->to_do.push_back(absl::StrCat("Device ", i,
                                         " has no virtual memory management, of which arenas are made: "
                                         "hotpack run --arena plain takes one allocation instead"));
  }
}

void OfVariable(const std::string& name, const std::string& value, Advice* advice) {
  const auto note = [&](const std::string& text) { advice->notes.push_back(absl::StrCat(name, " is set: ", text)); };
  if (name == "HOTPACK" && value != "1") {
    advice->to_do.push_back(absl::StrCat("HOTPACK=", value, " is set, so nothing is served: unset HOTPACK"));
  } else if (absl::StartsWith(name, "HOTPACK") && !IsKnownVariable(name.c_str(), name.size())) {
    const char* nearest = NearestVariable(name.c_str(), name.size());
    advice->to_do.push_back(absl::StrCat(name, " is no variable of hotpack's", nearest != nullptr ? ": is " : "",
                                         nearest != nullptr ? nearest : "",
                                         nearest != nullptr ? " meant?" : ": unset it"));
  } else if (name == "LD_AUDIT") {
    note("an auditing library may change what a name is bound to; if something is missing below, try without it");
  } else if (name == "LD_PRELOAD") {
    note("these libraries are loaded behind hotpack's, and get the calls that it hands on");
  } else if (name == "CUDA_INJECTION64_PATH") {
    note(
        "a profiler is injected, and CUPTI is its: hotpack gets no kernel names from it. Where it is "
        "compute-sanitizer, nothing is served");
  } else if (name == "NVTX_INJECTION64_PATH") {
    note("ranges of NVTX go to that library first");
  } else if (name == "PYTORCH_NO_CUDA_MEMORY_CACHING" && value == "0") {
    advice->to_do.push_back(
        "PYTORCH_NO_CUDA_MEMORY_CACHING=0 keeps PyTorch's own caching, so hotpack sees its segments and not the "
        "tensors: unset it");
  } else if (name == "PYTORCH_ALLOC_CONF" || name == "PYTORCH_CUDA_ALLOC_CONF") {
    note("its settings are of PyTorch's caching, which is off under hotpack run; they do nothing there");
  }
}

void OfProgram(const ProgramFacts& program, Advice* advice) {
  const std::string name = program.interpreter.empty() ? program.path : program.interpreter;
  if (program.is_static) {
    advice->to_do.push_back(
        name +
        " is linked fully statically, so nothing can be preloaded: link it dynamically (libcudart may be static)");
  }
  if (program.is_other_machine)
    advice->to_do.push_back(name + " is not a program for x86-64, which is all that hotpack knows");
  if (program.is_other_library)
    advice->to_do.push_back(name + " uses another C library than glibc, for which hotpack is not built");
  if (program.is_privileged) {
    advice->to_do.push_back(
        name +
        " is setuid, setgid or has capabilities, so the dynamic linker ignores LD_PRELOAD: start it as the user "
        "that it becomes");
  }
}

void OfHooks(const ProcessFacts& process, Advice* advice) {
  const std::string name = NameOf(process);
  if (!process.enabled) {
    advice->to_do.push_back(
        name + " is left alone: by HOTPACK=0, HOTPACK_ONLY, HOTPACK_EXCEPT, or because a memory checker is in it");
  }
  if (const std::string path = LoadedTwice(process, "libcuda.so"); !path.empty()) {
    advice->to_do.push_back(absl::StrCat(name, " has ", path,
                                         " loaded twice: something uses dlmopen, and what it asks its copy for passes "
                                         "hotpack by; load that library by dlopen"));
  }
  if (!process.unknown_variants.empty()) {
    // Such functions are the 32-bit first versions, which hotpack does not hook, or newer than hotpack. They do no harm
    // if they are never called.
    std::vector<std::string>* list = process.stats.requests == 0 ? &advice->to_do : &advice->notes;
    list->push_back(
        absl::StrCat(name, " got variants of functions from the driver that hotpack does not serve: ",
                     absl::StrJoin(process.unknown_variants, ", "),
                     " (32-bit first versions, or newer than this hotpack); use the current ones, or a newer hotpack"));
  }
  if (!process.not_hooked.empty()) {
    advice->notes.push_back(absl::StrCat(name, " looked up functions of this kind that hotpack does not hook: ",
                                         absl::StrJoin(process.not_hooked, ", ")));
  }
  if (process.deepbind)
    advice->notes.push_back(name + " loads a library with RTLD_DEEPBIND, which hotpack takes out: its calls are seen");
  if (process.full) advice->notes.push_back(name + " looked up more than could be noted; the lists are not complete");
}

void OfRequests(const ProcessFacts& process, Advice* advice) {
  const std::string name = NameOf(process);
  const uint64_t freed = Calls(process, "cuMemFree"), asked = Calls(process, "cuMemAlloc");
  if (freed > asked) {
    advice->notes.push_back(absl::StrCat(name, " released at least ", CountText(freed - asked, "block"),
                                         " not asked for through the hooks (a graph's, another process's, or of a "
                                         "library that passes hotpack by)"));
  }
  if (process.enabled && process.stats.requests == 0 && process.stats.passed_through > 0) {
    advice->to_do.push_back(absl::StrCat("No request of ", name, " was served, and ",
                                         CountText(process.stats.passed_through, "request"),
                                         " left to the driver: see docs/hooks.md, What passes through"));
  } else if (process.stats.passed_through > 0) {
    advice->notes.push_back(absl::StrCat(process.stats.passed_through, " of ",
                                         CountText(process.stats.requests + process.stats.passed_through, "request"),
                                         " of ", name, " left to the driver"));
  }
  if (const uint64_t managed = Calls(process, "cuMemAllocManaged"); managed > 0) {
    advice->notes.push_back(
        absl::StrCat(name, " asked ", CountText(managed, "time"), " for managed memory, which is the driver's"));
  }
  if (const uint64_t own = Calls(process, "cuMemCreate"); own > 0) {
    advice->notes.push_back(
        absl::StrCat(name, " made ", own,
                     " pieces of virtual memory itself (expandable segments, NCCL), which hotpack does "
                     "not plan"));
  }
  for (const std::string& path : process.mapped) {
    if (!absl::StartsWith(FileName(path), "libcupti.so")) continue;
    advice->notes.push_back(name + " has " + FileName(path) +
                            " loaded: while the program profiles itself, CUPTI is taken");
    break;
  }
}

}  // namespace

Advice Advise(const Diagnosis& diagnosis) {
  Advice advice;
  OfMachine(diagnosis.machine, &advice);
  for (const auto& [name, value] : diagnosis.environment) OfVariable(name, value, &advice);
  if (!diagnosis.ran) return advice;
  OfProgram(diagnosis.program, &advice);
  for (const MissedProcess& missed : diagnosis.missed) {
    advice.to_do.push_back(
        absl::StrCat("process ", missed.pid, " (", FileName(missed.program),
                     ") has the driver and not hotpack: LD_PRELOAD was taken out of its environment, or its "
                     "executable cannot be preloaded"));
  }
  bool asked = false;
  for (const ProcessFacts& process : diagnosis.processes) {
    if (!process.driver) continue;
    OfHooks(process, &advice);
    OfRequests(process, &advice);
    asked = asked || process.stats.requests + process.stats.passed_through > 0;
  }
  if (!asked && advice.to_do.empty()) {
    advice.to_do.push_back("No process asked for device memory: run what uses the device, for long enough");
  }
  if (diagnosis.exit_code != 0) {
    advice.to_do.push_back(absl::StrCat("The program ended with exit code ", diagnosis.exit_code,
                                        ": see whether it does so without hotpack too"));
  }
  return advice;
}

}  // namespace hotpack
