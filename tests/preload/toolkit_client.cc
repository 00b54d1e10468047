// Opens (or, built with the static runtime, contains) one of the toolkit's own libraries, and makes it look up the
// driver. Then it reads that library's memory. It must hold our pointers for the hooked functions that it looked up,
// and the driver's own for none of them.
//
// The driver is the stub, which refuses cuInit, so the library gives up after its look-ups. The stub imitates nothing
// else of NVIDIA's.
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "preload/hooks/hook_list.h"
#include "preload/hooks/work_list.h"
#include "tests/preload/stub_driver.h"

#if defined(STATIC_RUNTIME)
extern "C" int cudaMalloc(void**, size_t);
#endif

namespace {

const char* const kHooked[] = {
#define HOTPACK_NAME(symbol, ...) #symbol,
    HOTPACK_HOOKS(HOTPACK_NAME) HOTPACK_WORK(HOTPACK_NAME)
#undef HOTPACK_NAME
};

struct Found {
  std::set<std::string> ours, drivers;
};

struct Search {
  const char* object;  // part of its name; "" for the program itself
  std::map<void*, std::string> ours, drivers;
  Found found;
  bool seen = false;
};

void Scan(Search* search, const void* begin, size_t bytes) {
  const auto* words = static_cast<void* const*>(begin);
  for (size_t i = 0; i < bytes / sizeof(void*); ++i) {
    if (const auto hit = search->ours.find(words[i]); hit != search->ours.end()) search->found.ours.insert(hit->second);
    if (const auto hit = search->drivers.find(words[i]); hit != search->drivers.end()) {
      search->found.drivers.insert(hit->second);
    }
  }
}

int Visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const bool program = search->object[0] == '\0';
  if (program ? info->dlpi_name[0] != '\0' : strstr(info->dlpi_name, search->object) == nullptr) return 0;
  search->seen = true;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    Scan(search, reinterpret_cast<const void*>((info->dlpi_addr + segment.p_vaddr + 7) & ~uintptr_t{7}),
         segment.p_memsz & ~7ull);
  }
  return 0;
}

// Prints every look-up of a hooked function that the stub saw, and the library's memory for it.
int Judge(const char* object, long least_lookups) {
  Search search = {object, {}, {}, {}, false};
  for (const char* symbol : kHooked) {
    void* ours = dlsym(RTLD_DEFAULT, symbol);
    void* real = stub_real(symbol);
    if (real == nullptr) continue;  // not in the stub
    if (ours == nullptr || ours == real) {
      fprintf(stderr, "%s is not exported by the preload\n", symbol);
      return 1;
    }
    search.ours[ours] = symbol;
    search.drivers[real] = symbol;
  }
  dl_iterate_phdr(Visit, &search);
  printf("lookups %ld, ours %zu, driver's %zu\n", stub_lookups(""), search.found.ours.size(),
         search.found.drivers.size());
  for (const std::string& symbol : search.found.ours) printf("ours: %s\n", symbol.c_str());
  for (const std::string& symbol : search.found.drivers) printf("driver's: %s\n", symbol.c_str());
  return search.seen && stub_lookups("") >= least_lookups ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  stub_fail_init();
#if defined(STATIC_RUNTIME)
  (void)argc;
  (void)argv;
  void* pointer = nullptr;
  printf("answer %d\n", cudaMalloc(&pointer, 4096));
  return Judge("", 100);
#else
  // toolkit_client OBJECT PATH [FUNCTION]: FUNCTION(void** or void*, size_t) is called to set it going.
  if (argc < 3) return 2;
  void* library = dlopen(argv[2], RTLD_NOW);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 77;
  }
  if (argc > 3) {
    const auto function = reinterpret_cast<int (*)(void**, size_t)>(dlsym(library, argv[3]));
    if (function == nullptr) return 2;
    void* pointer = nullptr;
    printf("answer %d\n", function(&pointer, 4096));
  }
  return Judge(argv[1], 1);
#endif
}
