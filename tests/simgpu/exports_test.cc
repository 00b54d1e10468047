// What the libraries show to the linker.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "tests/simgpu/subprocess.h"

namespace simgpu_test {
namespace {

std::string Ask(const std::string& tool, const std::string& library) {
  return RunProgram(tool + " " HOTPACK_BINARY_DIR "/lib/simgpu/" + library).output;
}

class ExportsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunProgram("nm --version").status != 0) GTEST_SKIP() << "no binutils";
  }
};

void ExpectOnly(const std::string& library, const std::string& pattern) {
  std::istringstream lines(Ask("nm -D --defined-only", library));
  int count = 0;
  for (std::string address, type, name; lines >> address >> type >> name; ++count) {
    EXPECT_TRUE(std::regex_match(name, std::regex(pattern))) << library << " exports " << name;
  }
  EXPECT_GT(count, 5);
}

TEST_F(ExportsTest, OnlyTheApi) {
  ExpectOnly("libcuda.so.1", "cu[A-Z]\\w+|simgpu[A-Z]\\w+");
  ExpectOnly("libcudart.so.13", "(cuda[A-Z]\\w+|__cuda[A-Z]\\w+)@@libcudart\\.so\\.13|libcudart\\.so\\.13.*");
  ExpectOnly("libsimgpu_witness.so", "cuMem\\w+|cuGetProcAddress(_v2)?|cuDevicePrimaryCtxReset(_v2)?|dlsym");
}

TEST_F(ExportsTest, NamesAndBinding) {
  const std::string cuda = Ask("readelf -d", "libcuda.so.1"), cudart = Ask("readelf -d", "libcudart.so.13");
  EXPECT_NE(cuda.find("soname: [libcuda.so.1]"), std::string::npos);
  EXPECT_NE(cudart.find("soname: [libcudart.so.13]"), std::string::npos);
  // A preloaded cuMemAlloc must not change what cuGetProcAddress answers.
  for (const std::string& dynamic : {cuda, cudart}) {
    EXPECT_NE(dynamic.find("SYMBOLIC"), std::string::npos);
    EXPECT_EQ(dynamic.find("libstdc++"), std::string::npos);
    EXPECT_EQ(dynamic.find("libgcc"), std::string::npos);
  }
  EXPECT_EQ(cudart.find("[libcuda.so.1]"), std::string::npos) << "the runtime opens the driver when it needs it";
}

}  // namespace
}  // namespace simgpu_test
