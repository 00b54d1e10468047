// The common part of the lifecycle tests' programs. They run on the simulated device and are linked to it.
#pragma once

#include <cuda.h>
#include <dirent.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "tools/cli/child_process.h"

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: CHECK(%s) failed\n", __FILE__, __LINE__, #condition); \
      _exit(1);                                                                     \
    }                                                                               \
  } while (false)
#define OK(call) CHECK((call) == CUDA_SUCCESS)

inline CUcontext Primary(CUdevice device) {
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}

inline CUdeviceptr Alloc(size_t bytes) {
  CUdeviceptr address = 0;
  OK(cuMemAlloc(&address, bytes));
  return address;
}

// Allocates, uses and frees so often that a plan is made and followed, and so a planning thread exists.
inline void Job(int iterations = 60) {
  for (int i = 0; i < iterations; ++i) {
    CUdeviceptr blocks[8];
    for (size_t k = 0; k < 8; ++k) {
      blocks[k] = Alloc((k + 1) * 70'000);
      OK(cuMemsetD8Async(blocks[k], 1, (k + 1) * 70'000, nullptr));
    }
    for (CUdeviceptr block : blocks) OK(cuMemFree(block));
  }
}

// The block is the program's to use, throughout.
inline void Use(CUdeviceptr block, size_t bytes) { OK(cuMemsetD8(block, 7, bytes)); }

// Whether the arena answered: an address of its own reservation, which is far larger than the block.
inline bool InArena(CUdeviceptr block) {
  using RecordUse = int (*)(void*, void*);
  const auto record = reinterpret_cast<RecordUse>(dlsym(RTLD_DEFAULT, "hotpack_record_use"));  // says whose a block is
  return record != nullptr && record(reinterpret_cast<void*>(block), nullptr) == 0;
}

inline size_t FreeBytes() {
  size_t free_bytes = 0, total = 0;
  OK(cuMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

inline int CountThreads() {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(tasks);
  return count;
}

// Waits for a child; its status as a shell has it.
inline int Wait(pid_t pid) {
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid);
  return hotpack::ExitCode(status);
}
