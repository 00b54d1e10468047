// `hotpack run --simulate` on programs that contain NVIDIA's runtime: one line reports it, and no line about other
// programs.
#include <fstream>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"
#include "tools/run/run_linked.h"

namespace {

using hotpack::HasNvidiaRuntimeInside;
using hotpack_test::Outcome;
using hotpack_test::TemporaryDirectory;
using testing::HasSubstr;
using testing::Not;

constexpr char kLine[] = " has NVIDIA's runtime linked in (libcudart_static), which the simulated device cannot run; ";

Outcome Simulate(const std::vector<std::string>& program) {
  std::vector<std::string> command = {HOTPACK_COMMAND, "run", "--simulate", "--"};
  command.insert(command.end(), program.begin(), program.end());
  return hotpack_test::RunProgram(command, {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}});
}

std::vector<std::string> ProgramsWithNvidias() {
  std::vector<std::string> programs;
#ifdef HOTPACK_HAVE_NVIDIA_STATIC
  programs.push_back(HOTPACK_TEST_DIR "/simulate_nvidia_client");
  programs.push_back(HOTPACK_TEST_DIR "/simulate_nvidia_stripped_client");
#endif
#ifdef HOTPACK_NVCC_STATIC
  programs.push_back(HOTPACK_TEST_DIR "/simulate_nvcc_client");
#endif
  return programs;
}

TEST(SimulatedLinked, NvidiasRuntimeIsNamed) {
  if (ProgramsWithNvidias().empty()) GTEST_SKIP() << "no libcudart_static.a of a toolkit";
  for (const std::string& program : ProgramsWithNvidias()) {
    const Outcome outcome = Simulate({program});
    EXPECT_EQ(outcome.code, 3) << "the program's own";
    const size_t at = outcome.err.find("hotpack run: " + program + kLine);
    ASSERT_NE(at, std::string::npos) << outcome.err;
    // The directory that it names is the one to link with.
    const size_t begin = outcome.err.find("with -L", at) + strlen("with -L");
    const std::string directory = outcome.err.substr(begin, outcome.err.find(' ', begin) - begin);
    EXPECT_TRUE(std::ifstream(directory + "/libcudart_static.a").good()) << directory;
  }
}

// Programs that fail, or ask for nothing, for another reason.
TEST(SimulatedLinked, OtherProgramsAreNotAccused) {
  const std::string simgpu = std::string(HOTPACK_TEST_DIR) + "/simulate_";
  EXPECT_NE(Simulate({simgpu + "bad_client"}).code, 0);
  for (const std::vector<std::string>& program :
       std::vector<std::vector<std::string>>{{simgpu + "bad_client"}, {"false"}, {"true"}, {HOTPACK_COMMAND, "show"}}) {
    EXPECT_THAT(Simulate(program).err, Not(HasSubstr("NVIDIA's runtime"))) << program.front();
  }
  for (const char* client : {"runtime", "static", "driver", "bad"}) {
    EXPECT_FALSE(HasNvidiaRuntimeInside(simgpu + client + "_client")) << client;
  }
#ifdef HOTPACK_NVCC_STATIC
  EXPECT_FALSE(HasNvidiaRuntimeInside(HOTPACK_NVCC_STATIC));
#endif
  EXPECT_FALSE(HasNvidiaRuntimeInside(HOTPACK_COMMAND)) << "it knows the texts itself";
  EXPECT_FALSE(HasNvidiaRuntimeInside("/proc/self/exe")) << "so does this program";
  EXPECT_FALSE(HasNvidiaRuntimeInside("/no/such/file"));
  EXPECT_FALSE(HasNvidiaRuntimeInside("/"));
}

// Files that are cut or garbled: any answer, no crash; a cut one has no section headers left.
TEST(SimulatedLinked, GarbledFiles) {
  const std::vector<std::string> programs = ProgramsWithNvidias();
  const std::string whole =
      hotpack_test::ReadFile(programs.empty() ? HOTPACK_TEST_DIR "/simulate_static_client" : programs.front());
  ASSERT_GT(whole.size(), 1000u);
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/program";
  const auto Ask = [&path](const std::string& content) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    return HasNvidiaRuntimeInside(path);
  };
  EXPECT_EQ(Ask(whole), !programs.empty());
  for (const size_t length :
       {size_t{0}, size_t{3}, size_t{63}, size_t{64}, size_t{65}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_FALSE(Ask(whole.substr(0, length))) << length;
  }
  constexpr unsigned kSeed = 20250;
  std::mt19937 random(kSeed);
  const uint64_t headers = *reinterpret_cast<const uint64_t*>(whole.data() + 40);  // e_shoff
  for (int round = 0; round < 300; ++round) {
    std::string garbled = whole;
    for (int i = 0; i < 4; ++i) {
      const bool header = random() % 2 == 0;
      const size_t at = header ? random() % 64 : headers + random() % (whole.size() - headers);
      garbled[at] = static_cast<char>(random());
    }
    Ask(garbled);
  }
}

}  // namespace
