// Copies between two devices with hotpack, on a machine whose devices can access each other's memory, and on one whose
// devices cannot.
#include <fstream>
#include <map>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using testing::HasSubstr;
using testing::Not;

std::string Figures() { return testing::TempDir() + "/peer_test.json"; }

Outcome Copies(const std::string& first, const std::string& second, const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> environment = {
      {"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"SIMGPU_DEVICES", "2"}, {"SIMGPU_VALUES", "keep"}};
  for (const auto& [name, value] : more) environment[name] = value;
  return hotpack_test::RunProgram({HOTPACK_COMMAND, "run", "--simulate", "--force", "--json-stats", Figures(), "--",
                                   HOTPACK_TEST_DIR "/peer_client", first, second},
                                  environment);
}

uint64_t PeerCopies() {
  const std::string name = "\"peer_copies\": ";
  std::stringstream text;
  text << std::ifstream(Figures()).rdbuf();
  const size_t at = text.str().find(name);
  return at == std::string::npos ? ~uint64_t{0} : std::stoull(text.str().substr(at + name.size()));
}

TEST(PeerCopies, OfOrdinaryMemoryWorkWithoutHotpack) {
  const Outcome outcome = Copies("arena", "arena", {{"HOTPACK", "0"}, {"SIMGPU_PEERS", "0"}});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

TEST(PeerCopies, WorkBetweenArenas) {
  for (const char* peers : {"0", "1"}) {
    const Outcome outcome = Copies("arena", "arena", {{"SIMGPU_PEERS", peers}});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_GT(PeerCopies(), 50u);
    EXPECT_LT(PeerCopies(), 500u);
    EXPECT_THAT(outcome.err, Not(HasSubstr("REPORT")));
  }
}

TEST(PeerCopies, WorkWithTheDriversMemoryOnOneSide) {
  for (const auto& [first, second] : {std::pair("arena", "pool"), std::pair("pool", "arena")}) {
    const Outcome outcome = Copies(first, second, {{"SIMGPU_PEERS", "0"}});
    EXPECT_EQ(outcome.code, 0) << first << " " << second << "\n" << outcome.out << outcome.err;
  }
}

// The fault that the hooks mend.
TEST(PeerCopies, FailWhereTheyAreSwitchedOff) {
  const Outcome outcome = Copies("arena", "arena", {{"SIMGPU_PEERS", "0"}, {"HOTPACK_PEER_COPIES", "0"}});
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  for (const char* name : {"cuMemcpyAsync", "cuMemcpyDtoDAsync", "cuMemcpy2DAsync", "cuMemcpy3DAsync",
                           "cuMemcpyBatchAsync", "cuMemcpy3DBatchAsync", "cuMemcpyDtoD", "cuMemcpy2DUnaligned",
                           "cuGraphAddMemcpyNode", "cuGraphMemcpyNodeSetParams", "cuGraphExecNodeSetParams"}) {
    EXPECT_THAT(outcome.out, HasSubstr(std::string(name) + " from device 0 to 1 by device 0")) << name;
  }
}

// Memory of cuMemAlloc needs none of it.
TEST(PeerCopies, OfAPlainArenaStayAsTheyAre) {
  const Outcome outcome = Copies("arena", "arena", {{"SIMGPU_PEERS", "0"}, {"HOTPACK_ARENA", "plain:256"}});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(PeerCopies(), 0u);
}

TEST(PeerCopies, WorkWithTheLaunchCollector) {
  const std::string trace = testing::TempDir() + "/peer.trace";
  remove(trace.c_str());
  const Outcome outcome =
      Copies("arena", "arena", {{"SIMGPU_PEERS", "0"}, {"HOTPACK_LAUNCHES", "1"}, {"HOTPACK_TRACE", trace}});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
