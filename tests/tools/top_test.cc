// `hotpack top`: of processes of this test's own that keep files of figures, and of a program under `hotpack run`.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "runtime/persist/stats_file.h"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"
#include "tests/tools/on_terminal.h"
#include "tests/tools/subcommand.h"
#include "tools/cli/child_process.h"
#include "tools/cli/process_tree.h"
#include "tools/top/top_table.h"

namespace hotpack {
namespace {

using hotpack_test::JsonOf;
using hotpack_test::Outcome;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr uint64_t kMiB = 1 << 20;

// A child that runs `work`, which ends when it reads a q. (The end of its standard input may not come: its younger
// siblings have that pipe, too.)
class Child {
 public:
  template <typename Work>
  explicit Child(Work work) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) abort();
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      close(in[1]);
      work();
      _exit(0);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = fdopen(out[0], "r");
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { End(); }

  int pid() const { return pid_; }
  std::string ReadLine() {
    char line[256] = {};
    return fgets(line, sizeof(line), out_) != nullptr ? line : "";
  }
  void Write(char c) { ASSERT_EQ(write(in_, &c, 1), 1); }
  void WriteLine() { Write('\n'); }
  // Returns the exit code.
  int End() {
    if (in_ < 0) return code_;
    EXPECT_EQ(write(in_, "q", 1), 1);
    close(in_);
    in_ = -1;
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    fclose(out_);
    return code_ = WEXITSTATUS(status);
  }

 private:
  int pid_ = 0, in_ = -1, code_ = -1;
  FILE* out_ = nullptr;
};

// In a child: says that its figures are there, and adds 1000 requests at each line that it reads.
void KeepFigures(StatsSlot* slot) {
  char line = 0;
  printf("ready\n");
  fflush(stdout);
  while (read(STDIN_FILENO, &line, 1) == 1 && line != 'q') slot->stats.requests += 1000;
}

StatsSlot* MakeFigures(const std::string& directory, uint64_t held, const char* suffix = "") {
  StatsFileHeader* header = CreateStatsFile(directory.c_str(), suffix);
  StatsSlot* slot = TakeStatsSlot(header);
  slot->stats.requests = 2000;
  slot->stats.planned = 1500;
  slot->stats.reserved_peak = 2 * held;
  slot->stats.live_peak = held + kMiB;
  slot->stats.iterations = 7;
  slot->current = {held, held / 4, 11};
  return slot;
}

// Waits until a child of this process has opened a file of figures, and some tables more.
void AwaitReader() {
  const auto reads = [](int pid) {
    std::error_code error;
    for (const auto& file : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
      if (fs::read_symlink(file, error).filename().string().starts_with("stats.")) return true;
    }
    return false;
  };
  for (bool any = false; !any; usleep(10'000)) {
    for (const int pid : Descendants(getpid())) any = any || reads(pid);
  }
  usleep(200'000);
}

class Top : public hotpack_test::CommandFolder {
 protected:
  // In the environment of this test, plus HOTPACK_STATS_DIR if it is not empty.
  static Outcome Run(std::vector<std::string> arguments, const std::string& directory = "") {
    arguments.insert(arguments.begin(), {HOTPACK_COMMAND, "top"});
    return hotpack_test::RunProgram(arguments, {{"LD_PRELOAD", ""}, {"HOTPACK_STATS_DIR", directory}});
  }
  static Outcome Of(const Child& child, std::vector<std::string> options = {}) {
    options.insert(options.begin(), std::to_string(child.pid()));
    return Run(options);
  }
  static void ExpectRefused(const Outcome& outcome, const std::string& reason) {
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, "hotpack top: " + reason + "\n");
  }
  std::string Folder() const { return folder_.path(); }
};

std::vector<std::string> Words(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_F(Top, ATableOfOneProcess) {
  Child child([&] { KeepFigures(MakeFigures(Folder(), 100 * kMiB)); });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  const Outcome outcome = Of(child);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<std::string> lines = LinesOf(outcome.out);
  ASSERT_EQ(lines.size(), 3u) << outcome.out;
  EXPECT_THAT(Words(lines[2]), testing::ElementsAre(std::to_string(child.pid()), "top_test", "100.0", "25.0", "75.0",
                                                    "%", "200.0", "101.0", "75.00", "%", "2000", "7", "-", "11"));
  const json found = JsonOf(Of(child, {"--json"}));
  ASSERT_EQ(found["processes"].size(), 1u);
  EXPECT_EQ(found["processes"][0]["pid"], child.pid());
  EXPECT_EQ(found["processes"][0]["held"], 100 * kMiB);
  EXPECT_EQ(found["processes"][0]["reserved_peak"], 200 * kMiB);
}

TEST_F(Top, RequestsASecondAreThoseBetweenTwoTables) {
  Child child([&] { KeepFigures(MakeFigures(Folder(), kMiB)); });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  auto done = std::async(std::launch::async, [&] { return Of(child, {"--count", "1000", "--interval", "0.1"}); });
  AwaitReader();
  child.WriteLine();
  usleep(400'000);
  child.End();
  const Outcome outcome = done.get();
  const std::vector<std::string> lines = LinesOf(outcome.out);
  ASSERT_GE(lines.size(), 3 * 4u) << outcome.out;
  EXPECT_EQ(Words(lines[2])[12], "-") << outcome.out;
  int rates = 0;
  for (size_t row = 6; row < lines.size() - 1; row += 4) {
    const double rate = std::stod(Words(lines[row])[12]);
    if (rate > 0) ++rates;
    EXPECT_TRUE(rate == 0 || (rate > 1000 && rate <= 10'000)) << outcome.out;  // 1000 in 0.1 s, or in somewhat more
  }
  EXPECT_EQ(rates, 1) << outcome.out;
  EXPECT_EQ(Words(lines.back())[12], "ended") << outcome.out;
}

// A launcher's processes have a row each. Both libraries of a process are one row.
TEST_F(Top, ChildrenAndBothLibraries) {
  Child launcher([&] {
    Child first([&] {
      MakeFigures(Folder(), 10 * kMiB, ".library");
      KeepFigures(MakeFigures(Folder(), 30 * kMiB));
    });
    Child second([&] { KeepFigures(MakeFigures(Folder(), 50 * kMiB)); });
    if (first.ReadLine() != "ready\n" || second.ReadLine() != "ready\n") _exit(1);
    printf("ready\n");
    fflush(stdout);
    getchar();
    first.End();
    second.End();
  });
  ASSERT_EQ(launcher.ReadLine(), "ready\n");
  const Outcome outcome = Of(launcher);
  const std::vector<std::string> lines = LinesOf(outcome.out);
  ASSERT_EQ(lines.size(), 5u) << outcome.out << outcome.err;
  EXPECT_EQ(Words(lines[2])[2], "50.0");
  EXPECT_EQ(Words(lines[3])[2], "40.0");
  EXPECT_THAT(lines[4], StartsWith("  total  2 processes "));
  EXPECT_EQ(Words(lines[4])[3], "90.0");
  EXPECT_EQ(Words(lines[4])[11], "6000");
}

TEST_F(Top, AllProcessesOfADirectory) {
  Child child([&] { KeepFigures(MakeFigures(Folder(), 3 * kMiB)); });
  Child other([&] { KeepFigures(MakeFigures(Folder(), 5 * kMiB)); });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  ASSERT_EQ(other.ReadLine(), "ready\n");
  const std::string gone = Path("stats." + std::to_string(other.pid()));
  other.End();
  ASSERT_TRUE(fs::exists(gone));
  fs::copy_file(gone, Path("stats." + std::to_string(getpid())));  // the id is another program's now
  std::ofstream(Path("stats.x"));
  std::ofstream(Path("sections." + std::to_string(child.pid()))) << R"({"more": {"figures": {"x": 7}, "report": {}}})";
  const json found = json::parse(Run({"--json"}, Folder()).out, nullptr, false);
  ASSERT_EQ(found["processes"].size(), 1u) << found;
  EXPECT_EQ(found["processes"][0]["pid"], child.pid());
  EXPECT_EQ(found["processes"][0]["more"], (json{{"x", 7}}));  // what the program adds
  const json everywhere = json::parse(Run({"--json"}).out, nullptr, false);
  std::vector<int> pids;
  for (const json& process : everywhere["processes"]) pids.push_back(process["pid"]);
  EXPECT_THAT(pids, testing::Contains(child.pid()));
  child.End();
  ExpectRefused(Run({}, Folder()), "no running process keeps its figures in HOTPACK_STATS_DIR, " + Folder());
  ExpectRefused(Run({}, "/nowhere"), "HOTPACK_STATS_DIR /nowhere: No such file or directory");
}

TEST_F(Top, ProcessesWithoutFigures) {
  Child plain([] { (void)getchar(); });
  const std::string process = "process " + std::to_string(plain.pid()) + " (top_test)";
  ExpectRefused(Of(plain), process + " does not run under hotpack, nor does a child of it: start it by hotpack run, " +
                               "or with HOTPACK_STATS_DIR=DIRECTORY");
  const std::string pid = std::to_string(plain.pid());
  plain.End();
  ExpectRefused(Run({pid}), "there is no process " + pid);
  ExpectRefused(Run({"0"}), "PID: Value 0 not in range 1 to 2147483647");
  ExpectRefused(Run({"1", "--interval", "9ms"}),
                "--interval: '9ms' is no time of 10ms or more, such as 2 (seconds) or 500ms");
  ExpectRefused(Run({"1", "--count", "0"}), "--count: Value 0 not in range 1 to 1000000000");
}

TEST_F(Top, AnotherVersion) {
  Child child([&] {
    StatsSlot* slot = MakeFigures(Folder(), kMiB);
    (reinterpret_cast<StatsFileHeader*>(slot) - 1)->version = kStatsVersion + 1;
    KeepFigures(slot);
  });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  ExpectRefused(Of(child), "process " + std::to_string(child.pid()) +
                               " (top_test) runs under another version of hotpack, whose figures this one cannot read");
}

TEST_F(Top, AProcessOfAnotherUser) {
  if (geteuid() != 0 || access("/usr/bin/setpriv", X_OK) != 0) GTEST_SKIP() << "needs root and setpriv";
  Child child([&] {
    MakeFigures(Folder(), kMiB, ".library");
    KeepFigures(MakeFigures(Folder(), kMiB));
  });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  const auto as_nobody = [](std::vector<std::string> command, const std::string& directory = "") {
    command.insert(command.begin(), {"/usr/bin/setpriv", "--reuid=65534", "--clear-groups"});
    return hotpack_test::RunProgram(command, {{"LD_PRELOAD", ""}, {"HOTPACK_STATS_DIR", directory}});
  };
  if (as_nobody({HOTPACK_COMMAND, "--version"}).code != 0) GTEST_SKIP() << "others may not run the command";
  ExpectRefused(as_nobody({HOTPACK_COMMAND, "top", std::to_string(child.pid())}),
                "process " + std::to_string(child.pid()) + " (top_test): Permission denied");
  chmod(Folder().c_str(), 0755);  // a directory that others may read
  const json shared = JsonOf(as_nobody({HOTPACK_COMMAND, "top", "--json"}, Folder()));
  ASSERT_EQ(shared["processes"].size(), 1u);
  EXPECT_EQ(shared["processes"][0]["requests"], 4000);
}

// The files are removed while the process goes on: its `hotpack run` has ended.
TEST_F(Top, AFileThatDisappearsIsTheEnd) {
  Child child([&] { KeepFigures(MakeFigures(Folder(), kMiB)); });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  auto done = std::async(std::launch::async, [&] { return Of(child, {"--count", "1000", "--interval", "20ms"}); });
  AwaitReader();
  fs::remove(Path("stats." + std::to_string(child.pid())));
  const Outcome outcome = done.get();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(LinesOf(outcome.out).back(), HasSubstr(" ended "));
}

// A table in the place of the one before, cut to the width of the terminal, until the process has ended.
TEST_F(Top, OnATerminal) {
  Child child([&] { KeepFigures(MakeFigures(Folder(), kMiB)); });
  ASSERT_EQ(child.ReadLine(), "ready\n");
  auto end = std::async(std::launch::async, [&] {
    AwaitReader();
    child.WriteLine();
    return child.End();
  });
  int status = 0;
  const std::string seen = hotpack_test::OnTerminal(
      [&] {
        setenv("TERM", "xterm", 1);
        unsetenv("LD_PRELOAD");
        execl(HOTPACK_COMMAND, "hotpack", "top", std::to_string(child.pid()).c_str(), "--interval", "0.1", nullptr);
      },
      &status, 128);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(end.get(), 0);
  const std::string up = "\033[3A";
  EXPECT_THAT(seen, HasSubstr(up));
  const std::string last = seen.substr(seen.rfind(up));
  EXPECT_THAT(last, HasSubstr(" 3000 "));  // the figures of the process's end
  EXPECT_THAT(last, HasSubstr(" ended"));
  for (const std::string& line : LinesOf(last)) EXPECT_LE(line.size(), up.size() + 128 + 4) << line;
}

class TopOfAProgram : public Top {
 protected:
  void SetUp() override {
    if (!fs::exists(HOTPACK_BINARY_DIR "/lib/simgpu/libcuda.so.1")) GTEST_SKIP() << "no simulated device was built";
  }
  // In a child: becomes `hotpack run` or `record`, with these options and the program.
  static void Become(std::vector<std::string> words) {
    words.insert(words.begin(), "hotpack");
    words.insert(words.begin() + 2, "--simulate");
    for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "HOTPACK", "HOTPACK_STATS_DIR"}) unsetenv(name);
    execv(HOTPACK_COMMAND, Arguments(words).data());
  }
};

TEST_F(TopOfAProgram, WhatItHasUnderHotpackRun) {
  const std::string figures = Path("figures.json");
  Child run([&] {
    Become({"run", "--quiet", "--json-stats", figures, "--", "sh", "-c", HOTPACK_TOP_CLIENT "; exit $?"});
  });
  uint64_t requests = 0, held = 0, live = 0;
  ASSERT_EQ(sscanf(run.ReadLine().c_str(), "%lu %lu %lu", &requests, &held, &live), 3);
  EXPECT_EQ(requests, 201u);
  const json now = JsonOf(Of(run, {"--json"}))["processes"][0];  // of a grandchild of `hotpack run`
  EXPECT_EQ(now["program"], "top_client");
  EXPECT_EQ(now["requests"], requests);
  EXPECT_EQ(now["held"], held);
  EXPECT_EQ(now["live"], live);
  EXPECT_EQ(live, 3 * kMiB);
  EXPECT_GT(now["planned"], 0u);
  EXPECT_GE(now["driver_calls"], now["handles_created"].get<uint64_t>() + now["access_calls"].get<uint64_t>());

  auto done = std::async(std::launch::async, [&] { return Of(run, {"--count", "1000", "--interval", "50ms"}); });
  AwaitReader();
  run.WriteLine();
  ASSERT_EQ(sscanf(run.ReadLine().c_str(), "%lu %lu %lu", &requests, &held, &live), 3);
  const json later = JsonOf(Of(run, {"--json"}))["processes"][0];
  EXPECT_EQ(run.End(), 0);
  const Outcome table = done.get();
  EXPECT_EQ(table.code, 0) << table.err;
  const std::vector<std::string> last = Words(LinesOf(table.out).back());
  ASSERT_EQ(last.size(), 14u) << table.out;
  EXPECT_EQ(last[1], "top_client");
  EXPECT_EQ(last[10], "401");
  EXPECT_EQ(last[12], "ended");
  const json final = json::parse(hotpack_test::ReadFile(figures), nullptr, false);
  for (const auto& [name, value] : final.items()) {
    if (later.contains(name)) {
      EXPECT_EQ(later[name], value) << name;
    }
  }
  EXPECT_EQ(final["requests"], 401);
  EXPECT_EQ(last[11], std::to_string(final["iterations"].get<uint64_t>()));
}

TEST_F(TopOfAProgram, WithoutItsContextItHoldsNothing) {
  Child run([&] { Become({"run", "--quiet", "--", HOTPACK_TOP_CLIENT, "end"}); });
  run.ReadLine();
  EXPECT_GT(JsonOf(Of(run, {"--json"}))["processes"][0]["held"], 0u);
  run.Write('x');
  ASSERT_EQ(run.ReadLine(), "ended\n");
  const json ended = JsonOf(Of(run, {"--json"}))["processes"][0];
  EXPECT_EQ(ended["held"], 0);
  EXPECT_EQ(ended["live"], 0);
  EXPECT_EQ(ended["requests"], 201);
  EXPECT_EQ(run.End(), 0);
}

// The driver holds what is live.
TEST_F(TopOfAProgram, WhatItHasWhileItIsRecorded) {
  Child record([&] { Become({"record", "-o", Path("job.trace"), "--", HOTPACK_TOP_CLIENT, "end"}); });
  record.ReadLine();
  const json live = JsonOf(Of(record, {"--json"}))["processes"][0];
  EXPECT_EQ(live["held"], 0);
  EXPECT_EQ(live["live"], 3 * kMiB);
  EXPECT_EQ(live["driver_calls"], 201);
  record.Write('x');
  ASSERT_EQ(record.ReadLine(), "ended\n");
  EXPECT_EQ(JsonOf(Of(record, {"--json"}))["processes"][0]["live"], 0);
  EXPECT_EQ(record.End(), 0);
}

WatchedFigures Figures(int pid, uint64_t held, bool ended = false) {
  WatchedFigures figures;
  figures.process.pid = pid;
  figures.process.program = "train";
  figures.process.current.held = held;
  figures.process.stats.requests = 10;
  figures.ended = ended;
  if (!ended) figures.requests_per_second = 4;
  return figures;
}

TEST(TopTable, TheTotalIsThatOfRunningProcesses) {
  std::vector<WatchedFigures> processes = {Figures(1, 8 * kMiB), Figures(2, 4 * kMiB), Figures(3, kMiB, true)};
  std::vector<std::string> lines = TopTable(processes, 100, 0);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_THAT(Words(lines.back()), testing::ElementsAre("total", "2", "processes", "12.0", "0.0", "100.0", "%", "0.0",
                                                        "0.0", "0.00", "%", "20", "8", "0"));
  for (WatchedFigures& figures : processes) figures.ended = true;
  lines = TopTable(processes, 100, 0);
  EXPECT_THAT(lines.back(), HasSubstr("total  3 processes"));
  EXPECT_EQ(Words(lines.back())[3], "13.0");
}

TEST(TopTable, AScreenOfProcesses) {
  const std::vector<WatchedFigures> processes(50, Figures(1, kMiB));
  const std::vector<std::string> lines = TopTable(processes, 19, 40);
  ASSERT_EQ(lines.size(), 2 + 19 + 2u);
  EXPECT_EQ(lines[21], "    ...  31 more");
  for (const std::string& line : lines) EXPECT_LE(line.size(), 40u);
  EXPECT_THAT(TopTable({}, 1, 0), testing::SizeIs(2));
}

TEST(TopTable, ANameCannotMoveTheCursor) {
  WatchedFigures figures = Figures(1, kMiB);
  figures.process.program = "a\033[2J\nb";
  EXPECT_THAT(TopTable({figures}, 1, 0).back(), HasSubstr("a?[2J?b"));
}

}  // namespace
}  // namespace hotpack
