// Opens deepbind_library with RTLD_DEEPBIND and reports which library served its allocation.
#include <dlfcn.h>

#include <cstdio>

int main() {
  void* library = dlopen(HOTPACK_TEST_DIR "/libdeepbind.so", RTLD_NOW | RTLD_DEEPBIND);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto allocate = reinterpret_cast<unsigned long long (*)()>(dlsym(library, "deepbind_allocate"));
  const unsigned long long address = allocate();
  puts(address == 0 ? "failed" : address >= 0x7000'0000'0000 ? "served" : "driver");
  return 0;
}
