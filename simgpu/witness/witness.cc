// The witness. It is preloaded FIRST, before an allocator under test, and tells the checker which blocks the
// application got and gave back through the driver API. (Programs on the runtime API need no witness: libcudart tells
// the checker.)
//
//   application ── cuMemAlloc_v2 ─► witness ── RTLD_NEXT ─► allocator under test ──► libcuda
//
// It also sees pointers fetched with dlsym(handle of libcuda, …) and cuGetProcAddress. It ignores calls that the
// runtime makes for the application (simgpuTeller), and calls inside a call that it already witnesses.
#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "simgpu/checker.h"

#define WITNESS_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Dlsym = void* (*)(void*, const char*);

thread_local int depth = 0;

// libc's own, for look-ups of the witness. (dlvsym with a version does not find another preload's dlsym, which has
// none.) Not a static constant: a child that is forked while another thread initialises one would wait for ever.
Dlsym LibcDlsym() {
  static constinit std::atomic<Dlsym> libc{nullptr};
  Dlsym found = libc.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  void* symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
  if (symbol == nullptr) symbol = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  found = reinterpret_cast<Dlsym>(symbol);
  libc.store(found, std::memory_order_release);  // each thread finds the same
  return found;
}

// The one that the program would call without the witness: the next preload's, or libc's.
Dlsym NextDlsym() {
  void* found = LibcDlsym()(RTLD_NEXT, "dlsym");
  return found != nullptr ? reinterpret_cast<Dlsym>(found) : LibcDlsym();
}

// libcuda may have been opened with dlopen, and is then outside RTLD_DEFAULT's scope.
void* LibCuda() {
  static std::atomic<void*> library{nullptr};
  if (library.load() == nullptr) library.store(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD));  // perhaps not yet
  return library.load();
}

template <typename Function>
Function FromLibCuda(std::atomic<Function>* slot, const char* name) {
  Function function = slot->load(std::memory_order_acquire);
  if (function == nullptr && LibCuda() != nullptr) {
    function = reinterpret_cast<Function>(LibcDlsym()(LibCuda(), name));
    slot->store(function, std::memory_order_release);
  }
  return function;
}

bool TellsItself() {
  static std::atomic<int (*)(int)> teller{nullptr};
  const auto function = FromLibCuda(&teller, "simgpuTeller");
  return function != nullptr && function(0) > 0;
}

// One witnessed call; the outermost one reports.
class Call {
 public:
  Call() : outermost_(depth++ == 0 && !TellsItself()) {}
  ~Call() { --depth; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // By pointer, because arguments are evaluated in no order.
  CUresult Given(CUresult result, const CUdeviceptr* address, size_t bytes, void* stream) const {
    static std::atomic<decltype(&simgpuBlockGiven)> slot{nullptr};
    if (!outermost_ || result != CUDA_SUCCESS) return result;
    if (const auto given = FromLibCuda(&slot, "simgpuBlockGiven"); given != nullptr) given(*address, bytes, stream);
    return result;
  }
  void Returned(CUdeviceptr address, void* stream) const {
    static std::atomic<decltype(&simgpuBlockReturned)> slot{nullptr};
    if (!outermost_ || address == 0) return;
    if (const auto returned = FromLibCuda(&slot, "simgpuBlockReturned"); returned != nullptr) returned(address, stream);
  }
  // Handles the result of the reported release: if it was refused, the block stays the application's.
  CUresult Answered(CUresult result, CUdeviceptr address) const {
    static std::atomic<decltype(&simgpuBlockKept)> slot{nullptr};
    if (!outermost_ || address == 0 || result == CUDA_SUCCESS) return result;
    if (const auto kept = FromLibCuda(&slot, "simgpuBlockKept"); kept != nullptr) kept(address);
    return result;
  }
  void Reset(CUdevice device) const {
    static std::atomic<decltype(&simgpuDeviceReset)> slot{nullptr};
    if (!outermost_) return;
    if (const auto reset = FromLibCuda(&slot, "simgpuDeviceReset"); reset != nullptr) reset(device);
  }

 private:
  bool outermost_;
};

// Returns the function behind a witnessed one: the last one fetched for it, else the next in the search order.
template <typename Function>
class Next {
 public:
  explicit constexpr Next(const char* name) : name_(name) {}
  Function operator()() {
    Function function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function>(LibcDlsym()(RTLD_NEXT, name_));
      if (function == nullptr && LibCuda() != nullptr) {
        function = reinterpret_cast<Function>(LibcDlsym()(LibCuda(), name_));
      }
      function_.store(function, std::memory_order_release);
    }
    return function;
  }
  void Set(void* function) { function_.store(reinterpret_cast<Function>(function), std::memory_order_release); }

 private:
  const char* name_;
  std::atomic<Function> function_{nullptr};
};

#define WITNESS_NEXT(symbol) Next<decltype(&::symbol)> next_##symbol{#symbol};
WITNESS_NEXT(cuMemAlloc_v2)
WITNESS_NEXT(cuMemFree_v2)
WITNESS_NEXT(cuMemAllocPitch_v2)
WITNESS_NEXT(cuMemAllocAsync)
WITNESS_NEXT(cuMemAllocAsync_ptsz)
WITNESS_NEXT(cuMemAllocFromPoolAsync)
WITNESS_NEXT(cuMemAllocFromPoolAsync_ptsz)
WITNESS_NEXT(cuMemFreeAsync)
WITNESS_NEXT(cuMemFreeAsync_ptsz)
WITNESS_NEXT(cuDevicePrimaryCtxReset_v2)
WITNESS_NEXT(cuGetProcAddress)
WITNESS_NEXT(cuGetProcAddress_v2)
#undef WITNESS_NEXT

}  // namespace

WITNESS_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const Call call;
  return call.Given(next_cuMemAlloc_v2()(address, bytes), address, bytes, SIMGPU_NO_STREAM);
}

WITNESS_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                           unsigned element) {
  const Call call;
  const CUresult result = next_cuMemAllocPitch_v2()(address, pitch, width, height, element);
  return call.Given(result, address, result == CUDA_SUCCESS ? *pitch * height : 0, SIMGPU_NO_STREAM);
}

WITNESS_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  const Call call;
  call.Returned(address, SIMGPU_NO_STREAM);
  return call.Answered(next_cuMemFree_v2()(address), address);
}

WITNESS_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  const Call call;
  call.Reset(device);
  return next_cuDevicePrimaryCtxReset_v2()(device);
}

#define WITNESS_ASYNC(variant)                                                                                        \
  WITNESS_EXPORT CUresult cuMemAllocAsync##variant(CUdeviceptr* address, size_t bytes, CUstream stream) {             \
    const Call call;                                                                                                  \
    return call.Given(next_cuMemAllocAsync##variant()(address, bytes, stream), address, bytes, stream);               \
  }                                                                                                                   \
  WITNESS_EXPORT CUresult cuMemAllocFromPoolAsync##variant(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,     \
                                                           CUstream stream) {                                         \
    const Call call;                                                                                                  \
    return call.Given(next_cuMemAllocFromPoolAsync##variant()(address, bytes, pool, stream), address, bytes, stream); \
  }                                                                                                                   \
  WITNESS_EXPORT CUresult cuMemFreeAsync##variant(CUdeviceptr address, CUstream stream) {                             \
    const Call call;                                                                                                  \
    call.Returned(address, stream);                                                                                   \
    return call.Answered(next_cuMemFreeAsync##variant()(address, stream), address);                                   \
  }
WITNESS_ASYNC()
WITNESS_ASYNC(_ptsz)

namespace {

constexpr int kOldest = 3020;  // older requests get entry points without a witness

struct Witnessed {
  const char* symbol;  // its name for dlsym
  const char* base;    // its name for cuGetProcAddress; null: not available there
  bool per_thread;
  void* ours;
  void (*set)(void*);
};

#define WITNESS_ROW(symbol, base, per_thread)                                                              \
  {                                                                                                        \
#symbol, base, per_thread, reinterpret_cast < void*>(&::symbol), [](void* f) { next_##symbol.Set(f); } \
  }

const Witnessed* Rows(size_t* count);

// Returns the witness's function for a looked-up pointer, which that function then calls.
void* Substitute(const Witnessed& row, void* found) {
  if (found == nullptr || found == row.ours) return found;
  row.set(found);
  return row.ours;
}

void Replace(const char* base, void** function, int version, cuuint64_t flags) {
  size_t count = 0;
  const Witnessed* rows = Rows(&count);
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  const Witnessed* match = nullptr;
  if (strcmp(base, "cuDevicePrimaryCtxReset") == 0 && version < 11000) return;
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].base == nullptr || strcmp(rows[i].base, base) != 0) continue;
    if (match == nullptr || rows[i].per_thread == per_thread) match = &rows[i];
  }
  if (match != nullptr) *function = Substitute(*match, *function);
}

}  // namespace

WITNESS_EXPORT CUresult cuGetProcAddress(const char* name, void** function, int version, cuuint64_t flags) {
  const CUresult result = next_cuGetProcAddress()(name, function, version, flags);
  if (result == CUDA_SUCCESS && name != nullptr && version >= kOldest) Replace(name, function, version, flags);
  return result;
}

WITNESS_EXPORT CUresult cuGetProcAddress_v2(const char* name, void** function, int version, cuuint64_t flags,
                                            CUdriverProcAddressQueryResult* status) {
  const CUresult result = next_cuGetProcAddress_v2()(name, function, version, flags, status);
  if (result == CUDA_SUCCESS && name != nullptr && *function != nullptr && version >= kOldest) {
    Replace(name, function, version, flags);
  }
  return result;
}

namespace {

const Witnessed* Rows(size_t* count) {
  static const Witnessed rows[] = {
      WITNESS_ROW(cuMemAlloc_v2, "cuMemAlloc", false),
      WITNESS_ROW(cuMemFree_v2, "cuMemFree", false),
      WITNESS_ROW(cuMemAllocPitch_v2, "cuMemAllocPitch", false),
      WITNESS_ROW(cuMemAllocAsync, "cuMemAllocAsync", false),
      WITNESS_ROW(cuMemAllocAsync_ptsz, "cuMemAllocAsync", true),
      WITNESS_ROW(cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync", false),
      WITNESS_ROW(cuMemAllocFromPoolAsync_ptsz, "cuMemAllocFromPoolAsync", true),
      WITNESS_ROW(cuMemFreeAsync, "cuMemFreeAsync", false),
      WITNESS_ROW(cuMemFreeAsync_ptsz, "cuMemFreeAsync", true),
      WITNESS_ROW(cuDevicePrimaryCtxReset_v2, "cuDevicePrimaryCtxReset", false),
      WITNESS_ROW(cuGetProcAddress, nullptr, false),
      WITNESS_ROW(cuGetProcAddress_v2, nullptr, false),
  };
  *count = sizeof rows / sizeof rows[0];
  return rows;
}

}  // namespace

#if defined(__x86_64__)

// Returns null if the next dlsym must answer, because it must see the true caller.
extern "C" {
__attribute__((visibility("hidden"))) Dlsym simgpu_witness_next_dlsym = nullptr;
}
extern "C" __attribute__((visibility("hidden"))) void* simgpu_witness_dlsym(void* handle, const char* name) {
  if (simgpu_witness_next_dlsym == nullptr) simgpu_witness_next_dlsym = NextDlsym();
  if (handle == RTLD_NEXT || handle == RTLD_DEFAULT || name == nullptr || name[0] != 'c' || name[1] != 'u')
    return nullptr;
  size_t count = 0;
  const Witnessed* rows = Rows(&count);
  for (size_t i = 0; i < count; ++i) {
    if (strcmp(rows[i].symbol, name) != 0) continue;
    return Substitute(rows[i], simgpu_witness_next_dlsym(handle, name));
  }
  return nullptr;
}

extern "C" __attribute__((naked, visibility("default"))) void* dlsym(void*, const char*) noexcept {
  asm("push %rdi\n\t"
      "push %rsi\n\t"
      "sub $8, %rsp\n\t"
      "call simgpu_witness_dlsym\n\t"
      "add $8, %rsp\n\t"
      "pop %rsi\n\t"
      "pop %rdi\n\t"
      "test %rax, %rax\n\t"
      "jne 1f\n\t"
      "jmp *simgpu_witness_next_dlsym(%rip)\n"
      "1:\n\t"
      "ret");
}

#endif
