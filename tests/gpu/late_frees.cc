// Releases at odd times (from another thread, after a reset, after main, in a forked child) and wrong releases. Most
// end the process or corrupt its context, so each has its own process (late_frees_children.cc).
#include <thread>

#include "tests/gpu/child.h"
#include "tests/gpu/probe.h"

namespace hotpack::gpu {
namespace {

const std::string kSuccess = std::to_string(cudaSuccess);
const std::string kInvalidValue = std::to_string(cudaErrorInvalidValue);

// Blocks are given back by another thread than the one that asked for them, which may have ended.
void OtherThread(const Probe& probe) {
  void* block = nullptr;
  cudaError_t error = cudaErrorUnknown;
  HOTPACK_NEED(cudaMalloc(&block, kMiB));
  std::thread([&] { error = cudaFree(block); }).join();
  probe.Must(error == cudaSuccess, "late_frees.other_thread", "success", ErrorName(error));
  std::thread([&] { error = cudaMalloc(&block, kMiB); }).join();
  HOTPACK_NEED(error);
  error = cudaFree(block);
  probe.Must(error == cudaSuccess, "late_frees.of_ended_thread", "success", ErrorName(error));
}

// A release after main may succeed or be refused, but the process ends as it would have.
void AfterMain(const Probe& probe, const std::string& child) {
  const ChildOutcome outcome = RunChild(child);
  const std::string answer = outcome.Value("free");
  const bool known = answer == kSuccess || answer == std::to_string(cudaErrorCudartUnloading) ||
                     answer == std::to_string(cudaErrorContextIsDestroyed);
  probe.Must(outcome.Good() && answer != "nothing", "late_frees." + child, "exit 0 after the release",
             outcome.end + ", the release gave " + answer);
  probe.found->Fact(known, "late_frees." + child + ".answer", "0, 4 (cudart is unloading) or 709 (context destroyed)",
                    answer);
}

void AfterReset(const Probe& probe) {
  const ChildOutcome outcome = RunChild("after_reset");
  probe.Must(outcome.Good() && outcome.Value("works") == "yes", "late_frees.after_reset.goes_on",
             "exit 0, and memory after the reset is good",
             outcome.end + ", memory after the reset is good: " + outcome.Value("works"));
  probe.found->Fact(outcome.Value("free") == kInvalidValue, "late_frees.after_reset.answer",
                    "1 (invalid value) for a block from before the reset", outcome.Value("free"));
}

void Forked(const Probe& probe) {
  const ChildOutcome outcome = RunChild("fork");
  probe.Must(outcome.Value("child") == "exit 0", "late_frees.fork.child", "the forked child ends with exit 0",
             outcome.Value("child") + ", its release gave " + outcome.Value("free_in_child"));
  probe.Must(outcome.Good() && outcome.Value("works") == "yes" && outcome.Value("free") == kSuccess,
             "late_frees.fork.parent", "the parent's block keeps its value and can be given back",
             outcome.end + ", value kept: " + outcome.Value("works") + ", its release gave " + outcome.Value("free"));
  probe.found->Fact(outcome.Value("free_in_child") == std::to_string(cudaErrorInitializationError),
                    "late_frees.fork.answer", "3 (initialization error) in the child", outcome.Value("free_in_child"));
}

void Wrong(const Probe& probe) {
  const ChildOutcome outcome = RunChild("wrong_frees");
  probe.Must(outcome.Good() && outcome.Value("works") == "yes", "late_frees.wrong.goes_on",
             "exit 0, and memory is good afterwards", outcome.end + ", memory is good: " + outcome.Value("works"));
  for (const char* kind : {"double_free", "double_free_async", "interior"}) {
    probe.Must(outcome.Value(kind) == kInvalidValue, std::string("late_frees.wrong.") + kind, "1 (invalid value)",
               outcome.Value(kind));
  }
  for (const char* kind : {"wild", "wild_async"}) {  // never hotpack's: the driver answers
    probe.found->Fact(outcome.Value(kind) == kInvalidValue, std::string("late_frees.wrong.") + kind,
                      "1 (invalid value)", outcome.Value(kind));
  }
}

}  // namespace

void RunLateFrees(Probe& probe) {
  OtherThread(probe);
  for (const char* child : {"atexit_before_cuda", "atexit_after_cuda", "static_destructor"}) AfterMain(probe, child);
  AfterReset(probe);
  Forked(probe);
  Wrong(probe);
}

}  // namespace hotpack::gpu
