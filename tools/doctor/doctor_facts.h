// What `hotpack doctor` finds out: facts, not yet judged (tools/doctor/doctor_advice.h).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/include/hotpack.h"
#include "tools/run/run_setup.h"

namespace hotpack {

struct DeviceFacts {
  std::string name;
  uint64_t bytes = 0;
  bool virtual_memory = false;  // virtual memory management, what arenas are made of
  bool managed_faults = false;  // concurrent managed access: --overcommit works
};

struct MachineFacts {
  bool simulated = false;
  std::string preload;        // libhotpack_preload.so.0; empty: not found
  std::string driver;         // libcuda.so.1; empty: cannot be loaded
  int driver_version = 0;     // CUDA's, 1000 * major + 10 * minor
  std::string kernel_module;  // its version; empty: not loaded, or simulated
  std::string failure;        // why the driver is of no use; empty: it is
  std::vector<DeviceFacts> devices;
};

// Loads the driver in a child process and asks it. `libraries`: of FindLibraries.
MachineFacts AskMachine(const RunLibraries& libraries, bool simulate);

// The variables that say something to hotpack, frameworks, profilers or the dynamic linker, as they are set now.
std::vector<std::pair<std::string, std::string>> RelevantEnvironment();

// The executable, before it runs.
struct ProgramFacts {
  std::string path;
  std::string interpreter;  // of a script: what is run in its place; else empty
  bool is_elf = false;
  bool is_static = false;         // no dynamic linker: nothing can be preloaded
  bool is_other_machine = false;  // not x86-64
  bool is_other_library = false;  // a dynamic linker that is not glibc's
  bool is_privileged = false;     // setuid, setgid or capabilities: the linker ignores LD_PRELOAD
};
ProgramFacts LookAtProgram(const std::string& path);

// One process, as it noted itself.
struct ProcessFacts {
  int pid = 0;
  std::string program;
  bool enabled = false;
  bool driver = false;  // the driver library was in it
  bool deepbind = false;
  bool full = false;  // there was more than could be noted
  int hooks_in_driver = 0;
  int hooks_looked_up = 0;
  std::vector<std::pair<std::string, uint64_t>> handed_on;  // function, calls that were left to the driver
  std::vector<std::string> unknown_variants;                // of functions that are hooked
  std::vector<std::string> not_hooked;  // looked up, and they look as if they allocated or submitted work
  struct Library {
    std::string path;
    uint64_t looked_up = 0, hooked = 0;
  };
  std::vector<Library> libraries;   // that looked functions of the driver up
  std::vector<std::string> mapped;  // shared libraries; one that is loaded twice is there twice
  hotpack_stats stats = {};
};

// What the processes of a run left in `directory`; those that had the driver first. And their figures.
std::vector<ProcessFacts> ReadProcesses(const std::string& directory);

// A process of the run that has the driver and not the preload.
struct MissedProcess {
  int pid = 0;
  std::string program;
};

}  // namespace hotpack
