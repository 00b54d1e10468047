// Lives of processes, drawn from a seed:
//   lifecycle_drawn COUNT [SEED]          draws COUNT lives; prints the seed
//   lifecycle_drawn life SEED DEPTH END   one of them, to see a failure again
//
// A life is a random sequence of:
//  - allocate, use, free; start a thread that allocates, end the threads;
//  - fork: the child continues with its own life, as far as it can without a driver;
//  - fork and start this program again; replace this process by this program;
//  - make a context and destroy it with the blocks in it; reset the device.
// At last comes an end: return from main, exit, _exit, quick_exit or a signal. The parent of a fork knows the child's
// end, and the status that it must have.
#include <signal.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/preload/lifecycle.h"

namespace {

enum End { kReturn, kExit, kExitAtOnce, kQuickExit, kKill, kTerminate, kAbort, kEnds };

constexpr int kStatus[kEnds] = {0, 11, 12, 13, 128 + SIGKILL, 128 + SIGTERM, 128 + SIGABRT};
constexpr unsigned kSeconds = 60;  // for one life; SIGALRM is no drawn end

char* self = nullptr;

// Released after the driver has shut down, if the end runs destructors.
struct Kept {
  std::vector<CUdeviceptr> blocks;
  bool forked = false;
  ~Kept() {
    for (CUdeviceptr block : blocks) CHECK(cuMemFree(block) == CUDA_SUCCESS);  // in a forked child, too
  }
} kept;

class Life {
 public:
  Life(uint64_t seed, int depth, End end) : random_(seed), depth_(depth), end_(end) {
    alarm(kSeconds);
    OK(cuInit(0));
    Begin();
  }

  // Returns if the life is to end by a return from main.
  void Live() {
    for (int steps = Draw(20) + 5; steps > 0; --steps) Step();
    if (Draw(2) == 0) EndThreads();
    if (Draw(2) == 0) {
      kept.blocks.swap(blocks_);
    }
    Die();
  }

 private:
  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }

  void Begin() {
    OK(cuDevicePrimaryCtxRetain(&context_, 0));
    OK(cuCtxSetCurrent(context_));
  }

  void Step() {
    switch (Draw(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Allocate();
      case 4:
      case 5:
        return Free();
      case 6:
        if (!kept.forked) Job(Draw(40));
        return;
      case 7:
      case 8:
        return StartThread();
      case 9:
        return EndThreads();
      case 10:
      case 11:
        return Fork();
      case 12:
        return Start();
      case 13:
        if (Draw(4) == 0) Become();
        return;
      case 14:
        return Context();
      case 15:
        if (Draw(3) == 0) Reset();
        return;
    }
  }

  void Allocate() {
    CUdeviceptr block = 0;
    const size_t bytes = 512 + static_cast<size_t>(Draw(1 << 20));
    CHECK((cuMemAlloc(&block, bytes) == CUDA_SUCCESS) == !kept.forked);
    if (kept.forked) return;
    Use(block, bytes);
    blocks_.push_back(block);
  }

  void Free() {
    if (blocks_.empty()) return;
    std::swap(blocks_[static_cast<size_t>(Draw(static_cast<int>(blocks_.size())))], blocks_.back());
    OK(cuMemFree(blocks_.back()));
    blocks_.pop_back();
  }

  void StartThread() {
    threads_.emplace_back([this] {
      if (cuCtxSetCurrent(context_) != CUDA_SUCCESS) return;
      CUdeviceptr block = 0;
      for (size_t i = 0; !stop_; ++i) {
        if (cuMemAlloc(&block, 1000 + i % 20 * 50'000) == CUDA_SUCCESS) cuMemFree(block);
      }
    });
  }

  void EndThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    stop_ = false;
  }

  void Fork() {
    if (depth_ == 0) return;
    const End end = static_cast<End>(Draw(kEnds));
    const uint64_t seed = random_();
    const pid_t child = fork();
    if (child != 0) return Expect(child, seed, end);
    alarm(kSeconds);
    kept.forked = true;
    for (std::thread& thread : threads_) new (&thread) std::thread;  // they are the parent's
    threads_.clear();
    random_.seed(seed);
    --depth_;
    end_ = end;
    Live();
    exit(0);  // a return from main, as far as it is possible from here
  }

  void Start() {
    if (depth_ == 0) return;
    const End end = static_cast<End>(Draw(kEnds));
    const uint64_t seed = random_();
    const pid_t child = fork();
    if (child != 0) return Expect(child, seed, end);
    Execute(seed, depth_ - 1, end);
  }

  void Become() {
    if (depth_ > 0) Execute(random_(), depth_ - 1, end_);
  }

  static void Execute(uint64_t seed, int depth, End end) {
    const std::string text[] = {std::to_string(seed), std::to_string(depth), std::to_string(end)};
    execl(self, self, "life", text[0].c_str(), text[1].c_str(), text[2].c_str(), nullptr);
    _exit(1);
  }

  void Expect(pid_t child, uint64_t seed, End end) {
    const int status = Wait(child);
    if (status == kStatus[end]) return;
    fprintf(stderr, "drawn: life %llu of depth %d ended with %d and not %d\n", static_cast<unsigned long long>(seed),
            depth_ - 1, status, kStatus[end]);
    _exit(1);
  }

  void Context() {
    CUcontext other = nullptr;
    CHECK((cuCtxCreate(&other, nullptr, 0, 0) == CUDA_SUCCESS) == !kept.forked);
    if (kept.forked) return;
    for (int i = Draw(4); i > 0; --i) Use(Alloc(100'000), 100'000);
    if (Draw(2) == 0) Job(30);
    if (Draw(2) == 0) {
      std::thread([other] { OK(cuCtxDestroy(other)); }).join();
      CUcontext popped = nullptr;
      cuCtxPopCurrent(&popped);
    } else {
      OK(cuCtxDestroy(other));
    }
    OK(cuCtxSetCurrent(context_));
  }

  // All of the device's blocks are gone then, so none may be in use.
  void Reset() {
    if (kept.forked) return;
    EndThreads();
    blocks_.clear();
    OK(cuDevicePrimaryCtxReset(0));
    Begin();
  }

  // Threads that are still running continue through the end.
  void Die() {
    if (end_ == kReturn || end_ == kExit || end_ == kQuickExit) {
      for (std::thread& thread : threads_) thread.detach();
    }
    switch (end_) {
      case kExit:
        exit(kStatus[kExit]);
      case kExitAtOnce:
        _exit(kStatus[kExitAtOnce]);
      case kQuickExit:
        quick_exit(kStatus[kQuickExit]);
      case kKill:
        raise(SIGKILL);
        break;
      case kTerminate:
        raise(SIGTERM);
        break;
      case kAbort:
        abort();
      default:
        break;
    }
  }

  std::mt19937_64 random_;
  int depth_;
  End end_;
  CUcontext context_ = nullptr;
  std::vector<CUdeviceptr> blocks_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stop_{false};
};

int Draw(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  int ends[kEnds] = {};
  for (int i = 0; i < count; ++i) {
    const uint64_t life = random();
    const int depth = static_cast<int>(random() % 3), end = static_cast<int>(random() % kEnds);
    const std::string text[] = {std::to_string(life), std::to_string(depth), std::to_string(end)};
    const pid_t child = fork();
    if (child == 0) {
      execl(self, self, "life", text[0].c_str(), text[1].c_str(), text[2].c_str(), nullptr);
      _exit(1);
    }
    const int status = Wait(child);
    ++ends[end];
    if (status == kStatus[end]) continue;
    fprintf(stderr, "drawn: life %s %s %s ended with %d and not %d\n", text[0].c_str(), text[1].c_str(),
            text[2].c_str(), status, kStatus[end]);
    return 1;
  }
  printf("seed %llu: %d lives, ends", static_cast<unsigned long long>(seed), count);
  for (int number : ends) printf(" %d", number);
  printf("\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  self = argv[0];
  if (argc == 5 && strcmp(argv[1], "life") == 0) {
    // Never destroyed: threads may still be using it.
    auto* life = new Life(strtoull(argv[2], nullptr, 10), atoi(argv[3]), static_cast<End>(atoi(argv[4])));
    life->Live();
    return 0;
  }
  CHECK(argc >= 2);
  const uint64_t seed = argc > 2 ? strtoull(argv[2], nullptr, 10) : std::random_device()();
  return Draw(atoi(argv[1]), seed);
}
