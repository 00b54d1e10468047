// A training job for the tests of saved plans: weights, then steps that repeat. plan_client MODE [STEPS [SCALE]]
//   run       STEPS steps (default 8), return
//   leave     the same, then change to another directory
//   kill      the same, then SIGKILL
//   forever   steps without end
//   contexts  two contexts, a job in each
//   reset     the context is destroyed and created again, then the job once more
//   fork      a child does the job once more in a context of its own
//   save      hotpack_save_plan with all kinds of paths; STEPS is a folder
#include <cuda.h>
#undef cuCtxCreate
extern "C" CUresult cuCtxCreate_v2(CUcontext*, unsigned, CUdevice);  // not in every version of cuda.h
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tests/preload/client_api.h"

namespace {

size_t scale = 1;

CUdeviceptr Ask(size_t bytes) {
  CUdeviceptr pointer = 0;
  OK(cuMemAlloc(&pointer, bytes * scale));
  return pointer;
}

std::vector<CUdeviceptr> Weights() {
  std::vector<CUdeviceptr> weights;
  for (size_t i = 0; i < 5; ++i) weights.push_back(Ask(30000 + 999 * i));
  return weights;
}

void Step() {
  std::vector<CUdeviceptr> activations;
  for (size_t layer = 0; layer < 30; ++layer) {
    activations.push_back(Ask(100000 + 5000 * layer));
    OK(cuMemFree(Ask(7000 + 3000 * layer)));
  }
  while (!activations.empty()) {
    const CUdeviceptr gradient = Ask(90000 + 1000 * activations.size());
    OK(cuMemFree(activations.back()));
    activations.pop_back();
    OK(cuMemFree(gradient));
  }
}

int (*wait_plan)(int) = nullptr;
int (*save_plan)(const char*) = nullptr;

void Train(int steps) {
  const std::vector<CUdeviceptr> weights = Weights();
  for (int i = 0; i < steps; ++i) {
    Step();
    if (wait_plan != nullptr) wait_plan(-1);
  }
  for (CUdeviceptr weight : weights) OK(cuMemFree(weight));
}

CUcontext NewContext() {
  CUcontext context = nullptr;
  OK(cuCtxCreate_v2(&context, 0, 0));
  return context;
}

void TrainInChild(int steps) {
  const pid_t pid = fork();
  if (pid == 0) {
    OK(cuInit(0));
    NewContext();
    Train(steps);
    exit(0);
  }
  int status = 0;
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

void SaveEverywhere(const std::string& folder) {
  CHECK(save_plan((folder + "/a").c_str()) == ENODATA);  // no arena yet
  NewContext();
  OK(cuMemFree(Ask(512)));
  CHECK(save_plan((folder + "/a").c_str()) == ENODATA);  // no plan yet
  CHECK(save_plan(nullptr) == EINVAL);                   // no HOTPACK_PLAN
  CHECK(save_plan("") == EINVAL);
  Train(8);
  CHECK(save_plan((folder + "/a").c_str()) == 0);
  CHECK(save_plan((folder + "/a").c_str()) == 0);  // in place of the first
  CHECK(save_plan((folder + "/b.%d").c_str()) == 0);
  CHECK(save_plan((folder + "/no/such").c_str()) == ENOENT);
  CHECK(save_plan((folder + "/thesis").c_str()) == EEXIST);
  CHECK(save_plan(folder.c_str()) == EISDIR);
  CHECK(save_plan(std::string(5000, 'x').c_str()) == ENAMETOOLONG);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc >= 2);
  const std::string mode = argv[1];
  const int steps = argc > 2 ? atoi(argv[2]) : 8;
  if (argc > 3) scale = static_cast<size_t>(atoi(argv[3]));
  wait_plan = reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "hotpack_wait_plan"));
  save_plan = reinterpret_cast<int (*)(const char*)>(dlsym(RTLD_DEFAULT, "hotpack_save_plan"));
  OK(cuInit(0));
  if (mode == "save") {
    CHECK(save_plan != nullptr);
    SaveEverywhere(argv[2]);
    return 0;
  }
  CUcontext context = NewContext();
  if (mode == "forever") {
    Weights();
    while (true) Step();
  }
  Train(steps);
  if (mode == "leave") CHECK(chdir("/") == 0);
  if (mode == "kill") raise(SIGKILL);
  if (mode == "contexts") {
    NewContext();
    Train(steps);
  }
  if (mode == "reset") {
    OK(cuCtxDestroy(context));
    NewContext();
    Train(steps);
  }
  if (mode == "fork") TrainInChild(steps);
  return 0;
}
