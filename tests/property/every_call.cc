// Runs a small random program once for each of its driver calls, with just that call failing:
//   every_call [-x] SEED[-SEED] OPERATIONS WHICH STRIDE [FROM [TO]]
// WHICH is the name in a clause of SIMGPU_FAIL: `any` (every call counts), `any@hotpack` (the preloaded library's
// calls), `any@!hotpack` (the others), `cuEventRecord@hotpack` (those of one function). With a `+` at the end all calls
// from that one on fail. Each run is its own process, forked before the driver is initialised. It must end by itself,
// without a signal, a report of the checker or a wrong result. Prints a line for each other run, and their number; exit
// code 1 if there was one. -x: stops at the first.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/property/program.h"
#include "tools/cli/child_process.h"

namespace {

constexpr auto kHang = std::chrono::seconds(20);

struct Case {
  uint64_t seed = 0, operations = 0;
  std::string fail;  // SIMGPU_FAIL; empty: nothing fails
};

struct Ending {
  int code = 0;  // 128 + signal
  bool hung = false;
  std::string errors;
};

[[noreturn]] void RunCase(const Case& what, const std::string& errors, const std::string& counts) {
  const int fd = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  if (fd >= 0) dup2(fd, STDERR_FILENO);
  if (!what.fail.empty()) setenv("SIMGPU_FAIL", what.fail.c_str(), 1);
  if (!counts.empty()) {
    setenv("SIMGPU_COUNT_FILE", counts.c_str(), 1);
    setenv("SIMGPU_COUNT_CALLERS", "1", 1);
  }
  int devices = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS) exit(0);  // it sees the error
  property::ProgramOptions options;
  options.seed = what.seed;
  options.operations = what.operations;
  options.devices = devices;
  options.small = true;
  exit(property::RunProgram(options).wrong_answers ? 5 : 0);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Ending Run(const Case& what, const std::string& folder, const std::string& counts = "") {
  const std::string errors = folder + "/errors";
  fflush(stdout);  // or the child would print it once more
  const pid_t pid = fork();
  if (pid == 0) RunCase(what, errors, counts);
  Ending ending;
  int status = 0;
  const auto deadline = std::chrono::steady_clock::now() + kHang;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (!ending.hung && std::chrono::steady_clock::now() > deadline) {
      ending.hung = true;
      kill(pid, SIGKILL);
    }
    usleep(200);
  }
  ending.code = hotpack::ExitCode(status);
  if (ending.code != 0) ending.errors = ReadAll(errors);
  return ending;
}

// Calls of the run in which nothing fails: those that the clause means.
uint64_t CountCalls(const std::string& path, const std::string& which) {
  std::ifstream file(path);
  const size_t at = which.find('@');
  std::string object = at == std::string::npos ? "" : which.substr(at + 1);
  const std::string function = which.substr(0, at);
  const bool others = !object.empty() && object[0] == '!';
  if (others) object.erase(0, 1);
  std::string name;
  uint64_t calls = 0, sum = 0;
  while (file >> name >> calls) {
    const size_t by = name.find('@');
    if (function != "any" && name.compare(0, by, function) != 0) continue;
    if (object.empty() ? by != std::string::npos : by == std::string::npos) continue;
    if (!object.empty() && (name.find(object, by) != std::string::npos) == others) continue;
    sum += calls;
  }
  return sum;
}

struct Search {
  uint64_t first = 0, last = 0;  // seeds
  uint64_t operations = 0;
  std::string which;
  bool onwards = false;
  uint64_t stride = 1, from = 1, to = UINT64_MAX;
  bool stop = false;
  std::string folder;
};

struct Program {
  uint64_t seed = 0, all = 0, calls = 0;  // driver calls of the run in which nothing fails; those that count
  uint64_t cases = 0, bad = 0;
};

Program BeginProgram(uint64_t seed, const Search& search) {
  Program program{seed};
  const std::string counts = search.folder + "/counts";
  const Ending whole = Run({seed, search.operations, ""}, search.folder, counts);
  program.calls = CountCalls(counts, search.which);
  program.all = CountCalls(counts, "any");
  if (whole.code != 0) {
    ++program.bad;
    printf("nothing fails: code %d\n%s", whole.code, whole.errors.c_str());
  }
  return program;
}

// Calls of one program, each failing in turn: those that leave `rest` when their number is divided by `parts`.
void FailCalls(const Search& search, uint64_t parts, uint64_t rest, Program* program) {
  for (uint64_t k = search.from + rest * search.stride; k <= std::min(program->calls, search.to);
       k += parts * search.stride) {
    if (search.stop && program->bad > 0) return;
    const std::string fail = search.which + ":" + std::to_string(k) + (search.onwards ? "+" : "");
    const Ending ending = Run({program->seed, search.operations, fail}, search.folder);
    ++program->cases;
    if (ending.code == 0) continue;
    if (++program->bad <= 20) {
      printf("seed %" PRIu64 ", %s: %s, code %d: %s\n", program->seed, fail.c_str(),
             ending.hung ? "it hangs" : "it fails", ending.code, ending.errors.substr(0, 300).c_str());
    }
  }
}

// True: every run ended well. Whoever stops at the first bad one finds it sooner in a few calls of each program.
bool EveryCall(const Search& search) {
  const std::vector<uint64_t> rests = search.stop
                                          ? std::vector<uint64_t>{0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15}
                                          : std::vector<uint64_t>{0};
  std::vector<Program> programs;
  bool well = true;
  for (const uint64_t rest : rests) {
    for (uint64_t seed = search.first; seed <= search.last && (well || !search.stop); ++seed) {
      if (programs.size() <= seed - search.first) programs.push_back(BeginProgram(seed, search));
      Program& program = programs[seed - search.first];
      FailCalls(search, rests.size(), rest, &program);
      well = well && program.bad == 0;
    }
  }
  for (const Program& program : programs) {
    printf("seed %" PRIu64 ", %s%s: %" PRIu64 " driver calls, %" PRIu64 " of them counted, %" PRIu64 " cases, %" PRIu64
           " bad\n",
           program.seed, search.which.c_str(), search.onwards ? "+" : "", program.all, program.calls, program.cases,
           program.bad);
    well = well && program.cases > 0;
  }
  return well;
}

}  // namespace

int main(int argc, char** argv) {
  const bool stop = argc > 1 && strcmp(argv[1], "-x") == 0;
  if (stop) {
    ++argv;
    --argc;
  }
  if (argc < 5) {
    fprintf(stderr, "every_call [-x] SEED[-SEED] OPERATIONS WHICH STRIDE [FROM [TO]]\n");
    return 2;
  }
  Search search;
  char* dash = nullptr;
  search.first = strtoull(argv[1], &dash, 10);
  search.last = *dash == '-' ? strtoull(dash + 1, nullptr, 10) : search.first;
  search.operations = strtoull(argv[2], nullptr, 10);
  search.which = argv[3];
  search.onwards = search.which.ends_with('+');
  if (search.onwards) search.which.pop_back();
  search.stride = strtoull(argv[4], nullptr, 10);
  if (argc > 5) search.from = strtoull(argv[5], nullptr, 10);
  if (argc > 6) search.to = strtoull(argv[6], nullptr, 10);
  search.stop = stop;
  std::string folder = "/tmp/hotpack-every-call-XXXXXX";
  if (search.stride == 0 || search.from == 0 || mkdtemp(folder.data()) == nullptr) return 2;
  search.folder = folder;
  const bool well = EveryCall(search);
  unlink((folder + "/counts").c_str());
  unlink((folder + "/errors").c_str());
  rmdir(folder.c_str());
  return well ? 0 : 1;
}
