// libnvidia-ml.so.1: the existing devices, by index and by bus. Nothing else is supported.
#include <dlfcn.h>

#include <cstdlib>

#include "gtest/gtest.h"

namespace {

class NvmlTest : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(HOTPACK_BINARY_DIR "/lib/simgpu/libnvidia-ml.so.1", RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    unsetenv("SIMGPU_DEVICES");
  }
  template <typename... Arguments>
  int Call(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, name));
    EXPECT_NE(function, nullptr) << name;
    return function != nullptr ? function(arguments...) : -1;
  }
  void* library_ = nullptr;
};

constexpr int kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6;

TEST_F(NvmlTest, FindsTheDevices) {
  EXPECT_EQ(Call("nvmlInit_v2"), 0);
  unsigned count = 0;
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), 0);
  EXPECT_EQ(count, 1u);
  setenv("SIMGPU_DEVICES", "2", 1);
  EXPECT_EQ(Call("nvmlDeviceGetCount_v2", &count), 0);
  EXPECT_EQ(count, 2u);
  void *by_index = nullptr, *by_bus = nullptr;
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 1u, &by_index), 0);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>("00000000:02:00.0"), &by_bus), 0);
  EXPECT_NE(by_index, nullptr);
  EXPECT_EQ(by_bus, by_index);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByIndex_v2", 2u, &by_index), kInvalidArgument);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>("0000:03:00.0"), &by_bus), kNotFound);
  EXPECT_EQ(Call("nvmlDeviceGetHandleByPciBusId_v2", static_cast<const char*>("here"), &by_bus), kInvalidArgument);
  unsigned processes = 7;
  EXPECT_EQ(Call("nvmlDeviceGetComputeRunningProcesses", by_index, &processes, static_cast<void*>(nullptr)), 0);
  EXPECT_EQ(processes, 0u);
  int type = 0;
  EXPECT_EQ(Call("nvmlDeviceGetNvLinkRemoteDeviceType", by_index, 0u, &type), kNotSupported);
  EXPECT_EQ(Call("nvmlShutdown"), 0);
}

// A program that asks whether devices of several hosts share memory takes the name's absence for a no.
TEST_F(NvmlTest, KnowsNoFabric) { EXPECT_EQ(dlsym(library_, "nvmlDeviceGetGpuFabricInfoV"), nullptr); }

}  // namespace
