// A fixture for tests of the command that read and write their own files.
#pragma once

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace hotpack_test {

class CommandFolder : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  // Returns the path.
  std::string Write(const std::string& name, const std::string& contents) const {
    std::ofstream(Path(name), std::ios::binary) << contents;
    return Path(name);
  }
  TemporaryDirectory folder_;
};

}  // namespace hotpack_test
