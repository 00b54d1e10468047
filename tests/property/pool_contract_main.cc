// Plays programs that keep the contract of PyTorch's caching allocator, each in its own process, forked from this one:
//   pool_contract SHAPE FIRST COUNT [model] [wrong] [go-on] [shrink]
//   FIRST, COUNT   seeds
//   model          uses a model of PyTorch's allocator instead of libhotpack_torch.so
//   wrong          omits one wait that the contract requires
//   go-on          does not stop at the first fault
//   shrink         reduces and prints the first program of each class of faults
//
// Prints the actions, and a line for each class of faults. Exit code 0: no fault; 1: some; 2: bad arguments.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "runtime/include/hotpack.h"
#include "simgpu/checker.h"
#include "tests/property/pool_contract_player.h"

namespace property {
namespace {

struct Mode {
  const ContractShape* shape = nullptr;
  bool model = false, wrong = false;
};

struct Figures {
  ContractCounts counts;
  uint64_t served = 0, planned = 0, displaced = 0, plans = 0, passed_through = 0;
};

// The child's report to its parent, in shared memory.
struct Told {
  bool done;
  Figures figures;
  uint64_t at;  // operation
  char fault[200], detail[400];
};

struct Ended {
  std::string fault, detail, output;
  uint64_t at = 0;
  Figures figures;
};

void Copy(char* to, size_t size, const std::string& text) { snprintf(to, size, "%s", text.c_str()); }

void AddCounts(ContractCounts* to, const ContractCounts& from) {
  static_assert(sizeof(ContractCounts) % sizeof(uint64_t) == 0);
  auto* mine = reinterpret_cast<uint64_t*>(to);
  const auto* theirs = reinterpret_cast<const uint64_t*>(&from);
  for (size_t i = 0; i < sizeof(ContractCounts) / sizeof(uint64_t); ++i) mine[i] += theirs[i];
}

// In the child. Several programs: at the same time, a thread each.
void PlayHere(const Mode& mode, const std::vector<Drawn>& programs, uint64_t drop, Told* told) {
  std::vector<CUcontext> contexts(static_cast<size_t>(mode.shape->devices));
  bool started = cuInit(0) == CUDA_SUCCESS;
  for (int d = 0; d < mode.shape->devices; ++d) {
    started = started && cuDevicePrimaryCtxRetain(&contexts[static_cast<size_t>(d)], d) == CUDA_SUCCESS;
  }
  if (!started) return Copy(told->fault, sizeof(told->fault), "the simulated device does not start");
  const std::unique_ptr<Allocator> allocator = mode.model ? MakeModel() : MakeHotpack();
  if (allocator == nullptr) return Copy(told->fault, sizeof(told->fault), "libhotpack_torch.so cannot be loaded");
  std::mutex mutex;
  const auto play = [&](const Drawn& program) {
    ContractPlayer player(program, allocator.get(), contexts, drop, programs.size() == 1);
    player.Run();
    std::lock_guard<std::mutex> lock(mutex);
    AddCounts(&told->figures.counts, player.counts());
    told->at = player.counts().operations;
    if (told->fault[0] != '\0' || player.fault().empty()) return;
    Copy(told->fault, sizeof(told->fault), player.fault());
    Copy(told->detail, sizeof(told->detail), player.detail());
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < programs.size(); ++i) threads.emplace_back([&, i] { play(programs[i]); });
  play(programs[0]);
  for (std::thread& thread : threads) thread.join();
  if (told->fault[0] == '\0' && simgpuReports() != 0) Copy(told->fault, sizeof(told->fault), "a report");
  hotpack_stats stats = {};
  if (allocator->GetStats(&stats)) {
    told->figures.served = stats.requests;
    told->figures.planned = stats.planned;
    told->figures.displaced = stats.displaced;
    told->figures.plans = stats.plans;
    told->figures.passed_through = stats.passed_through;
  }
  if (mode.shape->saved_plan) allocator->SavePlan();
  told->done = true;
}

std::string ReadAll(int file) {
  std::string text;
  char part[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t n = 0; (n = read(file, part, sizeof(part))) > 0;) text.append(part, static_cast<size_t>(n));
  return text;
}

// A process that plays the programs, from its beginning to its end.
Ended Fork(const Mode& mode, const std::vector<Drawn>& programs, uint64_t drop, const std::string& folder) {
  static Told* const told =
      static_cast<Told*>(mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  static const int output = memfd_create("output", 0);
  *told = {};
  if (ftruncate(output, 0) != 0) _exit(2);
  const pid_t child = fork();
  if (child == 0) {
    lseek(output, 0, SEEK_SET);
    dup2(output, STDERR_FILENO);
    setenv("SIMGPU_MEMORY", "1G", 1);  // tables of the whole device are made for each program
    for (const auto& [name, value] : mode.shape->environment) setenv(name, value, 1);
    if (mode.shape->saved_plan) setenv("HOTPACK_PLAN", (folder + "/plan").c_str(), 1);
    if (mode.shape->recorded) setenv("HOTPACK_TRACE", (folder + "/trace").c_str(), 1);
    alarm(60);
    PlayHere(mode, programs, drop, told);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Ended ended{told->fault, told->detail, {}, told->at, told->figures};
  if (WIFSIGNALED(status)) {
    ended.fault =
        WTERMSIG(status) == SIGALRM ? "hangs" : std::string("ended by a signal: ") + strsignal(WTERMSIG(status));
  } else if (!told->done && ended.fault.empty()) {
    ended.fault = "ended early";
  }
  if (!ended.fault.empty()) ended.output = ReadAll(output);
  return ended;
}

struct Program {
  uint64_t seed = 0, drop = 0;
  std::vector<Drawn> first, second;  // the second process's, which begins with the first one's plan
};

Program DrawOne(const Mode& mode, uint64_t seed) {
  Program program{seed, 0, {}, {}};
  for (int part = 0; part < mode.shape->together; ++part) {
    program.first.push_back(DrawProgram(*mode.shape, seed, 2 * seed, part));
    if (mode.shape->saved_plan) program.second.push_back(DrawProgram(*mode.shape, seed, 2 * seed + 1, part));
  }
  return program;
}

Ended Play(const Mode& mode, const Program& program) {
  if (!mode.shape->saved_plan && !mode.shape->recorded) return Fork(mode, program.first, program.drop, "");
  char in_memory[] = "/dev/shm/pool_contract.XXXXXX", elsewhere[] = "/tmp/pool_contract.XXXXXX";
  char* folder = mkdtemp(in_memory);
  if (folder == nullptr && (folder = mkdtemp(elsewhere)) == nullptr) return {"no temporary folder", "", "", 0, {}};
  Ended ended = Fork(mode, program.first, program.drop, folder);
  if (ended.fault.empty() && mode.shape->recorded && !mode.model &&
      !std::filesystem::exists(std::string(folder) + "/trace")) {
    ended.fault = "no trace";
  }
  if (ended.fault.empty() && !program.second.empty()) {
    Ended second = Fork(mode, program.second, program.drop, folder);
    AddCounts(&second.figures.counts, ended.figures.counts);
    ended = second;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return ended;
}

// Removes operations while the program fails in the same way.
void Shrink(const Mode& mode, Program* program, const std::string& fault) {
  if (program->first.size() != 1) return;
  std::vector<Op>* ops = program->second.empty() ? &program->first[0].ops : &program->second[0].ops;
  const auto fails = [&] { return Play(mode, *program).fault == fault; };
  const auto without = [&](const std::function<bool(const Op&)>& goes) {
    const std::vector<Op> before = *ops;
    std::erase_if(*ops, goes);
    if (ops->size() == before.size() || fails()) return;
    *ops = before;
  };
  for (int round = 0; round < 2; ++round) {
    for (uint16_t i = 200; i-- > 0;) without([i](const Op& op) { return op.iteration == i; });
    for (uint16_t o = 200; o-- > 0;) without([o](const Op& op) { return op.origin == o; });
    for (size_t run = 16; run > 0; run /= 2) {
      for (size_t at = ops->size(); at-- > 0;) {
        if (at >= ops->size()) continue;
        const Op *begin = ops->data() + at, *end = ops->data() + std::min(ops->size(), at + run);
        std::vector<Op> before = *ops;
        ops->erase(ops->begin() + (begin - ops->data()), ops->begin() + (end - ops->data()));
        if (!fails()) *ops = std::move(before);
      }
    }
  }
}

void PrintProgram(const Drawn& drawn) {
  for (size_t r = 0; r < drawn.settings.roles.size(); ++r) {
    const Role& role = drawn.settings.roles[r];
    printf("  s%zu: %s%s, device %d\n", r,
           role.legacy         ? "legacy"
           : role.non_blocking ? "non-blocking"
                               : "blocking",
           role.named ? "" : ", the allocator never hears of it", role.device);
  }
  printf("  %s, %s\n", drawn.settings.marks ? "iterations are marked" : "no marks",
         drawn.settings.implicit ? "relies on the legacy stream's order" : "orders all by events");
  for (const Op& op : drawn.ops) printf("  %s\n", Text(op).c_str());
}

void PrintFigures(uint64_t programs, uint64_t failed, const Figures& f) {
  const ContractCounts& c = f.counts;
  printf("programs %" PRIu64 " failed %" PRIu64 " operations %" PRIu64 " requests %" PRIu64 " releases %" PRIu64
         " uses %" PRIu64 " waits %" PRIu64 " owed %" PRIu64 " untold %" PRIu64 " told %" PRIu64 " captures %" PRIu64
         " launches %" PRIu64 " streams_ended %" PRIu64 " skipped %" PRIu64 " refused %" PRIu64,
         programs, failed, c.operations, c.requests, c.releases, c.uses, c.waits, c.owed, c.untold, c.told, c.captures,
         c.launches, c.streams_ended, c.skipped, c.refused);
  printf(" served %" PRIu64 " planned %" PRIu64 " displaced %" PRIu64 " plans %" PRIu64 " passed_through %" PRIu64 "\n",
         f.served, f.planned, f.displaced, f.plans, f.passed_through);
}

int Run(const Mode& mode, uint64_t first, uint64_t count, bool go_on, bool shrink) {
  struct Class {
    uint64_t count = 0, seed = 0, at = 0;
    std::string detail, output;
  };
  std::map<std::string, Class> classes;
  Figures sum;
  uint64_t programs = 0, failed = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Program program = DrawOne(mode, seed);
    if (mode.wrong) {
      const Ended right = Play(mode, program);
      if (right.figures.counts.owed == 0) continue;  // it has no such wait
      program.drop = 1 + Random(seed).Below(right.figures.counts.owed);
    }
    const Ended ended = Play(mode, program);
    ++programs;
    AddCounts(&sum.counts, ended.figures.counts);
    sum.served += ended.figures.served;
    sum.planned += ended.figures.planned;
    sum.displaced += ended.figures.displaced;
    sum.plans += ended.figures.plans;
    sum.passed_through += ended.figures.passed_through;
    std::string fault = ended.fault;
    if (fault.empty() && ended.figures.counts.refused > 0 && !mode.shape->starves) fault = "out of memory";
    if (fault.empty()) continue;
    ++failed;
    Class& found = classes[fault];
    if (++found.count == 1) found = {1, seed, ended.at, ended.detail, ended.output.substr(0, ended.output.find('\n'))};
    if (shrink && found.count == 1 && mode.shape->together == 1) {
      Shrink(mode, &program, fault);
      const Drawn& drawn = program.second.empty() ? program.first[0] : program.second[0];
      printf("seed %" PRIu64 " made smaller: %s\n", seed, fault.c_str());
      PrintProgram(drawn);
    }
    if (!go_on) break;
  }
  for (const auto& [fault, found] : classes) {
    printf("fault %" PRIu64 " x %s\n", found.count, fault.c_str());
    printf("  seed %" PRIu64 ", operation %" PRIu64 ": %s\n  %s\n", found.seed, found.at, found.detail.c_str(),
           found.output.c_str());
  }
  PrintFigures(programs, failed, sum);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace property

int main(int argc, char** argv) {
  property::Mode mode;
  bool go_on = false, shrink = false;
  bool good =
      argc >= 4 && (mode.shape = property::FindContractShape(argv[1])) != nullptr && strtoull(argv[3], nullptr, 10) > 0;
  for (int i = 4; i < argc; ++i) {
    const std::string word = argv[i];
    bool* option = word == "model" ? &mode.model : word == "wrong" ? &mode.wrong : word == "go-on" ? &go_on : &shrink;
    *option = true;
    good = good && (word != "shrink" ? option != &shrink : true);
  }
  if (!good) {
    fprintf(stderr, "pool_contract SHAPE FIRST COUNT [model] [wrong] [go-on] [shrink]; shapes:");
    for (const property::ContractShape& shape : property::ContractShapes()) fprintf(stderr, " %s", shape.name);
    fprintf(stderr, "\n");
    return 2;
  }
  return property::Run(mode, strtoull(argv[2], nullptr, 10), strtoull(argv[3], nullptr, 10), go_on, shrink);
}
