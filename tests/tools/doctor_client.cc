// The program that `hotpack doctor` inspects: doctor_client MODE. It opens the driver library by dlopen.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

using Init = int (*)(unsigned int);

int Fail(const char* what) {
  fprintf(stderr, "doctor_client: %s: %s\n", what, dlerror());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | (mode == "deepbind" ? RTLD_DEEPBIND : 0));
  if (driver == nullptr) return Fail("libcuda.so.1");
  if (dlsym(driver, "cuInit") == nullptr || dlsym(driver, "cuMemAlloc_v2") == nullptr) return Fail("cuInit");
  if (mode == "namespace" && dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW) == nullptr) return Fail("dlmopen");
  if (mode == "first" && dlsym(driver, "cuMemAlloc") == nullptr) return Fail("cuMemAlloc");
  if (mode == "alone") {  // long enough to be inspected from outside
    unsetenv("LD_PRELOAD");
    if (argc == 2) {
      execl("/proc/self/exe", argv[0], "alone", "again", static_cast<char*>(nullptr));
      return 1;
    }
    sleep(1);
  }
  return 0;
}
