// For LD_PRELOAD under Python: holds PyTorch's autograd thread, once a backward pass has ended, until the interpreter
// shuts down or the program lets it go (at most two seconds). A busy machine does so now and then.
//
// The thread ends a pass with notify_one: it wakes the thread that called backward, by that thread's queue. All its
// other calls of notify_one are for its own queue. It drops its graph after the pass.
#include <dlfcn.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstring>

namespace {

bool let_go = false;  // by __atomic: this layer has no threads of its own
thread_local const void* own_queue = nullptr;

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
extern "C" __attribute__((visibility("default"))) void _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE(
    void* condition, void* lock) {
  static const auto next =
      Find<void (*)(void*, void*)>(RTLD_NEXT, "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
  own_queue = condition;
  next(condition, lock);
}

extern "C" __attribute__((visibility("default"))) void _ZNSt18condition_variable10notify_oneEv(void* condition) {
  static const auto next = Find<void (*)(void*)>(RTLD_NEXT, "_ZNSt18condition_variable10notify_oneEv");
  next(condition);
  if (own_queue != nullptr && condition != own_queue && IsAutogradThread()) AwaitShutdown();
}
