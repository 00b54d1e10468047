// For LD_PRELOAD under Python: holds PyTorch's autograd thread, once a backward pass has ended, until the interpreter
// shuts down or the program lets it go (at most two seconds). A busy machine does so now and then.
//
// The thread ends a pass with notify_all (the pass's future), then notify_one (the queue of the thread that called
// backward). It drops its graph after that.
#include <dlfcn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

namespace {

bool let_go = false;  // by __atomic: this layer has no threads of its own
thread_local bool pass_ended = false;

template <class Function>
Function Find(void* handle, const char* name) {
  return reinterpret_cast<Function>(dlsym(handle, name));
}

bool IsAutogradThread() {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return strncmp(name, "pt_autograd", 11) == 0;
}

bool LetGo() { return __atomic_load_n(&let_go, __ATOMIC_ACQUIRE); }

void AwaitShutdown() {
  static const auto is_finalizing = Find<int (*)()>(RTLD_DEFAULT, "_Py_IsFinalizing");
  for (int left = 2000; left > 0 && is_finalizing != nullptr && is_finalizing() == 0 && !LetGo(); --left) usleep(1000);
}

}  // namespace

// Lets the thread go, and returns once it has had the time to do what was left, or to request the interpreter's lock.
extern "C" __attribute__((visibility("default"))) void let_autograd_thread_go() {
  __atomic_store_n(&let_go, true, __ATOMIC_RELEASE);
  usleep(200000);
}

// std::condition_variable's members, by the names in libstdc++.
extern "C" __attribute__((visibility("default"))) void _ZNSt18condition_variable10notify_allEv(void* condition) {
  static const auto next = Find<void (*)(void*)>(RTLD_NEXT, "_ZNSt18condition_variable10notify_allEv");
  next(condition);
  pass_ended = pass_ended || IsAutogradThread();
}

extern "C" __attribute__((visibility("default"))) void _ZNSt18condition_variable10notify_oneEv(void* condition) {
  static const auto next = Find<void (*)(void*)>(RTLD_NEXT, "_ZNSt18condition_variable10notify_oneEv");
  next(condition);
  if (!pass_ended) return;
  pass_ended = false;
  AwaitShutdown();
}
