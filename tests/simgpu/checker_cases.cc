// Runs one case: `checker_cases NAME`; without a name it lists them.
#include "tests/simgpu/checker_cases.h"

#include <map>
#include <string>

namespace simgpu_test {
namespace {

std::map<std::string, void (*)()>& Cases() {
  static std::map<std::string, void (*)()> cases;
  return cases;
}

}  // namespace

RegisterCase::RegisterCase(const char* name, void (*run)()) { Cases()[name] = run; }

int Main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, run] : Cases()) printf("%s\n", name.c_str());
    return 0;
  }
  const auto found = Cases().find(argv[1]);
  if (found == Cases().end()) return 2;
  Start();
  arena = NewArena(4);
  s1 = NewStream();
  s2 = NewStream();
  found->second();
  return 0;
}

}  // namespace simgpu_test

int main(int argc, char** argv) { return simgpu_test::Main(argc, argv); }
