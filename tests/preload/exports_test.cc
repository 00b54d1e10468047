// The shared libraries export exactly the symbols of their version scripts, which the lists of functions make.
#include <set>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

std::set<std::string> Listed(const std::string& script) {
  std::set<std::string> names;
  std::istringstream text(hotpack_test::ReadFile(script));
  bool global = false;
  for (std::string word; text >> word;) {
    if (word == "#") std::getline(text, word);
    if (word == "global:") global = true;
    if (word == "local:") global = false;
    if (global && word.back() == ';') names.insert(word.substr(0, word.size() - 1));
  }
  return names;
}

std::set<std::string> Exported(const std::string& library) {
  std::set<std::string> names;
  std::istringstream text(hotpack_test::RunProgram({"nm", "-D", "--defined-only", library}).out);
  for (std::string address, type, name; text >> address >> type >> name;) names.insert(name);
  return names;
}

TEST(Exports, Preload) {
  const auto listed = Listed(HOTPACK_BINARY_DIR "/preload/hotpack_preload.map");
  EXPECT_GE(listed.size(), 211u) << "a row was lost";
  EXPECT_EQ(Exported(HOTPACK_PRELOAD), listed);
}

TEST(Exports, CLibrary) {
  const auto listed = Listed(HOTPACK_BINARY_DIR "/preload/hotpack.map");
  EXPECT_EQ(listed.size(), 31u);
  EXPECT_EQ(Exported(HOTPACK_C_LIBRARY), listed);
}

// PyTorch gets addresses. Functions looked up by name are in hotpack_torch.h. No other name may clash with a program's.
TEST(Exports, TorchLibrary) {
  const std::set<std::string> exported = Exported(HOTPACK_TORCH_LIBRARY);
  EXPECT_EQ(exported.size(), 20u);
  for (const std::string& name : exported) EXPECT_EQ(name.rfind("hotpack_torch_", 0), 0u) << name;
  for (const char* name : {"malloc", "free", "init", "reset", "memory_fraction", "base_alloc", "record_stream",
                           "begin_allocate_to_pool", "end_allocate_to_pool", "release_pool"}) {
    EXPECT_EQ(exported.count(std::string("hotpack_torch_") + name), 1u) << name;
  }
}

// A version node or a needed C++ library would show here.
TEST(Exports, NoVersionsAndNoCxxLibrary) {
  for (const char* library : {HOTPACK_PRELOAD, HOTPACK_C_LIBRARY}) {
    const std::string dynamic = hotpack_test::RunProgram({"readelf", "-d", library}).out;
    EXPECT_EQ(dynamic.find("VERDEF"), std::string::npos);
    EXPECT_NE(dynamic.find("so.0]"), std::string::npos);
    if (hotpack_test::SanitizerPreload().empty()) {
      EXPECT_EQ(dynamic.find("libstdc++"), std::string::npos);
    }
  }
}

}  // namespace
