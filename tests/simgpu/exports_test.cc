// The symbols that the libraries export to the linker.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "tests/simgpu/reports.h"

namespace simgpu_test {
namespace {

std::string Ask(const std::string& tool, const std::string& library) {
  return RunChecked(tool + " " HOTPACK_BINARY_DIR "/lib/simgpu/" + library).out;
}

class ExportsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (RunChecked("nm --version").code != 0) GTEST_SKIP() << "no binutils";
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
  ExpectOnly("libnvidia-ml.so.1", "nvml[A-Z]\\w+");
  ExpectOnly("libsimgpu_witness.so", "cuMem\\w+|cuGetProcAddress(_v2)?|cuDevicePrimaryCtxReset(_v2)?|dlsym");
}

// A program's own libzstd takes nothing from the driver's and gives it nothing.
TEST_F(ExportsTest, Zstd) { EXPECT_EQ(Ask("nm -D", "libcuda.so.1").find("ZSTD"), std::string::npos); }

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

// The functions an nm listing has, without their versions.
std::set<std::string> Functions(const std::string& listing) {
  std::set<std::string> functions;
  std::istringstream lines(listing);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, std::regex("\\w+ T (\\w+)(@.*)?"))) functions.insert(found[1]);
  }
  return functions;
}

TEST_F(ExportsTest, TheArchiveHasWhatTheSharedRuntimeHas) {
  const std::set<std::string> shared = Functions(Ask("nm -D --defined-only", "libcudart.so.13"));
  EXPECT_GT(shared.size(), 300u);
  EXPECT_EQ(Functions(Ask("nm -g --defined-only", "libcudart_static.a")), shared);
}

TEST_F(ExportsTest, TheArchiveHidesWhatItHas) {
  std::istringstream lines(Ask("readelf -sW", "libcudart_static.a"));
  int hidden = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!std::regex_search(line, std::regex(" (GLOBAL|WEAK|UNIQUE) ")) || line.find(" UND ") != std::string::npos)
      continue;
    EXPECT_NE(line.find(" HIDDEN "), std::string::npos) << line;
    ++hidden;
  }
  EXPECT_GT(hidden, 300);
  const CheckedOutcome outcome =
      RunChecked(HOTPACK_BINARY_DIR "/tests/simgpu_static_client", "LD_LIBRARY_PATH=" HOTPACK_BINARY_DIR "/lib/simgpu");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "done\n");
}

// A program that was linked with the toolkit's archive can be linked with ours. In addition to the API, the toolkit's
// has functions for graphics, and functions that only its own runtime calls.
TEST_F(ExportsTest, TheArchiveCoversTheToolkits) {
#ifndef SIMGPU_TOOLKIT_CUDART_STATIC
  GTEST_SKIP() << "no libcudart_static.a of a toolkit";
#else
  const std::set<std::string> ours = Functions(Ask("nm -g --defined-only", "libcudart_static.a"));
  const std::set<std::string> theirs = Functions(RunChecked("nm -g --defined-only " SIMGPU_TOOLKIT_CUDART_STATIC).out);
  const std::regex not_ours(
      "libcudart_static_.*|cuda.*(EGL|Egl|GL|VDPAU).*|__cudaGetProcAddress|"
      "__cudaRegister(HostVar|UnifiedTable)");
  EXPECT_GT(theirs.size(), 300u);
  for (const std::string& name : theirs) {
    if (std::regex_match(name, not_ours)) continue;
    EXPECT_TRUE(ours.contains(name)) << name;
  }
#endif
}

}  // namespace
}  // namespace simgpu_test
