// The toolkit's own libcudart (shared and static), cuBLAS and cuDNN get our pointers from every look-up of a hooked
// function. With HOTPACK=0 they get none.
#include <filesystem>
#include <set>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

struct Pointers {
  int code = 0;
  long lookups = 0;
  std::set<std::string> ours, drivers;
  std::string text;
};

Pointers Run(std::vector<std::string> command, bool on) {
  const hotpack_test::Outcome outcome =
      hotpack_test::RunProgram(command, {{"LD_PRELOAD", hotpack_test::SanitizerPreload() + HOTPACK_PRELOAD},
                                         {"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub:" HOTPACK_TOOLKIT_LIBRARIES},
                                         {"HOTPACK", on ? "" : "0"},
                                         {"ASAN_OPTIONS", "detect_leaks=0"}});
  Pointers pointers;
  pointers.code = outcome.code;
  pointers.text = outcome.out + outcome.err;
  std::istringstream lines(outcome.out);
  for (std::string word; lines >> word;) {
    if (word == "lookups") lines >> pointers.lookups;
    if (word == "ours:" && lines >> word) pointers.ours.insert(word);
    if (word == "driver's:" && lines >> word) pointers.drivers.insert(word);
  }
  return pointers;
}

// The known look-ups of libcudart 13, by purpose.
const std::set<std::string> kWanted = {"cuGetProcAddress_v2",          "cuMemAlloc_v2",
                                       "cuMemAllocPitch_v2",           "cuMemFree_v2",
                                       "cuMemGetAddressRange_v2",      "cuMemAllocAsync",
                                       "cuMemAllocAsync_ptsz",         "cuMemAllocFromPoolAsync",
                                       "cuMemAllocFromPoolAsync_ptsz", "cuMemFreeAsync",
                                       "cuMemFreeAsync_ptsz",          "cuStreamDestroy_v2",
                                       "cuStreamBeginCapture_v2",      "cuStreamBeginCapture_v2_ptsz",
                                       "cuStreamBeginCaptureToGraph",  "cuStreamEndCapture",
                                       "cuStreamEndCapture_ptsz",      "cuDevicePrimaryCtxRetain",
                                       "cuDevicePrimaryCtxRelease",    "cuDevicePrimaryCtxReset",
                                       "cuDeviceSetMemPool",           "cuLaunchKernel",
                                       "cuLaunchKernel_ptsz",          "cuLaunchKernelEx",
                                       "cuLaunchKernelEx_ptsz",        "cuMemcpyHtoDAsync_v2_ptsz",
                                       "cuMemsetD8Async_ptsz",         "cuGraphLaunch_ptsz"};

void ExpectOurPointers(const std::vector<std::string>& command) {
  const Pointers on = Run(command, true);
  if (on.code == 77) GTEST_SKIP() << "cannot be loaded here: " << on.text;
  ASSERT_EQ(on.code, 0) << on.text;
  EXPECT_GT(on.lookups, 400) << on.text;
  EXPECT_EQ(on.drivers, std::set<std::string>{}) << on.text;
  for (const std::string& symbol : kWanted) EXPECT_EQ(on.ours.count(symbol), 1u) << symbol;
  const Pointers off = Run(command, false);
  EXPECT_EQ(off.ours, std::set<std::string>{}) << off.text;
  EXPECT_EQ(off.drivers, on.ours) << "the same look-ups, unchanged";
}

std::string Library(const char* name) {
  const std::string path = std::string(HOTPACK_TOOLKIT_LIBRARIES) + "/" + name;
  return std::filesystem::exists(path) ? path : "";
}

class Toolkit : public testing::TestWithParam<std::vector<const char*>> {};
INSTANTIATE_TEST_SUITE_P(All, Toolkit,
                         testing::Values(std::vector<const char*>{"libcudart.so.13", "cudaMalloc"},
                                         std::vector<const char*>{"libcublas.so.13", "cublasCreate_v2"},
                                         std::vector<const char*>{"libcublasLt.so.13", "cublasLtCreate"},
                                         std::vector<const char*>{"libcudnn.so.9", "cudnnCreate"}),
                         [](const auto& param) {
                           const std::string name = param.param[0];
                           return name.substr(3, name.find('.') - 3);
                         });

TEST_P(Toolkit, IsHandedOurPointers) {
  const std::string path = Library(GetParam()[0]);
  if (path.empty()) GTEST_SKIP() << GetParam()[0] << " is not in the toolkit's library folder";
  // cuDNN keeps the pointers in its parts; the runtime that all of them contain is what holds the tables.
  const std::string object = GetParam()[0];
  ExpectOurPointers({HOTPACK_TEST_DIR "/toolkit_client", object.substr(0, object.find('.')), path, GetParam()[1]});
}

TEST(ToolkitStatic, RuntimeIsHandedOurPointers) {
  if (std::string(HOTPACK_STATIC_CLIENT).empty()) GTEST_SKIP() << "libcudart_static.a is not in the toolkit's folder";
  ExpectOurPointers({HOTPACK_STATIC_CLIENT});
}

}  // namespace
