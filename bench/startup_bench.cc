// The time from the start of a process to its end, with and without the preload: for a program that never uses CUDA,
// for one that does, and with `hotpack run`. Milliseconds of the wall clock, on the simulated device in the libraries'
// folder, or with --real-device on the driver's.
#include <benchmark/benchmark.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/benchmark_main.h"

extern char** environ;

namespace hotpack::bench {
namespace {

bool real_device = false;

// Returns the build or install tree whose bin/ has this program.
std::filesystem::path Tree() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path(); }

// Returns this process's environment without the variables that choose the driver, and `more`.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& more) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto begins = [entry](const char* name) { return std::strncmp(*entry, name, std::strlen(name)) == 0; };
    const bool decides = begins("LD_PRELOAD=") || begins("HOTPACK") || (!real_device && begins("LD_LIBRARY_PATH="));
    if (!decides) environment.emplace_back(*entry);
  }
  environment.insert(environment.end(), more.begin(), more.end());
  if (!real_device) environment.push_back("LD_LIBRARY_PATH=" + (Tree() / "lib" / "simgpu").string());
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs a process to its end, without its output. Returns whether it exited with 0.
bool Run(const std::vector<char*>& command, const std::vector<char*>& environment) {
  pid_t child = 0;
  posix_spawn_file_actions_t quiet;
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", 1, 0);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", 1, 0);
  const int error = posix_spawn(&child, command[0], &quiet, nullptr, command.data(), environment.data());
  posix_spawn_file_actions_destroy(&quiet);
  int status = 0;
  return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum class How { kAlone, kPreloaded, kOff, kByCommand };

void Start(benchmark::State& state, How how, bool cuda) {
  std::vector<std::string> command, more;
  if (how == How::kByCommand) {
    command = {Tree() / "bin" / "hotpack", "run"};
    if (!real_device) command.emplace_back("--simulate");
    command.emplace_back("--");
  } else if (how != How::kAlone) {
    more.push_back("LD_PRELOAD=" + (Tree() / "lib" / "libhotpack_preload.so.0").string());
    if (how == How::kOff) more.emplace_back("HOTPACK=0");
  }
  command.push_back(Tree() / "bin" / "startup_client");
  if (cuda) command.emplace_back("cuda");
  std::vector<std::string> environment = EnvironmentWith(more);
  const std::vector<char*> arguments = Pointers(command), variables = Pointers(environment);
  for (auto _ : state) {
    if (!Run(arguments, variables)) {
      state.SkipWithError("the process failed");
      return;
    }
  }
}

void Enroll(bool) {
  const auto add = [](const char* name, How how, bool cuda) {
    benchmark::RegisterBenchmark(name, [how, cuda](benchmark::State& state) { Start(state, how, cuda); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (const bool cuda : {false, true}) {
    const std::string what = cuda ? "CUDA/" : "no CUDA/";
    add((what + "alone").c_str(), How::kAlone, cuda);
    add((what + "preloaded").c_str(), How::kPreloaded, cuda);
    add((what + "preloaded, HOTPACK=0").c_str(), How::kOff, cuda);
    add((what + "hotpack run").c_str(), How::kByCommand, cuda);
  }
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) {
  std::vector<char*> arguments;
  for (int i = 0; i < argc; ++i) {
    const bool real = std::strcmp(argv[i], "--real-device") == 0;
    hotpack::bench::real_device |= real;
    if (!real) arguments.push_back(argv[i]);
  }
  arguments.push_back(nullptr);
  return hotpack::bench::RunBenchmarks(static_cast<int>(arguments.size()) - 1, arguments.data(),
                                       hotpack::bench::Enroll);
}
