#include "tests/preload/client_api.h"

#define CLIENT_LINK(member, symbol, base, version, stream, type) \
  extern "C" std::type_identity_t<type> Linked_##member __asm__(#symbol);
CLIENT_FUNCTIONS(CLIENT_LINK)

extern "C" CUresult LinkedGetProcAddress(const char*, void**, int, cuuint64_t) __asm__("cuGetProcAddress");

namespace {

using OldLookUp = CUresult (*)(const char*, void**, int, cuuint64_t);
using NewLookUp = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* Driver() {
  void* library = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(library != nullptr);
  return library;
}

void* ByName(const char* way, const char* symbol) {
  void* found = nullptr;
  if (strcmp(way, "dlsym") == 0) found = dlsym(Driver(), symbol);
  if (strcmp(way, "default") == 0) found = dlsym(RTLD_DEFAULT, symbol);
  if (strcmp(way, "dlvsym") == 0) found = dlvsym(Driver(), symbol, "STUB_1.0");
  return found;
}

void* ByLookUp(const char* way, const char* base, int version, cuuint64_t stream) {
  void* found = nullptr;
  if (strcmp(way, "oldproc") == 0) {
    // As the runtime before CUDA 12 does it: the four-parameter form, itself found by look-up.
    void* get = nullptr;
    OK(LinkedGetProcAddress("cuGetProcAddress", &get, 11030, 0));
    OK(reinterpret_cast<OldLookUp>(get)(base, &found, version, stream));
  } else {
    const auto first = reinterpret_cast<NewLookUp>(dlsym(Driver(), "cuGetProcAddress_v2"));
    void* get = nullptr;
    OK(first("cuGetProcAddress", &get, 12000, 0, nullptr));
    OK(reinterpret_cast<NewLookUp>(get)(base, &found, version, stream, nullptr));
  }
  return found;
}

}  // namespace

Api GetApi(const char* way) {
  Api api;
  const bool proc = strstr(way, "proc") != nullptr;
#define CLIENT_GET(member, symbol, base, version, stream, type)                                         \
  if (strcmp(way, "link") == 0) {                                                                       \
    api.member = &Linked_##member;                                                                      \
  } else {                                                                                              \
    api.member = reinterpret_cast<std::add_pointer_t<type>>(proc ? ByLookUp(way, base, version, stream) \
                                                                 : ByName(way, #symbol));               \
  }                                                                                                     \
  CHECK(api.member != nullptr);
  CLIENT_FUNCTIONS(CLIENT_GET)
  return api;
}
