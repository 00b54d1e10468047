// Processes that fork, start others and end in all ways:
//   lifecycle_processes SCENARIO
// Exit code 0: everything was as it should be.
#include <signal.h>
#include <spawn.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/lifecycle.h"

extern char** environ;

namespace {

constexpr size_t kBlock = 300'000;
constexpr unsigned kSeconds = 20;  // for anything that a child does

char* self = nullptr;

// Uses of the parent's state in a child. The driver does not work after a fork, and reports that. Only to release what
// the child has inherited succeeds, and the parent keeps it.
void InChild(CUdeviceptr block) {
  alarm(kSeconds);
  CUdeviceptr address = 0;
  size_t pitch = 0;
  OK(cuMemFree(block));
  OK(cuMemFreeAsync(block, nullptr));
  CHECK(cuMemFree(0x1000) != CUDA_SUCCESS);
  CHECK(cuMemAlloc(&address, kBlock) != CUDA_SUCCESS);
  CHECK(cuMemAllocPitch(&address, &pitch, 1000, 10, 4) != CUDA_SUCCESS);
  CHECK(cuMemGetAddressRange(nullptr, nullptr, block) != CUDA_SUCCESS);
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, 0) != CUDA_SUCCESS);
}

int RunSelf(const char* scenario) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    execl(self, self, scenario, nullptr);
    _exit(1);
  }
  return Wait(child);
}

void TheJob() {
  Primary(0);
  Job();
}

void ForkEnds() {
  Primary(0);
  Job();
  const CUdeviceptr block = Alloc(kBlock);
  const std::vector<std::pair<std::function<void()>, int>> ends = {
      {[] { _exit(5); }, 5},
      {[] { exit(6); }, 6},
      {[] { quick_exit(7); }, 7},
      {[] { raise(SIGKILL); }, 128 + SIGKILL},
      {[] { raise(SIGTERM); }, 128 + SIGTERM},
  };
  for (const auto& [end, status] : ends) {
    const pid_t child = fork();
    if (child == 0) {
      InChild(block);
      const pid_t grandchild = fork();
      if (grandchild == 0) {
        InChild(block);
        end();
      }
      CHECK(Wait(grandchild) == status);
      end();
    }
    CHECK(Wait(child) == status);
  }
  Use(block, kBlock);
  Job();
  OK(cuMemFree(block));
}

void ForkExec() {
  Primary(0);
  Job();
  const CUdeviceptr block = Alloc(kBlock);
  for (int i = 0; i < 3; ++i) CHECK(RunSelf("job") == 0);
  Use(block, kBlock);
  OK(cuMemFree(block));
}

// Forks fall into the middle of other threads' requests: growth, plans, streams that are created and waited for.
void ForkStorm() {
  CUcontext context = Primary(0);
  const CUdeviceptr block = Alloc(kBlock);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      OK(cuCtxSetCurrent(context));
      for (int i = 0; !stop; ++i) {
        Job(2);
        CUstream stream = nullptr;
        if (t == 0 && i % 4 == 0) {
          OK(cuStreamCreate(&stream, 0));
          OK(cuStreamDestroy(stream));
        }
        CUdeviceptr row = 0;
        size_t pitch = 0;
        if (t == 1) {
          OK(cuMemAllocPitch(&row, &pitch, 1000 + static_cast<size_t>(i), 10, 4));
          OK(cuMemFree(row));
        }
      }
    });
  }
  for (int i = 0; i < 150; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      InChild(block);
      if (i % 2 == 0) exit(0);
      _exit(0);
    }
    CHECK(Wait(child) == 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  OK(cuMemFree(block));
}

// A thread is always inside cuMemAllocPitch; the child asks for a pitch as well.
void ForkPitch() {
  CUcontext context = Primary(0);
  const CUdeviceptr block = Alloc(kBlock);
  std::atomic<bool> stop{false};
  std::thread asks([&] {
    OK(cuCtxSetCurrent(context));
    CUdeviceptr row = 0;
    size_t pitch = 0;
    for (size_t i = 0; !stop; ++i) {
      OK(cuMemAllocPitch(&row, &pitch, 1000 + i % 3, 1, 4));
      OK(cuMemFree(row));
    }
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      InChild(block);
      _exit(0);
    }
    CHECK(Wait(child) == 0);
  }
  stop = true;
  asks.join();
  OK(cuMemFree(block));
}

void Spawn() {
  Primary(0);
  Job();
  const CUdeviceptr block = Alloc(kBlock);
  char scenario[] = "job";
  char* argv[] = {self, scenario, nullptr};
  pid_t child = 0;
  CHECK(posix_spawn(&child, self, nullptr, nullptr, argv, environ) == 0);
  CHECK(Wait(child) == 0);
  child = vfork();
  if (child == 0) {
    execv(self, argv);
    _exit(1);
  }
  CHECK(Wait(child) == 0);
  CHECK(system("true") == 0);
  Use(block, kBlock);
  Job();
  OK(cuMemFree(block));
}

// Older than cuInit: destroyed after the driver has shut down.
struct Late {
  std::vector<CUdeviceptr> blocks;
  ~Late() {
    for (CUdeviceptr block : blocks) OK(cuMemFree(block));
    if (blocks.empty()) return;
    CUdeviceptr address = 0;
    CHECK(cuMemAlloc(&address, 1ull << 30) == CUDA_ERROR_DEINITIALIZED);
    CHECK(cuMemFree(0xdead000) == CUDA_ERROR_DEINITIALIZED);
  }
} late;

void ExitStatic() {
  Primary(0);
  Job();
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));  // so that a release waits, or tries to
  for (int i = 0; i < 20; ++i) late.blocks.push_back(Alloc(kBlock));
}

CUdeviceptr at_exit_block = 0;

void ExitHandler() {
  atexit([] {  // before cuInit: runs after the driver's own
    OK(cuMemFree(at_exit_block));
  });
  Primary(0);
  at_exit_block = Alloc(kBlock);
  late.blocks.push_back(Alloc(kBlock));
  static CUdeviceptr early = Alloc(kBlock);
  atexit([] {  // the driver is still there
    Use(early, kBlock);
    Job();
    OK(cuMemFree(early));
  });
}

struct OfThread {
  std::vector<CUdeviceptr> blocks;
  ~OfThread() {
    for (CUdeviceptr block : blocks) OK(cuMemFree(block));
    if (!blocks.empty()) Job();
  }
};

void ExitThreadLocal() {
  CUcontext context = Primary(0);
  static thread_local OfThread of_thread;
  of_thread.blocks.push_back(Alloc(kBlock));
  std::thread other([&] {
    OK(cuCtxSetCurrent(context));
    of_thread.blocks.push_back(Alloc(kBlock));
  });
  other.join();
}

// Requests of other threads continue while the process ends. They may fail, but may not crash or delay it.
void StartBusyThreads(CUcontext context) {
  for (int t = 0; t < 2; ++t) {
    std::thread([context] {
      CUdeviceptr block = 0;
      if (cuCtxSetCurrent(context) != CUDA_SUCCESS) return;
      for (size_t i = 0;; ++i) {
        if (cuMemAlloc(&block, 1000 + i % 40 * 50'000) == CUDA_SUCCESS) cuMemFree(block);
      }
    }).detach();
  }
}

void ExitBesideThread() {
  alarm(kSeconds);
  CUcontext context = Primary(0);
  StartBusyThreads(context);
  Job();
  late.blocks.push_back(Alloc(kBlock));
}

void ExitFromThread() {
  alarm(kSeconds);
  CUcontext context = Primary(0);
  StartBusyThreads(context);
  Job();
  std::thread([] { exit(0); }).detach();
  while (true) pause();
}

void ExitQuick() {
  static CUdeviceptr block = 0;
  Primary(0);
  Job();
  block = Alloc(kBlock);
  at_quick_exit([] {
    Use(block, kBlock);
    OK(cuMemFree(block));
  });
  quick_exit(0);
}

// It waits for its plans, so that its use of host memory is nearly the same in each run.
void PlannedJob() {
  const auto wait_plan = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  for (int i = 0; i < 4; ++i) {
    Job(10);
    if (wait_plan != nullptr) wait_plan(-1);
  }
}

// Everything that makes hotpack ask the host for memory. Whatever fails there, the program's calls do not.
void Hungry() {
  CUcontext primary = Primary(0), other = nullptr;
  PlannedJob();
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr block = 0, row = 0;
  size_t pitch = 0;
  for (size_t i = 0; i < 20; ++i) {
    OK(cuMemAllocAsync(&block, kBlock + i * 100'000, stream));
    OK(cuMemsetD8Async(block, 1, kBlock, stream));
    OK(cuMemAllocPitch(&row, &pitch, 1000, 10, 4));
    OK(cuMemFree(row));
    OK(cuMemFreeAsync(block, stream));
  }
  OK(cuCtxCreate(&other, nullptr, 0, 0));
  PlannedJob();
  block = Alloc(kBlock);
  OK(cuCtxDestroy(other));
  OK(cuCtxSetCurrent(primary));
  PlannedJob();
  OK(cuStreamDestroy(stream));
}

void Untouched() {
  Primary(0);
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, 0));
  OK(cuStreamSynchronize(stream));
  CUevent event = nullptr;
  OK(cuEventCreate(&event, 0));
  OK(cuEventRecord(event, stream));
  OK(cuCtxSynchronize());
  CHECK(CountThreads() == 1);
}

}  // namespace

int main(int argc, char** argv) {
  self = argv[0];
  const std::map<std::string, std::function<void()>> scenarios = {
      {"job", TheJob},
      {"fork_ends", ForkEnds},
      {"fork_exec", ForkExec},
      {"fork_storm", ForkStorm},
      {"fork_pitch", ForkPitch},
      {"spawn", Spawn},
      {"exit_static", ExitStatic},
      {"exit_handler", ExitHandler},
      {"exit_thread_local", ExitThreadLocal},
      {"exit_beside_thread", ExitBesideThread},
      {"exit_from_thread", ExitFromThread},
      {"exit_quick", ExitQuick},
      {"hungry", Hungry},
      {"untouched", Untouched},
  };
  const auto scenario = scenarios.find(argc > 1 ? argv[1] : "");
  CHECK(scenario != scenarios.end());
  scenario->second();
  return 0;
}
