// The facts that `hotpack doctor` finds, not yet judged (tools/doctor/doctor_advice.h).
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
  bool virtual_memory = false;  // virtual memory management, which arenas need
  bool managed_faults = false;  // concurrent managed access: --overcommit works
};

struct MachineFacts {
  bool simulated = false;
  std::string preload;        // libhotpack_preload.so.0; empty: not found
  std::string driver;         // libcuda.so.1; empty: cannot be loaded
  int driver_version = 0;     // CUDA's, 1000 * major + 10 * minor
  std::string kernel_module;  // its version; empty: not loaded, or simulated
  std::string failure;        // why the driver is unusable; empty: it is usable
  std::vector<DeviceFacts> devices;
};

// Loads the driver in a child process and queries it. `libraries`: of FindLibraries.
MachineFacts AskMachine(const RunLibraries& libraries, bool simulate);

// Returns the current variables that concern hotpack, frameworks, profilers or the dynamic linker.
std::vector<std::pair<std::string, std::string>> RelevantEnvironment();

// The executable, before it runs.
struct ProgramFacts {
  std::string path;
  std::string interpreter;  // of a script: the program that runs it; else empty
  bool is_elf = false;
  bool is_static = false;         // no dynamic linker: preloading is impossible
  bool is_other_machine = false;  // not x86-64
  bool is_other_library = false;  // a dynamic linker other than glibc's
  bool is_privileged = false;     // setuid, setgid or capabilities: the linker ignores LD_PRELOAD
};
ProgramFacts LookAtProgram(const std::string& path);

// One process, by its own notes.
struct ProcessFacts {
  int pid = 0;
  std::string program;
  bool enabled = false;
  bool driver = false;  // it had loaded the driver library
  bool deepbind = false;
  bool full = false;  // it had more to note than fits
  int hooks_in_driver = 0;
  int hooks_looked_up = 0;
  std::vector<std::pair<std::string, uint64_t>> handed_on;  // function, calls that were left to the driver
  std::vector<std::string> unknown_variants;                // of hooked functions
  std::vector<std::string> not_hooked;  // looked up; their names suggest allocation or submission of work
  struct Library {
    std::string path;
    uint64_t looked_up = 0, hooked = 0;
  };
  std::vector<Library> libraries;   // those that looked up functions of the driver
  std::vector<std::string> mapped;  // shared libraries; one that is loaded twice is listed twice
  hotpack_stats stats = {};
};

// Returns the notes and figures that a run's processes left in `directory`; processes with the driver first.
std::vector<ProcessFacts> ReadProcesses(const std::string& directory);

// A process of the run that has the driver but not the preload.
struct MissedProcess {
  int pid = 0;
  std::string program;
};

}  // namespace hotpack
