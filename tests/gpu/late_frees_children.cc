// The processes that late_frees starts. Each prints `key=value` lines; cuda errors as numbers.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/gpu/child.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

// By write, not stdio: after main, and in a forked child, no buffer is in between.
void Say(const char* key, const std::string& value) { dprintf(STDOUT_FILENO, "%s=%s\n", key, value.c_str()); }

void Say(const char* key, cudaError_t error) {
  cudaGetLastError();
  Say(key, std::to_string(static_cast<int>(error)));
}

void* late_block = nullptr;

void FreeLate() { Say("free", cudaFree(late_block)); }

// Constructed before main and before libcudart is first used: destroyed after what CUDA registers at its first use.
struct FreesInDestructor {
  bool armed = false;
  ~FreesInDestructor() {
    if (armed) FreeLate();
  }
};
FreesInDestructor destroyed_after_main;

int AtExit(bool before_cuda) {
  if (before_cuda) atexit(FreeLate);
  HOTPACK_NEED(cudaMalloc(&late_block, kMiB));
  if (!before_cuda) atexit(FreeLate);
  return 0;
}

int StaticDestructor() {
  HOTPACK_NEED(cudaMalloc(&late_block, kMiB));
  destroyed_after_main.armed = true;
  return 0;
}

// A block of its own can be had, written, read and given back.
bool Works() {
  void* block = nullptr;
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  HOTPACK_NEED(cudaMemset(block, 0x77, kMiB));
  HOTPACK_NEED(cudaDeviceSynchronize());
  const bool good = CountOther(block, kMiB, 0x77) == 0;
  HOTPACK_NEED(cudaFree(block));
  return good;
}

int AfterReset() {
  void* block = nullptr;
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  HOTPACK_NEED(cudaDeviceReset());
  Say("free", cudaFree(block));
  Say("works", YesNo(Works()));
  return 0;
}

int Fork() {
  void* block = nullptr;
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  HOTPACK_NEED(cudaMemset(block, 0x66, kMiB));
  HOTPACK_NEED(cudaDeviceSynchronize());
  const pid_t child = fork();
  if (child < 0) return 3;
  if (child == 0) {
    Say("free_in_child", cudaFree(block));
    exit(0);  // with all that is registered for it
  }
  Say("child", WaitForEnd(child, 15));
  Say("works", YesNo(CountOther(block, kMiB, 0x66) == 0 && Works()));
  Say("free", cudaFree(block));
  return 0;
}

int WrongFrees() {
  void* block = nullptr;
  void* wild = reinterpret_cast<void*>(uintptr_t{0xdead0000});
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  HOTPACK_NEED(cudaFree(block));
  Say("double_free", cudaFree(block));
  HOTPACK_NEED(cudaMallocAsync(&block, kMiB, nullptr));
  HOTPACK_NEED(cudaFreeAsync(block, nullptr));
  HOTPACK_NEED(cudaDeviceSynchronize());
  Say("double_free_async", cudaFreeAsync(block, nullptr));
  Say("wild", cudaFree(wild));
  Say("wild_async", cudaFreeAsync(wild, nullptr));
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  Say("interior", cudaFree(static_cast<char*>(block) + 512));
  HOTPACK_NEED(cudaFree(block));
  Say("works", YesNo(Works()));
  return 0;
}

int Dispatch(const std::string& name) {
  if (name == "atexit_before_cuda") return AtExit(true);
  if (name == "atexit_after_cuda") return AtExit(false);
  if (name == "static_destructor") return StaticDestructor();
  if (name == "after_reset") return AfterReset();
  if (name == "fork") return Fork();
  if (name == "wrong_frees") return WrongFrees();
  return -1;
}

}  // namespace

int RunLateFreesChild(const std::string& name) {
  try {
    return Dispatch(name);
  } catch (const CallFailed& failed) {
    fprintf(stderr, "gpu_probe --child %s: %s\n", name.c_str(), failed.what());
    return 3;
  }
}

}  // namespace hotpack::gpu
