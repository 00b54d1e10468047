// Every subcommand of `hotpack`, used wrongly: one line on stderr that begins with its name, the right exit code, and
// no file left that is partial, renamed or temporary.
//
// A new subcommand has a row in kSubcommands. A test fails for one without rows.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/persist/stats_file.h"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"
#include "tests/tools/help_text.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr int kKilled = 128;

struct Subcommand {
  const char* name;
  // A use that works. IN: the input; OUT: the output.
  std::vector<std::string> good;
  // The file under tests/data that IN stands for; "": it reads none.
  std::string input;
  // The options that name an output, those in `good` among them. Any may be given instead of, or in addition to, the
  // others.
  std::vector<std::string> outputs;
  bool prints = false;       // facts on standard output
  bool needs_cuda = false;   // of the simulated device, or a program's
  bool input_first = false;  // IN is read before any other access to the machine
};

const std::vector<Subcommand> kSubcommands = {
    {.name = "run",
     .good = {"run", "--simulate", "--json-stats", "OUT", "--", "true"},
     .input = "",
     .outputs = {"--json-stats", "--trace", "--report"},
     .needs_cuda = true},
    {.name = "record",
     .good = {"record", "--simulate", "-o", "OUT", "--", HOTPACK_COMMAND, "replay",
              HOTPACK_SOURCE_DIR "/tests/data/lstm.csv"},
     .input = "",
     .outputs = {"-o"},
     .needs_cuda = true},
    {.name = "top",  // of this process, which keeps figures (SetUp)
     .good = {"top", std::to_string(getpid()), "--json"},
     .input = "",
     .outputs = {},
     .prints = true},
    {.name = "doctor",
     .good = {"doctor", "--simulate", "--json"},
     .input = "",
     .outputs = {},
     .prints = true,
     .needs_cuda = true},
    {.name = "need",
     .good = {"need", "--json", "--", "bash", "-c",
              HOTPACK_COMMAND " replay " HOTPACK_SOURCE_DIR "/tests/data/lstm.csv >/dev/null"},
     .input = "",
     .outputs = {},
     .prints = true,
     .needs_cuda = true},
    {.name = "replay",
     .good = {"replay", "IN"},
     .input = "lstm.csv",
     .outputs = {},
     .prints = true,
     .needs_cuda = true,
     .input_first = true},
    {.name = "pack",
     .good = {"pack", "IN", "--out", "OUT"},
     .input = "lstm.csv",
     .outputs = {"--out"},
     .prints = true,
     .input_first = true},
    {.name = "plan",
     .good = {"plan", "IN", "--out", "OUT"},
     .input = "chain.graph.json",
     .outputs = {"--out"},
     .prints = true,
     .input_first = true},
    {.name = "export",
     .good = {"export", "IN", "--format", "lp", "--out", "OUT"},
     .input = "lstm.csv",
     .outputs = {"--out"},
     .input_first = true},
    {.name = "report",
     .good = {"report", "IN", "--out", "OUT"},
     .input = "lstm.csv",
     .outputs = {"--out"},
     .input_first = true},
    {.name = "compare",
     .good = {"compare", "IN"},
     .input = "lstm.csv",
     .outputs = {},
     .prints = true,
     .input_first = true},
    {.name = "diff",
     .good = {"diff", "IN", HOTPACK_SOURCE_DIR "/tests/data/lstm.csv"},
     .input = "lstm.csv",
     .outputs = {},
     .prints = true,
     .input_first = true},
    {.name = "import",
     .good = {"import", "IN", "--out", "OUT"},
     .input = "mlp-adam.rmm.log",
     .outputs = {"--out"},
     .input_first = true},
    {.name = "verify",
     .good = {"verify", "IN", "OUT"},
     .input = "lstm.csv",
     .outputs = {},
     .prints = true,
     .input_first = true},
    {.name = "show", .good = {"show", "IN"}, .input = "lstm.csv", .outputs = {}, .prints = true, .input_first = true},
    {.name = "help", .good = {"help", "pack"}, .input = "", .outputs = {}, .prints = true},
};

void PrintTo(const Subcommand& row, std::ostream* out) { *out << row.name; }

class WrongUse : public hotpack_test::CommandFolder, public testing::WithParamInterface<Subcommand> {
 protected:
  void SetUp() override {
    if (!IsNamed("top")) return;
    ASSERT_NE(hotpack::TakeStatsSlot(hotpack::CreateStatsFile(figures_.path().c_str())), nullptr);
  }
  std::map<std::string, std::string> Contents() const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      contents[entry.path().filename()] = entry.is_regular_file() ? ReadFile(entry.path()) : "not a file";
    }
    return contents;
  }
  std::string Data() const { return HOTPACK_SOURCE_DIR "/tests/data/" + GetParam().input; }
  // The good use with these in the places of IN and OUT.
  std::vector<std::string> Arguments(const std::string& in, const std::string& out) const {
    std::vector<std::string> arguments = GetParam().good;
    for (std::string& argument : arguments) {
      if (argument == "IN") argument = in;
      if (argument == "OUT") argument = out;
    }
    return arguments;
  }
  // As Arguments, with `option` for the output.
  std::vector<std::string> ArgumentsFor(const std::string& option, const std::string& out) const {
    std::vector<std::string> arguments = Arguments(Data(), out);
    const auto there = std::find(arguments.begin(), arguments.end(), GetParam().outputs.front());
    if (there != arguments.end()) *there = option;
    return arguments;
  }
  static std::map<std::string, std::string> Environment() {
    return {{"LD_LIBRARY_PATH", HOTPACK_FAKE_CUDA}, {"LD_PRELOAD", hotpack_test::SanitizerPreload()}, {"HOTPACK", ""}};
  }
  static Outcome Hotpack(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HOTPACK_COMMAND);
    return hotpack_test::RunProgram(arguments, Environment());
  }
  // By way of a shell, for its redirections. `script` says "$@" for the command.
  static Outcome InShell(const std::string& script, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"/bin/bash", "-c", script, "bash", HOTPACK_COMMAND});
    return hotpack_test::RunProgram(arguments, Environment());
  }
  void ExpectOneLine(const Outcome& outcome, int code, const std::vector<std::string>& arguments) const {
    const std::string what = testing::PrintToString(arguments);
    EXPECT_EQ(outcome.code, code) << what << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith(std::string("hotpack ") + GetParam().name + ": ")) << what;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << what << outcome.err;
  }
  // Exit code 2, one line, nothing printed, nothing changed.
  std::string ExpectRefused(const std::vector<std::string>& arguments) const {
    const auto before = Contents();
    const Outcome outcome = Hotpack(arguments);
    ExpectOneLine(outcome, 2, arguments);
    EXPECT_EQ(outcome.out, "") << testing::PrintToString(arguments);
    EXPECT_EQ(Contents(), before) << testing::PrintToString(arguments);
    return outcome.err;
  }
  static bool IsNamed(const std::string& name) { return GetParam().name == name; }
  // The file that the good use of `verify` reads in addition to IN.
  void MakeSolution() const {
    if (!IsNamed("verify")) return;
    ASSERT_EQ(Hotpack({"pack", Data(), "--out", Path("out")}).code, 0);
  }
  hotpack_test::TemporaryDirectory figures_;
  bool Possible() const { return !GetParam().needs_cuda || fs::exists(HOTPACK_BINARY_DIR "/lib/simgpu/libcuda.so.1"); }
};

INSTANTIATE_TEST_SUITE_P(Each, WrongUse, testing::ValuesIn(kSubcommands),
                         [](const auto& row) { return std::string(row.param.name); });

// The tables of wrong uses below are evidence only if the right use works.
TEST_P(WrongUse, TheRightUseWorks) {
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  const std::string out = Path("out");
  MakeSolution();
  const Outcome outcome = Hotpack(Arguments(Data(), out));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(!outcome.out.empty(), GetParam().prints || IsNamed("record")) << outcome.out;  // the program prints
  EXPECT_EQ(fs::exists(out), !GetParam().outputs.empty() || IsNamed("verify"));
  EXPECT_LE(Contents().size(), 1u);
}

TEST_P(WrongUse, HelpHasAnExample) {
  const std::string name = GetParam().name;
  const Outcome outcome = Hotpack({name, "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, testing::ContainsRegex("Example:\n  hotpack .*" + name));
  EXPECT_EQ(Hotpack({"help", name}).out, outcome.out);
  const bool takes_force = !GetParam().outputs.empty();
  EXPECT_EQ(outcome.out.find("--force ") != std::string::npos, takes_force) << outcome.out;
}

TEST_P(WrongUse, OptionsAndOperands) {
  const std::string name = GetParam().name;
  ExpectRefused({name, "--no-such-option"});
  std::vector<std::string> with = Arguments(Data(), Path("out"));
  with.insert(with.begin() + 1, "--no-such-option");
  ExpectRefused(with);
  for (const std::string& output : GetParam().outputs) {
    ExpectRefused({name, output});                              // no value
    std::vector<std::string> empty = ArgumentsFor(output, "");  // an empty one
    ExpectRefused(empty);
  }
  if (GetParam().input.empty()) return;
  ExpectRefused({name});
  std::vector<std::string> without = Arguments(Data(), Path("out"));
  without.erase(std::find(without.begin(), without.end(), Data()));
  ExpectRefused(without);
  std::vector<std::string> more = Arguments(Data(), Path("out"));
  more.insert(more.end(), {"more", "still more"});
  ExpectRefused(more);
}

TEST_P(WrongUse, Inputs) {
  if (!GetParam().input_first) return;
  const std::string good = ReadFile(Data());
  Write("empty", "");
  Write("text", "hello\nworld\n");
  Write("bytes", std::string("\x89hotpack\x01\0\0\0\xff\xff", 14));
  Write("cut", good.substr(0, good.size() / 2));
  Write("zeros", std::string(5000, '\0'));
  Write("long line", std::string(3 << 20, 'x') + "\n");
  for (const char* input : {"missing", "", ".", "empty", "text", "bytes", "cut", "zeros", "long line", "text/below"}) {
    const std::string path = input[0] == '\0' ? "" : Path(input);
    if (IsNamed("import") && std::string(input) == "cut") continue;  // a log that is still written
    const std::string line = ExpectRefused(Arguments(path, Path("out")));
    EXPECT_THAT(line, HasSubstr(path));
  }
  const std::string secret = Write("secret", good);
  chmod(secret.c_str(), 0);
  if (access(secret.c_str(), R_OK) != 0) ExpectRefused(Arguments(secret, Path("out")));
}

TEST_P(WrongUse, Outputs) {
  for (const std::string& option : GetParam().outputs) {
    const auto refused = [&](const std::string& out, const std::string& reason) {
      EXPECT_THAT(ExpectRefused(ArgumentsFor(option, out)), HasSubstr(out + ": " + reason)) << option;
    };
    fs::create_directory(Path("folder"));
    Write("file", "precious");
    refused(Path("folder"), "is a directory");
    refused(Path("new/"), "is a directory");
    refused(Path("none/out"), "No such file or directory");
    refused(Path("file/out"), "Not a directory");
    refused(Path(std::string(300, 'x')), "File name too long");
    refused(Path("file"), "is there already; --force writes over it");
    fs::create_symlink(Path("file"), Path("link"));
    refused(Path("link"), "is there already; --force writes over it");
    fs::remove(Path("link"));
    if (IsNamed("export") || IsNamed("import") || IsNamed("report")) {
      EXPECT_EQ(Hotpack(ArgumentsFor(option, "-")).code, 0) << "standard output";
    } else {
      EXPECT_THAT(ExpectRefused(ArgumentsFor(option, "-")),
                  HasSubstr(" -: standard output has something else to hold"));
    }
    chmod(Path("folder").c_str(), 0555);
    if (access(Path("folder").c_str(), W_OK) != 0) refused(Path("folder/out"), "Permission denied");  // root may
    if (access("/proc/version", W_OK) != 0) refused("/proc/version", "Permission denied");
    chmod(Path("folder").c_str(), 0755);
    if (GetParam().input.empty()) continue;
    const std::string own = Write("own", ReadFile(Data()));  // the input is never written over
    for (const std::vector<std::string>& force : std::vector<std::vector<std::string>>{{}, {"--force"}}) {
      std::vector<std::string> arguments = Arguments(own, own);
      arguments.insert(arguments.end(), force.begin(), force.end());
      EXPECT_THAT(ExpectRefused(arguments), HasSubstr(own + " is the input"));
    }
  }
}

TEST_P(WrongUse, ForceWritesOver) {
  if (GetParam().outputs.empty()) return;
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  Write("old", "precious");
  chmod(Path("old").c_str(), 0640);
  fs::create_symlink("old", Path("link"));
  std::vector<std::string> arguments = Arguments(Data(), Path("link"));
  arguments.insert(arguments.begin() + 1, "--force");
  const Outcome outcome = Hotpack(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(ReadFile(Path("old")), "precious");
  EXPECT_TRUE(fs::is_symlink(Path("link"))) << "a link is followed";
  if (IsNamed("record")) return;  // the recording is a new file, which may be read while it is written
  EXPECT_EQ(static_cast<int>(fs::status(Path("old")).permissions()), 0640) << "and what it leads to stays whose it was";
  EXPECT_EQ(Contents().size(), 2u);
}

// A disk that is full after a block, and a device that always is.
TEST_P(WrongUse, AFullDisk) {
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  MakeSolution();
  if (GetParam().prints) {
    const std::vector<std::string> arguments = Arguments(Data(), Path("out"));
    const Outcome full = InShell("\"$@\" >/dev/full", arguments);
    ExpectOneLine(full, 2, arguments);
    EXPECT_THAT(full.err, HasSubstr("standard output: cannot be written"));
  }
  if (GetParam().outputs.empty()) return;
  fs::remove(Path("out"));
  Write("old", "precious");
  const auto before = Contents();
  std::vector<std::string> arguments = Arguments(Data(), Path("old"));
  arguments.insert(arguments.begin() + 1, "--force");
  const std::string blocks = IsNamed("record") ? "8" : "0";  // enough for the figures, not for a recording
  const Outcome limited =
      InShell("(trap '' XFSZ; ulimit -f " + blocks + "; exec \"$@\") 2>&1 | cat; exit ${PIPESTATUS[0]}", arguments);
  EXPECT_EQ(limited.code, 2) << limited.out;
  if (IsNamed("record")) return;  // its old file is gone when the program begins
  EXPECT_THAT(limited.out, HasSubstr(Path("old") + ": cannot be written: File too large\n"));
  EXPECT_EQ(Contents(), before) << "the old file stays, and nothing beside it";
}

// Standard output closed, or a reader that has gone away: neither is silence and success.
TEST_P(WrongUse, NobodyReads) {
  if (!GetParam().prints) return;
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  MakeSolution();
  const std::vector<std::string> arguments = Arguments(Data(), Path("out"));
  const Outcome closed = InShell("\"$@\" >&-", arguments);
  ExpectOneLine(closed, 2, arguments);
  if (IsNamed("pack") || IsNamed("plan")) fs::remove(Path("out"));
  const Outcome gone =
      InShell("( \"$@\"; echo $? >\"$0.code\" ) | head -n 0; cat \"$0.code\"; rm \"$0.code\"", arguments);
  EXPECT_TRUE(gone.out == std::to_string(kKilled + SIGPIPE) + "\n" || gone.out == "0\n")
      << gone.out << gone.err;  // 0: it was quicker
  EXPECT_EQ(gone.err, "");
}

// With descriptors closed that programs rely on, output does not end up in a file.
TEST_P(WrongUse, ClosedDescriptors) {
  if (GetParam().outputs.empty()) return;
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  const std::vector<std::string> arguments = Arguments(Data(), Path("out"));
  InShell("\"$@\" <&- >&- 2>&-", arguments);
  const std::string closed = ReadFile(Path("out"));
  fs::remove(Path("out"));
  EXPECT_EQ(Hotpack(arguments).code, 0);
  if (IsNamed("run") || IsNamed("record")) {  // times differ
    EXPECT_EQ(closed.substr(0, 1), ReadFile(Path("out")).substr(0, 1));
  } else {
    EXPECT_EQ(closed, ReadFile(Path("out")));
  }
}

// The command reads from a pipe that has half of its input in it, and waits for the rest, when the signal comes.
TEST_P(WrongUse, AnInterruptHalfWay) {
  if (!GetParam().input_first) return;
  Write("old", "precious");
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::vector<std::string> arguments = Arguments(Path("pipe"), Path("old"));
  if (IsNamed("import")) arguments.insert(arguments.end(), {"--format", "rmm-log"});
  if (!GetParam().outputs.empty()) arguments.push_back("--force");
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  const auto before = Contents();
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    if (child == 0) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, 1);
      dup2(null, 2);
      unsetenv("LD_PRELOAD");
      setenv("LD_LIBRARY_PATH", HOTPACK_FAKE_CUDA, 1);
      std::vector<char*> argv;
      for (std::string& argument : arguments) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    std::ofstream writer(Path("pipe"), std::ios::binary);  // opened when the other end is
    const std::string good = ReadFile(Data());
    writer << good.substr(0, good.size() / 2) << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that it waits in read; either way it has to end
    kill(child, number);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(Contents(), before);
  }
}

// The program that hotpack waits for gets the signal. Nothing remains of the files kept for it meanwhile.
TEST_P(WrongUse, AnInterruptOfAProgram) {
  const bool runs = IsNamed("run") || IsNamed("record") || IsNamed("doctor");
  if (!runs) return;
  if (!Possible()) GTEST_SKIP() << "no simulated device was built";
  fs::create_directory(Path("scratch"));
  std::vector<std::string> arguments = {HOTPACK_COMMAND, GetParam().name, "--simulate"};
  if (IsNamed("record")) arguments.insert(arguments.end(), {"-o", Path("out")});
  arguments.insert(arguments.end(), {"--", "sh", "-c", "kill -INT $PPID; exec sleep 60"});
  std::map<std::string, std::string> environment = Environment();
  environment["TMPDIR"] = Path("scratch");
  const Outcome outcome = hotpack_test::RunProgram(arguments, environment);
  EXPECT_EQ(outcome.code, IsNamed("doctor") ? 1 : kKilled + SIGINT) << outcome.err;
  EXPECT_TRUE(fs::is_empty(Path("scratch")));
  EXPECT_FALSE(fs::exists(Path("out")));
}

// The rows above are all subcommands there are.
// What a recording is written to, and what the graph of a step is.
TEST(WrongUseOfSubcommands, RecordWithItsTwoOutputs) {
  const auto error = [](std::vector<std::string> options) {
    options.insert(options.begin(), {HOTPACK_COMMAND, "record"});
    options.insert(options.end(), {"--", "true"});
    const Outcome outcome = hotpack_test::RunProgram(options, {{"LD_PRELOAD", ""}});
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_EQ(error({}), "hotpack record: nothing to record: --out FILE, --graph FILE or both\n");
  EXPECT_EQ(error({"-o", "x", "--graph", "./x"}), "hotpack record: ./x: --out and --graph name the same file\n");
  EXPECT_EQ(error({"--graph", "/nowhere/x"}), "hotpack record: --graph /nowhere/x: No such file or directory\n");
  EXPECT_EQ(error({"--graph", "x", "--step", "1"}), "hotpack record: --step: Value 1 not in range 2 to 1000000\n");
  EXPECT_EQ(error({"-o", "x", "--step", "4"}), "hotpack record: --step requires --graph\n");
}

TEST(WrongUseOfSubcommands, EachHasARow) {
  const Outcome outcome = hotpack_test::RunProgram({HOTPACK_COMMAND, "--help"}, {{"LD_PRELOAD", ""}});
  const std::vector<std::string> listed = hotpack_test::SubcommandsIn(outcome.out);
  std::vector<std::string> rows;
  for (const Subcommand& row : kSubcommands) rows.emplace_back(row.name);
  EXPECT_THAT(listed, testing::UnorderedElementsAreArray(rows));
}

}  // namespace
