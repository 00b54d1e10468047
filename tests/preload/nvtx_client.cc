// Ranges of every kind, with a request between them, by scenario. On the driver API.
#include <cuda.h>
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/include/hotpack.h"

namespace {

void Check(CUresult result) {
  if (result != CUDA_SUCCESS) exit(3);
}

// One request and its release: two events.
void Request() {
  CUdeviceptr block = 0;
  Check(cuMemAlloc_v2(&block, 4096));
  Check(cuMemFree_v2(block));
}

nvtxEventAttributes_t Message(nvtxStringHandle_t string) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = string;
  return attributes;
}
nvtxEventAttributes_t Message(const char* text) {
  nvtxEventAttributes_t attributes = Message(nvtxStringHandle_t{});
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

void Kinds() {
  Request();
  nvtxRangePushA("ascii");
  nvtxRangePushW(L"wide \u20ac\U0001F600");
  nvtxEventAttributes_t attributes = Message("attributes");
  nvtxRangePushEx(&attributes);
  for (int i = 0; i < 3; ++i) nvtxRangePop();
  const nvtxRangeId_t a = nvtxRangeStartA("start a"), b = nvtxRangeStartW(L"start b");
  nvtxRangeEnd(a);
  nvtxRangeEnd(b);
  nvtxMarkA("mark a");
  nvtxMarkW(L"mark b");
  nvtxMarkEx(&attributes);
  nvtxEventAttributes_t empty = {};
  nvtxRangePushEx(&empty);  // of no version, without a message
  nvtxRangePushEx(nullptr);
  nvtxRangePushA(nullptr);
  for (int i = 0; i < 3; ++i) nvtxRangePop();
}

void Domains() {
  Request();
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("lib"), wide = nvtxDomainCreateW(L"wide");
  const nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered"),
                           other = nvtxDomainRegisterStringW(wide, L"too");
  nvtxEventAttributes_t first = Message(string), second = Message(other), mark = Message("mark");
  nvtxRangePushA("plain");
  nvtxDomainRangePushEx(domain, &first);
  nvtxRangePop();  // of the default domain: "plain"
  nvtxDomainRangePushEx(wide, &second);
  nvtxDomainRangePop(domain);
  nvtxDomainRangePop(wide);
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &first));
  nvtxDomainMarkEx(domain, &mark);
  nvtxDomainRangePushEx(nullptr, &mark);  // the default domain
  nvtxDomainRangePop(nullptr);
  nvtxDomainDestroy(domain);
  nvtxDomainDestroy(wide);
}

void Unmatched() {
  Request();
  printf("%d", nvtxRangePop());
  printf(" %d", nvtxRangePushA("one"));
  printf(" %d", nvtxRangePushA("two"));
  printf(" %d", nvtxRangePop());
  printf(" %d", nvtxRangePop());
  printf(" %d\n", nvtxRangePop());
  nvtxRangeEnd(12345);
  nvtxRangePushA("left open");
}

// Before the first request there is no recording.
void Early() {
  nvtxRangePushA("early");
  nvtxRangePushA("eval early");
  Request();
  nvtxRangePop();
  nvtxRangePop();
  Request();
}

void Iterations() {
  Request();
  for (int i = 0; i < 3; ++i) {
    nvtxRangePushA("step outer");
    Request();
    nvtxRangePushA("step inner");  // of the same pattern: no iteration
    nvtxRangePop();
    std::thread([] {
      nvtxRangePushA("step thread");  // while the other one is open: none
      nvtxRangePop();
    }).join();
    nvtxMarkA("step mark");  // within one: none
    nvtxRangePop();
  }
  nvtxMarkA("step mark");
  const nvtxRangeId_t a = nvtxRangeStartA("step a"), b = nvtxRangeStartA("step b");  // they overlap: both
  nvtxRangeEnd(a);
  nvtxRangeEnd(b);
  nvtxRangePushA("other");
  nvtxRangePop();
}

void Interrupts() {
  Request();
  nvtxRangePushA("eval");
  nvtxRangePushA("eval nested");
  nvtxRangePop();
  Request();
  nvtxRangePop();
  const nvtxRangeId_t a = nvtxRangeStartA("eval a"), b = nvtxRangeStartA("eval b");
  nvtxRangeEnd(a);
  nvtxRangeEnd(a);  // twice
  nvtxRangeEnd(b);
  std::thread([] { nvtxRangePushA("eval thread"); }).join();  // which ends with the range open
  Request();
}

void CCalls() {
  Request();
  const auto push = reinterpret_cast<decltype(&hotpack_range_push)>(dlsym(RTLD_DEFAULT, "hotpack_range_push"));
  const auto pop = reinterpret_cast<decltype(&hotpack_range_pop)>(dlsym(RTLD_DEFAULT, "hotpack_range_pop"));
  if (push == nullptr || pop == nullptr) exit(4);
  printf("%d", pop());
  printf(" %d", push("step c"));
  printf(" %d", push(nullptr));
  printf(" %d", pop());
  printf(" %d\n", pop());
}

// Another thread names ranges at the moment of a fork; the child's own must not wait for it.
void Fork() {
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
  const nvtxStringHandle_t string = nvtxDomainRegisterStringA(domain, "registered");
  const nvtxEventAttributes_t attributes = Message(string);
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over.load()) {
      nvtxDomainMarkEx(domain, &attributes);
      nvtxDomainRegisterStringA(domain, "another");
    }
  });
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // instead of for ever
      _exit(nvtxDomainRangePushEx(domain, &attributes) == 0 && nvtxDomainRangePop(domain) == 0 ? 0 : 1);
    }
    int status = -1;
    if (waitpid(child, &status, 0) != child || status != 0) break;
    ++good;
  }
  over = true;
  other.join();
  printf("%d\n", good);
}

}  // namespace

int main(int, char** argv) {
  CUcontext context = nullptr;
  Check(cuInit(0));
  Check(cuDevicePrimaryCtxRetain(&context, 0));
  Check(cuCtxSetCurrent(context));
  const struct {
    const char* name;
    void (*run)();
  } scenarios[] = {{"kinds", Kinds},           {"domains", Domains},       {"unmatched", Unmatched}, {"early", Early},
                   {"iterations", Iterations}, {"interrupts", Interrupts}, {"c_calls", CCalls},      {"fork", Fork}};
  for (const auto& scenario : scenarios) {
    if (strcmp(argv[1], scenario.name) != 0) continue;
    scenario.run();
    return 0;
  }
  return 2;
}
