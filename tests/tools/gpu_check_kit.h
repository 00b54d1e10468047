// A folder with gpu_check and what a test puts next to it: the common part of gpu_check's tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"

namespace hotpack_test {

// Returns `text` with `with` at every place of `what`.
inline std::string Replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

class GpuCheckKit : public ::testing::Test {
 protected:
  GpuCheckKit() {
    namespace fs = std::filesystem;
    fs::create_directories(Path("kit/bin"));
    fs::create_directories(Path("kit/lib"));
    fs::copy_file(HOTPACK_GPU_CHECK, Path("kit/bin/gpu_check"));
  }
  // `name` and paths below are relative to the test's folder.
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  void AddProgram(const std::string& name, const std::string& text) {
    std::ofstream(Path(name)) << text;
    std::filesystem::permissions(Path(name), std::filesystem::perms::owner_all);
  }
  nlohmann::json Document() const { return nlohmann::json::parse(ReadFile(Path("out.json"))); }

  TemporaryDirectory folder_;
};

}  // namespace hotpack_test
