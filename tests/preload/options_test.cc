// The table of options: what it reads, its reports of unknown names and values, and that the documents and `hotpack
// run` have the same rows.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/process/option_table.h"
#include "tests/support/subprocess.h"

namespace hotpack {
namespace {

using hotpack_test::Outcome;
using hotpack_test::RunProgram;

constexpr char kClient[] = HOTPACK_TEST_DIR "/preload_client";

std::string Name(const char* rest) { return std::string("HOTPACK_") + rest; }  // not taken for a variable of ours

Outcome RunClient(const std::string& scenario, const std::map<std::string, std::string>& more,
                  const std::string& client = kClient) {
  std::map<std::string, std::string> environment = {{"LD_PRELOAD", hotpack_test::SanitizerPreload() + HOTPACK_PRELOAD},
                                                    {"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub"},
                                                    {"ASAN_OPTIONS", "detect_leaks=0"}};
  for (const OptionRow& row : kOptionRows) environment[row.variable] = "";
  for (const auto& [name, value] : more) environment[name] = value;
  return RunProgram({client, scenario, "link"}, environment);
}

TEST(OptionTable, TheDocumentHasTheSameRows) {
  const std::string document = hotpack_test::ReadFile(HOTPACK_SOURCE_DIR "/docs/environment.md");
  const std::string section = document.substr(document.find("## Of the preloaded library"));
  std::string expected;
  for (const OptionRow& row : kOptionRows) {
    const std::string flag = row.flag[0] != '\0' ? std::string("`") + row.flag + "` " : "";
    expected += std::string("| `") + row.variable + "` | " + flag + "| " + row.values + " | " + row.fallback + " | " +
                row.meaning + " |\n";
  }
  const size_t begin = section.find("|---|---|---|---|---|\n") + strlen("|---|---|---|---|---|\n");
  EXPECT_EQ(section.substr(begin, section.find("\n\n", begin) + 1 - begin), expected);
}

TEST(OptionTable, FlagsAreTheVariablesNames) {
  for (const OptionRow& row : kOptionRows) {
    if (row.flag[0] == '\0') continue;
    std::string flag = std::string("-") + (row.variable + strlen("HOTPACK"));
    for (char& c : flag) c = c == '_' ? '-' : static_cast<char>(tolower(c));
    EXPECT_EQ(row.flag, flag);
  }
  const Outcome help = RunProgram({HOTPACK_COMMAND, "run", "--help"});
  for (const OptionRow& row : kOptionRows) {
    if (row.flag[0] == '\0') continue;
    EXPECT_THAT(help.out, testing::HasSubstr(std::string(row.flag) + " "));
  }
}

TEST(OptionTable, ADefaultIsAValueOrNone) {
  for (const OptionRow& row : kOptionRows) {
    Options options;
    const std::string fallback = row.fallback;
    if (fallback != "none" && fallback != "all programs") {
      EXPECT_TRUE(row.parse(row.fallback, &options)) << row.variable;
    }
    EXPECT_EQ(options.enabled, Options().enabled);
    EXPECT_EQ(options.free_sync_always, Options().free_sync_always);
    EXPECT_EQ(options.arena, Options().arena);
    EXPECT_EQ(options.trace_limit, Options().trace_limit);
    EXPECT_EQ(options.page_wait_us, Options().page_wait_us);
    EXPECT_EQ(options.extents.bytes, Options().extents.bytes);
    EXPECT_EQ(options.extents.share, Options().extents.share);
  }
}

TEST(OptionTable, Algorithms) {
  Options options;
  for (const char* value : {"search", "chen", "echo", "dtr", "knapsack", "dqn", "memonger", "superneurons", "tflms"}) {
    EXPECT_TRUE(ParseAlgorithm(value, &options)) << value;
  }
  for (const char* value : {"", "auto", "Chen", "chen,echo", "checkmate"}) {
    EXPECT_FALSE(ParseAlgorithm(value, &options)) << value;
  }
}

TEST(OptionTable, Budgets) {
  Options options;
  for (const char* value : {"7.5GiB", "300M", "24GB", "60%", "0.5%", "100%", "activations:50%", "0", "none"}) {
    EXPECT_TRUE(ParseBudget(value, &options)) << value;
  }
  for (const char* value : {"", "half", "-1", "0%", "101%", "%", "60 %", "activations:", "activations:8G",
                            "activations:0%", "1e9", "nan%", "8Gib", "1..5%"}) {
    EXPECT_FALSE(ParseBudget(value, &options)) << value;
  }
  EXPECT_EQ(options.limit, Options().limit);  // the package sets it
}

TEST(OptionTable, Patterns) {
  EXPECT_TRUE(MatchesName("python3", "/usr/bin/python3"));
  EXPECT_TRUE(MatchesName("a,python3*,b", "/usr/bin/python3.11"));
  EXPECT_TRUE(MatchesName("*", "/x"));
  EXPECT_TRUE(MatchesName("t*n_*?", "/t/train_a"));
  EXPECT_TRUE(MatchesName(",train,", "train"));
  EXPECT_FALSE(MatchesName("t*n_*?", "/t/train_"));
  EXPECT_FALSE(MatchesName("python", "/usr/bin/python3"));
  EXPECT_FALSE(MatchesName("ython3", "/usr/bin/python3"));
  EXPECT_FALSE(MatchesName("bin", "/usr/bin/python3"));
  EXPECT_FALSE(MatchesName("", "/usr/bin/python3"));
  EXPECT_FALSE(MatchesName(nullptr, "/usr/bin/python3"));
}

TEST(OptionTable, NearestNames) {
  const auto nearest = [](const std::string& name) {
    const char* found = NearestVariable(name.data(), name.size());
    return std::string(found != nullptr ? found : "");
  };
  EXPECT_EQ(nearest(Name("ARENNA")), "HOTPACK_ARENA");
  EXPECT_EQ(nearest(Name("FREESYNC")), "HOTPACK_FREE_SYNC");
  EXPECT_EQ(nearest(Name("TRACE_LIMIT")), "HOTPACK_TRACE_LIMIT_MB");
  EXPECT_EQ(nearest(Name("ONYL")), "HOTPACK_ONLY");
  EXPECT_EQ(nearest(Name("SOMETHING_ELSE")), "");
  EXPECT_EQ(nearest(std::string(300, 'x')), "");
}

TEST(OptionWarnings, UnknownNamesGetOneLineEach) {
  const Outcome outcome = RunClient("one_stream", {{Name("ARENNA"), "plain"}, {Name("SOMETHING_ELSE"), "1"}});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, testing::HasSubstr("hotpack: " + Name("ARENNA") +
                                              " is no option and is ignored; did you mean HOTPACK_ARENA?\n"));
  EXPECT_THAT(outcome.err, testing::HasSubstr("hotpack: " + Name("SOMETHING_ELSE") +
                                              " is no option and is ignored; docs/environment.md has them all\n"));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 2);
}

// Variables of the tests and of other projects are not reported, and none is if hotpack is not used.
TEST(OptionWarnings, OthersAreLeftInPeace) {
  const std::map<std::string, std::string> known = {
      {"HOTPACK_SHARED", "/x"}, {"HOTPACK_TEST_SEED", "1"}, {std::string("HOT") + "PACKER", "1"}};
  EXPECT_EQ(RunClient("one_stream", known).err, "");
  const std::map<std::string, std::string> unknown = {{Name("ARENNA"), "plain"}, {"HOTPACK_FREE_SYNC", "maybe"}};
  EXPECT_EQ(RunClient("inert", unknown).err, "");
  auto off = unknown;
  off["HOTPACK"] = "0";
  EXPECT_EQ(RunClient("off", off).err, "");
}

TEST(OptionWarnings, MalformedValuesGetOneLineAndTheDefault) {
  for (const auto& [name, value, line] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"HOTPACK", "no", "HOTPACK=no is not 0, 1 or record; 1 is used"},
           {"HOTPACK_ALIGNMENT", "1000", "HOTPACK_ALIGNMENT=1000 is not a power of two from 512 to 65536; 512 is used"},
           {"HOTPACK_ALIGNMENT", "131072",
            "HOTPACK_ALIGNMENT=131072 is not a power of two from 512 to 65536; 512 is used"},
           {"HOTPACK_HANDLE", "3", "HOTPACK_HANDLE=3 is not MEBIBYTES or MEBIBYTES:PART; 128:256 is used"},
           {"HOTPACK_HANDLE", "64:0", "HOTPACK_HANDLE=64:0 is not MEBIBYTES or MEBIBYTES:PART; 128:256 is used"},
           {"HOTPACK_PAGE_WAIT", "1s", "HOTPACK_PAGE_WAIT=1s is not a number of milliseconds, or none; 1000 is used"},
           {"HOTPACK_TRACE_LIMIT_MB", "1.5", "HOTPACK_TRACE_LIMIT_MB=1.5 is not a number of mebibytes; 8192 is used"},
           {"HOTPACK_TRACE_LIMIT_MB", "99999999999999999999",
            "HOTPACK_TRACE_LIMIT_MB=99999999999999999999 is not a number of mebibytes; 8192 is used"},
           {"HOTPACK_TRACE_LIMIT_MB", " 5", "HOTPACK_TRACE_LIMIT_MB= 5 is not a number of mebibytes; 8192 is used"},
       }) {
    const Outcome outcome = RunClient("one_stream", {{name, value}});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.err, "hotpack: " + line + "\n");
  }
  EXPECT_EQ(RunClient("one_stream", {{"HOTPACK_STATS_DIR", std::string(20000, 'x')}}).err,
            "hotpack: HOTPACK_STATS_DIR is too long and is ignored\n");
}

// "off" holds if all calls are passed through, "basic" if requests are served.
TEST(ExecutableFilter, OnlyAndExcept) {
  const auto served = [](const std::map<std::string, std::string>& environment) {
    const int on = RunClient("basic", environment).code, off = RunClient("off", environment).code;
    EXPECT_NE(on == 0, off == 0);
    return on == 0;
  };
  EXPECT_TRUE(served({}));
  EXPECT_TRUE(served({{"HOTPACK_ONLY", "preload_client"}}));
  EXPECT_TRUE(served({{"HOTPACK_ONLY", "python3*,preload_*"}}));
  EXPECT_FALSE(served({{"HOTPACK_ONLY", "python3*,train"}}));
  EXPECT_FALSE(served({{"HOTPACK_EXCEPT", "*_client"}}));
  EXPECT_TRUE(served({{"HOTPACK_EXCEPT", "python3"}}));
  EXPECT_FALSE(served({{"HOTPACK_ONLY", "preload_*"}, {"HOTPACK_EXCEPT", "*_client"}}));
}

// Memory checkers are recognised by their libraries, cuda-gdb by the variable that it sets in the driver.
TEST(Tools, AllIsLeftToTheDriver) {
  for (const auto& [name, value, tool] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"NV_SANITIZER_INJECTION_PORT_BASE", "49152", "compute-sanitizer"},
           {"CUDA_INJECTION64_PATH", "/opt/libsanitizer-collection.so", "compute-sanitizer"},
           {"CUDA_MEMCHECK", "1", "cuda-memcheck"},
       }) {
    const Outcome outcome = RunClient("off", {{name, value}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "hotpack: " + tool + " is active: allocations are left to the driver\n");
  }
  EXPECT_EQ(RunClient("basic", {{"CUDA_INJECTION64_PATH", "/opt/libprofiler.so"}}).code, 0);
  const Outcome debugged = RunClient("debugged", {});
  EXPECT_EQ(debugged.code, 0) << debugged.err;
  EXPECT_EQ(debugged.err, "hotpack: cuda-gdb is active: allocations are left to the driver\n");
}

// The flags of `hotpack run` reach the library, and a bad one starts nothing.
TEST(RunFlags, AreTheOptions) {
  const auto run = [](std::vector<std::string> flags, const std::string& scenario) {
    std::vector<std::string> command = {HOTPACK_COMMAND, "run"};
    command.insert(command.end(), flags.begin(), flags.end());
    command.insert(command.end(), {"--", kClient, scenario, "link"});
    std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub"},
                                                      {"LD_PRELOAD", hotpack_test::SanitizerPreload()},
                                                      {"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"}};
    for (const OptionRow& row : kOptionRows) environment[row.variable] = "";
    return RunProgram(command, environment);
  };
  EXPECT_EQ(run({"--free-sync", "always"}, "always_sync").code, 0);
  EXPECT_NE(run({}, "always_sync").code, 0);
  EXPECT_EQ(run({"--except", "preload_*"}, "off").code, 0);
  EXPECT_EQ(run({"--only", "train"}, "off").code, 0);
  for (const auto& [flag, value, values] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--free-sync", "maybe", "auto or always"},
           {"--budget", "much", "a size such as 7.5GiB, a share such as 60%, activations:50%, 0 or none"},
           {"--arena", "plain:x", "auto, vmm, plain or plain:MEBIBYTES"},
           {"--trace-limit-mb", "0", "a number of mebibytes"}}) {
    const Outcome outcome = run({flag, value}, "basic");
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.err, "hotpack run: " + flag + " " + value + ": not " + values + "\n");
  }
}

}  // namespace
}  // namespace hotpack
