// The subcommand `run`, from the outside. The programs run on the stub driver unless they need --simulate.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/include/hotpack.h"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::TemporaryDirectory;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kClient[] = HOTPACK_TEST_DIR "/preload_client";

Outcome InEnvironment(const std::vector<std::string>& command, const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> environment = {{"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub"},
                                                    {"LD_PRELOAD", hotpack_test::SanitizerPreload()},
                                                    {"HOTPACK", ""},
                                                    {"HOTPACK_TRACE", ""},
                                                    {"HOTPACK_STATS_DIR", ""},
                                                    {"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"}};
  for (const auto& [name, value] : more) environment[name] = value;
  return hotpack_test::RunProgram(command, environment);
}

Outcome Hotpack(std::vector<std::string> arguments, const std::map<std::string, std::string>& more = {}) {
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  return InEnvironment(arguments, more);
}

int Lines(const std::string& text) { return static_cast<int>(std::count(text.begin(), text.end(), '\n')); }

// The members of hotpack_stats, in their order, as the C header has them.
std::vector<std::string> MembersOfStats() {
  const std::string header = ReadFile(HOTPACK_SOURCE_DIR "/runtime/include/hotpack.h");
  const size_t begin = header.find("typedef struct hotpack_stats {"), end = header.find("} hotpack_stats;");
  std::vector<std::string> names;
  std::istringstream lines(header.substr(begin, end - begin));
  std::string first_line;
  std::getline(lines, first_line);
  for (std::string type, name, rest; lines >> type >> name && std::getline(lines, rest);) {
    EXPECT_TRUE(type == "uint64_t" || type == "int64_t") << type;
    names.push_back(name.substr(0, name.find(';')));
  }
  return names;
}

TEST(Run, OneLineAndTheFigures) {
  const TemporaryDirectory directory;
  const std::string json = directory.path() + "/stats.json", trace = directory.path() + "/job.trace";
  const Outcome outcome = Hotpack({"run", "--json-stats", json, "--trace", trace, "--", kClient, "end_return", "proc"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Lines(outcome.err), 1) << outcome.err;
  // Nothing but this: no bound of the plan, no calls that PyTorch would not have made either.
  EXPECT_THAT(outcome.err,
              testing::MatchesRegex(
                  "hotpack: held at most [0-9.]+ MiB \\(PyTorch would have held [0-9.]+ MiB, with expandable "
                  "segments [0-9.]+ MiB\\)(, held while served [0-9.]+ MiB)?, live peak 1000\\.0 KiB; "
                  "[0-9.]+ % of 1000 requests by the plan(: [a-z' ]+)?; smallest device [0-9.]+ MiB "
                  "\\(PyTorch [0-9.]+ MiB, with expandable segments [0-9.]+ MiB\\)\\. Next: hotpack show .*\n"));
  EXPECT_THAT(outcome.err, HasSubstr("Next: hotpack show " + trace));
  const auto stats = nlohmann::json::parse(ReadFile(json));
  EXPECT_EQ(stats["requests"], 1000);
  EXPECT_EQ(stats["live_peak"], 1000 << 10);
  EXPECT_EQ(stats["passed_through"], 0);
  std::vector<std::string> names;
  const auto ordered = nlohmann::ordered_json::parse(ReadFile(json));
  for (const auto& [name, value] : ordered.items()) {
    names.push_back(name);
    EXPECT_TRUE(value.is_number_integer()) << name;
  }
  EXPECT_EQ(names, MembersOfStats());
  EXPECT_EQ(names.size(), sizeof(hotpack_stats) / sizeof(uint64_t));
  EXPECT_GT(ReadFile(trace).size(), 0u);
}

// Each is on the page of statistics, and no other is.
TEST(Run, EveryFigureIsExplained) {
  const std::string page = ReadFile(HOTPACK_SOURCE_DIR "/docs/statistics.md");
  for (const std::string& name : MembersOfStats()) {
    EXPECT_THAT(page, testing::ContainsRegex("\\| `" + name + "` \\|"));
  }
}

// `no_plan_reason`, in words.
TEST(Run, WhyNoRequestWasServedByThePlan) {
  const TemporaryDirectory directory;
  const std::string json = directory.path() + "/stats.json";
  const auto run = [&json](const char* steps) {
    return Hotpack({"run", "--force", "--json-stats", json, "--", HOTPACK_TEST_DIR "/plan_client", "run", steps},
                   {{"HOTPACK_WAIT_PLAN", "1"}});
  };
  const Outcome once = run("1");
  EXPECT_THAT(once.err, HasSubstr("; 0.0 % of 95 requests by the plan: no iteration repeated. Next: "));
  EXPECT_EQ(nlohmann::json::parse(ReadFile(json))["no_plan_reason"], HOTPACK_NO_PLAN_NO_REPETITION);
  const Outcome often = run("12");
  EXPECT_THAT(often.err, HasSubstr(" requests by the plan. Next: "));
  EXPECT_EQ(nlohmann::json::parse(ReadFile(json))["no_plan_reason"], HOTPACK_NO_PLAN_NONE);
}

// Two lines of blocks below the summary, where there was a plan; nowhere else than on a terminal that can show them.
TEST(Run, ATerminalGetsACurve) {
  if (system("command -v script >/dev/null") != 0) GTEST_SKIP() << "no script(1) to make a terminal";
  const auto on_terminal = [](const char* steps, const char* locale) {
    std::string command = HOTPACK_COMMAND " run -- " HOTPACK_TEST_DIR "/plan_client run ";
    command += steps;
    const Outcome outcome =
        InEnvironment({"script", "-qec", command, "/dev/null"}, {{"TERM", "xterm"}, {"LC_ALL", locale}});
    EXPECT_EQ(outcome.code, 0) << outcome.out;
    return outcome.out;
  };
  const std::string curve = on_terminal("8", "C.UTF-8");
  EXPECT_EQ(Lines(curve), 3) << curve;
  EXPECT_THAT(curve, HasSubstr("\u2588\u2588"));
  EXPECT_EQ(Lines(on_terminal("8", "C")), 1);
  EXPECT_EQ(Lines(on_terminal("1", "C.UTF-8")), 1);
}

TEST(Run, AReportOfTheRun) {
  const TemporaryDirectory directory;
  const std::string page = directory.path() + "/out.html", trace = directory.path() + "/job.trace";
  const Outcome outcome = Hotpack({"run", "--report", page, "--", kClient, "end_return", "proc"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Lines(outcome.err), 1) << outcome.err;
  EXPECT_THAT(outcome.err, testing::EndsWith(". Report: " + page + "\n"));
  EXPECT_THAT(ReadFile(page), HasSubstr("<title>preload_client · hotpack report</title>"));
  EXPECT_THAT(ReadFile(page), HasSubstr("end_return proc</code>"));
  EXPECT_THAT(ReadFile(page), HasSubstr("\"requests\":1000"));
  EXPECT_THAT(ReadFile(page), testing::EndsWith("</html>\n"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1) << "the recording is not kept";
  const Outcome both =
      Hotpack({"run", "--report", page, "--trace", trace, "--force", "--", kClient, "end_return", "proc"});
  EXPECT_EQ(both.code, 0) << both.err;
  EXPECT_THAT(both.err, testing::EndsWith(". Report: " + page + ". Next: hotpack show " + trace + "\n"));
  EXPECT_GT(ReadFile(trace).size(), 0u);
}

TEST(Run, AReportThatCannotBe) {
  const TemporaryDirectory directory;
  const std::string page = directory.path() + "/out.html", mark = directory.path() + "/mark";
  const Outcome nowhere = Hotpack({"run", "--report", "/nonexistent/out.html", "--", "touch", mark});
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_EQ(nowhere.err, "hotpack run: --report /nonexistent/out.html: No such file or directory\n");
  EXPECT_FALSE(std::filesystem::exists(mark)) << "said before the program starts";
  const Outcome same = Hotpack({"run", "--report", page, "--trace", page, "--", "touch", mark});
  EXPECT_EQ(same.code, 2);
  EXPECT_EQ(same.err, "hotpack run: --trace and --report name the same file " + page + "\n");
  const std::string script = std::string(kClient) + " end_return link; exit 5";
  EXPECT_EQ(Hotpack({"run", "--report", page, "--", "sh", "-c", script}).code, 5);
  EXPECT_THAT(ReadFile(page), testing::EndsWith("</html>\n"));
}

// No fault of the program's: the same line as without --report, and the program's exit code.
TEST(Run, NothingToReport) {
  const TemporaryDirectory directory;
  const std::string page = directory.path() + "/out.html";
  const Outcome nothing = Hotpack({"run", "--report", page, "--", "true"});
  EXPECT_EQ(nothing.code, 0);
  EXPECT_EQ(nothing.err,
            "hotpack: no process asked for device memory; there is nothing to report. Next: hotpack doctor -- true\n");
  EXPECT_EQ(Hotpack({"run", "--report", page, "--", "sh", "-c", "exit 7"}).code, 7)
      << "the program's own exit code is kept";
  EXPECT_FALSE(std::filesystem::exists(page));
  // The driver serves everything, which this client does not like, and it is recorded.
  const std::string script = std::string(kClient) + " basic link; exit 0";
  const Outcome recorded = Hotpack({"run", "--report", page, "--", "sh", "-c", script}, {{"HOTPACK", "record"}});
  EXPECT_EQ(recorded.code, 0) << recorded.err;
  EXPECT_THAT(recorded.err,
              testing::EndsWith("hotpack: all 2 allocation requests were left to the driver. Report: " + page + "\n"));
  EXPECT_THAT(ReadFile(page), testing::EndsWith("</html>\n"));
}

// A failure is the line's subject.
TEST(Run, HowTheProgramFailedIsSaid) {
  const Outcome code = Hotpack({"run", "--", "sh", "-c", std::string(kClient) + " end_return link; exit 5"});
  EXPECT_EQ(code.code, 5);
  EXPECT_THAT(code.err, StartsWith("hotpack: the program failed with exit code 5; until then held at most "));
  EXPECT_THAT(code.err,
              testing::EndsWith(". Next: HOTPACK=0 hotpack run -- sh ... (without hotpack: does it fail?)\n"));
  const Outcome killed = Hotpack({"run", "--", kClient, "end_signal", "link"});
  EXPECT_THAT(killed.err, HasSubstr("hotpack: signal SIGKILL ended the program; until then held at most "));
  const Outcome nothing = Hotpack({"run", "--", "false"});
  EXPECT_EQ(nothing.err,
            "hotpack: the program failed with exit code 1; no process asked for device memory. Next: hotpack doctor -- "
            "false\n");
  EXPECT_THAT(Hotpack({"run", "--", kClient, "end_return", "link"}).err, StartsWith("hotpack: held at most "));
}

TEST(Run, AQuietRunHasNoLine) {
  EXPECT_EQ(Hotpack({"run", "-q", "--", kClient, "end_return", "link"}).err, "");
  EXPECT_EQ(Hotpack({"run", "--quiet", "--", "true"}).err, "");
  EXPECT_EQ(Hotpack({"run", "--", kClient, "end_return", "link"}, {{"HOTPACK_QUIET", "1"}}).err, "");
  EXPECT_NE(Hotpack({"run", "--", kClient, "end_return", "link"}, {{"HOTPACK_QUIET", "0"}}).err, "");
  EXPECT_THAT(Hotpack({"run", "-q", "--trace", "/nowhere/x", "--", "true"}).err, HasSubstr("--trace /nowhere/x"));
}

TEST(Run, AThresholdForChecks) {
  EXPECT_EQ(Hotpack({"run", "--fail-above", "1G", "--", kClient, "end_return", "link"}).code, 0);
  const Outcome above = Hotpack({"run", "--fail-above", "1M", "--", kClient, "end_return", "link"});
  EXPECT_EQ(above.code, 1);
  EXPECT_THAT(above.err,
              testing::ContainsRegex("\nhotpack run: --fail-above: the most held, [0-9.]+ MiB, is above 1M\n"));
  const std::string script = std::string(kClient) + " end_return link; exit 5";
  EXPECT_EQ(Hotpack({"run", "-q", "--fail-above", "1M", "--", "sh", "-c", script}).code, 5);
}

// The program takes the recording away: it is named nowhere, and the command fails.
TEST(Run, ARecordingThatIsMissing) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/job.trace",
                    script = std::string(kClient) + " end_return link; rm " + trace;
  const Outcome outcome = Hotpack({"run", "--trace", trace, "--", "sh", "-c", script});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("hotpack run: --trace " + trace + ": the recording could not be written\n"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("Next: hotpack show")));
  EXPECT_EQ(Hotpack({"run", "--force", "--trace", trace, "--", "sh", "-c", script + "; exit 3"}).code, 3);
}

TEST(Run, AnOldTraceIsReplacedWhenToldTo) {
  const TemporaryDirectory directory;
  const std::string trace = directory.path() + "/job.trace";
  Hotpack({"run", "--trace", trace, "--", kClient, "end_return", "link"});
  const size_t size = ReadFile(trace).size();
  const std::string old = ReadFile(trace);
  const Outcome refused = Hotpack({"run", "--trace", trace, "--", kClient, "end_return", "link"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "hotpack run: --trace " + trace + ": is there already; --force writes over it\n");
  EXPECT_EQ(ReadFile(trace), old);
  EXPECT_EQ(Hotpack({"run", "--trace", trace, "--force", "--", kClient, "end_return", "link"}).code, 0);
  EXPECT_NEAR(static_cast<double>(ReadFile(trace).size()), static_cast<double>(size), size / 10.0);  // times differ
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory.path()), {}), 1);
}

TEST(Run, TheBusiestProcessIsReportedAndTheOthersAreCounted) {
  const TemporaryDirectory directory;
  const std::string json = directory.path() + "/stats.json";
  const std::string script = std::string(kClient) + " end_return link; " + kClient + " basic link";
  const Outcome outcome = Hotpack({"run", "--json-stats", json, "--", "sh", "-c", script});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("of 1000 requests"));
  EXPECT_THAT(outcome.err, HasSubstr("(and 2 requests of 1 other process)"));
  EXPECT_EQ(nlohmann::json::parse(ReadFile(json))["requests"], 1000);
}

TEST(Run, ExitCodesAreTheProgramS) {
  EXPECT_EQ(Hotpack({"run", "--", "sh", "-c", "exit 7"}).code, 7);
  EXPECT_EQ(Hotpack({"run", "--", kClient, "end_signal", "link"}).code, 128 + SIGKILL);
  EXPECT_EQ(Hotpack({"run", "--", kClient, "end_exception", "link"}).code, 128 + SIGABRT);
  const TemporaryDirectory directory;
  const std::string json = directory.path() + "/stats.json";
  Hotpack({"run", "--json-stats", json, "--", kClient, "end_signal", "link"});
  EXPECT_EQ(nlohmann::json::parse(ReadFile(json))["requests"], 960);  // all but what came after the last flush
}

TEST(Run, SignalsAreForwarded) {
  // The program signals its parent, which is hotpack, to end, and waits for the effect on itself.
  const Outcome outcome = Hotpack(
      {"run", "--", "sh", "-c", "trap 'echo got it; exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.05; done"});
  EXPECT_EQ(outcome.code, 5) << outcome.err;
  EXPECT_EQ(outcome.out, "got it\n");
}

// No process reads the pipe, so the program has ended and hotpack waits. Signals are then for hotpack itself.
TEST(Run, ASignalAfterTheProgramEndsTheCommand) {
  const TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe", said = directory.path() + "/said",
                    own = directory.path() + "/own";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_directory(own);
  const std::string script =
      std::string(HOTPACK_COMMAND) + " run --json-stats " + pipe + " -- " + kClient + " end_return link 2> " + said +
      " & own=$!; (sleep 20; kill -KILL $own) > /dev/null 2>&1 & guard=$!\n" + "while ! grep -q 'live peak' " + said +
      " && kill -0 $own; do sleep 0.02; done\n" + "kill -TERM $own; wait $own; code=$?; kill $guard; exit $code";
  const Outcome outcome =
      hotpack_test::RunProgram({"bash", "-c", script}, {{"TMPDIR", own},
                                                        {"LD_LIBRARY_PATH", HOTPACK_TEST_DIR "/stub"},
                                                        {"HOTPACK", ""},
                                                        {"HOTPACK_TRACE", ""},
                                                        {"HOTPACK_STATS_DIR", ""},
                                                        {"ASAN_OPTIONS", "detect_leaks=0:verify_asan_link_order=0"}});
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(own)) << "what the processes left is removed";
}

TEST(Run, ArgumentsArriveAsTheyAre) {
  const Outcome outcome =
      Hotpack({"run", "--", "printf", "<%s>", "a b", "", "[1,2]", "--", "--trace", "-x", "%%", "'q\""});
  EXPECT_EQ(outcome.out, "<a b><><[1,2]><--><--trace><-x><%%><'q\">");
  EXPECT_EQ(Hotpack({"run", "printf", "%s", "--json-stats"}).out, "--json-stats");  // without -- as well
}

TEST(Run, AProgramWithoutDeviceMemory) {
  const Outcome outcome = Hotpack({"run", "--", "true"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "hotpack: no process asked for device memory. Next: hotpack doctor -- true\n");
}

TEST(Run, AnotherPreloadStays) {
  const Outcome outcome =
      Hotpack({"run", "--", kClient, "basic", "link"},
              {{"LD_PRELOAD", hotpack_test::SanitizerPreload() + HOTPACK_TEST_DIR "/libinterposer.so"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("interposer: 2 calls"));  // behind ours
}

// One line, the exit code, and nothing written or started.
struct Bad {
  std::vector<std::string> arguments;
  int code;
  std::string message;
};

// They would keep released memory. The user's choice stays.
TEST(Run, FrameworksAskForEveryTensor) {
  const std::map<std::string, std::string> none = {{"PYTORCH_NO_CUDA_MEMORY_CACHING", ""},
                                                   {"XLA_PYTHON_CLIENT_ALLOCATOR", ""}};
  Outcome outcome = Hotpack({"run", "--", "env"}, none);
  EXPECT_THAT(outcome.out, HasSubstr("\nPYTORCH_NO_CUDA_MEMORY_CACHING=1\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\nXLA_PYTHON_CLIENT_ALLOCATOR=cuda_async\n"));
  outcome = Hotpack({"run", "--keep-caching", "--", "env"}, none);
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("PYTORCH_NO_CUDA_MEMORY_CACHING")));
  outcome = Hotpack({"run", "--", "env"}, {{"PYTORCH_NO_CUDA_MEMORY_CACHING", "0"}});
  EXPECT_THAT(outcome.out, HasSubstr("\nPYTORCH_NO_CUDA_MEMORY_CACHING=0\n"));
  std::map<std::string, std::string> off = none;
  off["HOTPACK"] = "0";
  EXPECT_THAT(Hotpack({"run", "--", "env"}, off).out, testing::Not(HasSubstr("PYTORCH_NO_CUDA_MEMORY_CACHING")))
      << "without hotpack the program is as it is";
}

TEST(Run, BadInputGetsOneLine) {
  const TemporaryDirectory directory;
  const std::string ran = directory.path() + "/ran", good = directory.path() + "/good";
  const std::string not_executable = directory.path() + "/text";
  fclose(fopen(not_executable.c_str(), "w"));
  chmod(not_executable.c_str(), 0644);
  const std::vector<Bad> cases = {
      {{"run"}, 2, "no program given"},
      {{"run", "--"}, 2, "no program given"},
      {{"run", "--bogus", "--", "touch", ran}, 2, "unknown option --bogus"},
      {{"run", "touch", "--bogus", ran}, 2, "unknown option --bogus (the program's own options go behind --)"},
      {{"run", "--trace"}, 2, "--trace"},
      {{"run", "--json-stats", "/nowhere/x", "--", "touch", ran},
       2,
       "--json-stats /nowhere/x: No such file or directory"},
      {{"run", "--json-stats", directory.path(), "--", "touch", ran}, 2, ": is a directory"},
      {{"run", "--json-stats", good, "--trace", "/nowhere/x", "--", "touch", ran},
       2,
       "--trace /nowhere/x: No such file"},
      {{"run", "--json-stats", not_executable + "/x", "--", "touch", ran}, 2, "Not a directory"},
      {{"run", "--json-stats", good, "--trace", good, "--", "touch", ran}, 2, "name the same file"},
      {{"run", "--json-stats", "here", "--trace", "./here", "--", "touch", ran}, 2, "name the same file"},
      {{"run", "--trace", "/dev/null", "--", "touch", ran},
       2,
       "--trace /dev/null: is no regular file, and a recording needs one"},
      {{"run", "--trace", good, "--plan", good, "--", "touch", ran}, 2, "--trace and --plan name the same file"},
      {{"run", "--plan", "-", "--", "touch", ran}, 2, "--plan -: standard output has something else to hold"},
      {{"run", "--plan", "", "--", "touch", ran}, 2, "a file needs a name"},
      {{"run", "--budget", "1G", "--compatibility", "--", "touch", ran}, 2, "which --compatibility leaves out"},
      {{"run", "--budget", "60%", "--keep-caching", "--", "touch", ran}, 2, "which --keep-caching leaves out"},
      {{"run", "--json-stats", good, "--", "no-such-program-here"}, 127, "no-such-program-here: command not found"},
      {{"run", "--json-stats", good, "--", "/no/such/program"}, 127, "/no/such/program: command not found"},
      {{"run", "--json-stats", good, "--", not_executable}, 126, "not an executable file"},
      {{"run", "--json-stats", good, "--", directory.path()}, 126, "not an executable file"},
      {{"run", "--json-stats", good, "--", ""}, 127, "command not found"},
  };
  for (const Bad& bad : cases) {
    const Outcome outcome = Hotpack(bad.arguments);
    const std::string what = testing::PrintToString(bad.arguments);
    EXPECT_EQ(outcome.code, bad.code) << what << outcome.err;
    EXPECT_EQ(Lines(outcome.err), 1) << what << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(bad.message)) << what;
    EXPECT_FALSE(std::filesystem::exists(ran)) << what;
    EXPECT_FALSE(std::filesystem::exists(good)) << what;
  }
}

TEST(Run, AFullDiskIsSaid) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const Outcome outcome = Hotpack({"run", "--json-stats", "/dev/full", "--", "true"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--json-stats /dev/full: cannot be written"));
}

TEST(Run, NoDriver) {
  const Outcome outcome = Hotpack({"run", "--", "echo", "started"}, {{"LD_LIBRARY_PATH", ""}});
  if (outcome.code == 0) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Lines(outcome.err), 1);
  EXPECT_THAT(outcome.err, HasSubstr("no NVIDIA driver here"));
  EXPECT_THAT(outcome.err, HasSubstr("--simulate"));
}

TEST(Run, NothingIsLeftBehind) {
  const TemporaryDirectory directory;
  Hotpack({"run", "--", kClient, "end_return", "link"}, {{"TMPDIR", directory.path()}});
  EXPECT_TRUE(std::filesystem::is_empty(directory.path()));
}

}  // namespace
