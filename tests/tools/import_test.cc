// `hotpack import`, and `hotpack export --format torch-snapshot`, as people use them: the written files, one line for
// every rejection, and no partial files.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kData = HOTPACK_SOURCE_DIR "/tests/data/";
const std::string kSnapshot = kData + "mlp-torch.pickle";
const std::string kLog = kData + "mlp-adam.rmm.log";

class ImportTest : public hotpack_test::CommandFolder {
 protected:
  static Outcome Hotpack(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HOTPACK_COMMAND);
    return RunProgram(arguments, {{"LD_PRELOAD", ""}});
  }
  static void ExpectFailure(const std::vector<std::string>& arguments, const std::string& line) {
    const Outcome outcome = Hotpack(arguments);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_EQ(outcome.out, "");
    EXPECT_EQ(outcome.err, line + "\n");
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    return names;
  }
};

// The figures are those that tests/data/make_snapshot.py printed when it recorded the file, from Python's dictionaries.
TEST_F(ImportTest, ARecordedSnapshot) {
  const std::string trace = Path("job.trace");
  const Outcome outcome = Hotpack({"import", kSnapshot, "-o", trace});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err,
            "hotpack import: PyTorch snapshot, device 0: 132 allocations and 26 blocks from before, 24 not released\n");
  const Outcome shown = Hotpack({"show", trace});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("events         292: 158 requests, 134 releases, 0 marks\n"));
  EXPECT_THAT(shown.out, HasSubstr("2 streams, 1 thread,"));
  EXPECT_THAT(shown.out, HasSubstr("the iteration that is found without marks"));
  EXPECT_EQ(Hotpack({"pack", trace}).code, 0);

  const std::string csv = Path("job.csv");
  EXPECT_EQ(Hotpack({"import", kSnapshot, "--out", csv, "--format", "torch-snapshot", "--device", "0"}).code, 0);
  EXPECT_THAT(ReadFile(csv), StartsWith("event,id,bytes\nalloc,0,"));
  const std::string again = Path("again.csv");  // of the trace file
  EXPECT_EQ(Hotpack({"import", trace, "-o", again}).code, 0);
  EXPECT_EQ(ReadFile(again), ReadFile(csv));
}

TEST_F(ImportTest, ALogAndARecording) {
  const std::string trace = Path("log.trace");
  const Outcome outcome = Hotpack({"import", kLog, "-o", trace});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err,
            "hotpack import: RMM log: 194 allocations, 30 not released\n"
            "hotpack import: left out: 1 request that ran out of memory\n");
  EXPECT_THAT(Hotpack({"show", trace}).out, HasSubstr("requests, 164 releases"));
  EXPECT_EQ(Hotpack({"import", kData + "lstm.csv", "-o", Path("lstm.trace")}).code, 0);
  EXPECT_EQ(Hotpack({"import", Path("lstm.trace"), "-o", Path("lstm.csv")}).code, 0);
  EXPECT_EQ(ReadFile(Path("lstm.csv")), ReadFile(kData + "lstm.csv"));
  const Outcome piped = RunProgram(
      {"/bin/sh", "-c", "cat \"$1\" | \"$0\" import /dev/stdin --format rmm-log -o -", HOTPACK_COMMAND, kLog});
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_TRUE(piped.out == ReadFile(trace));  // bytes: not for a terminal
}

// Figures by hand: 0 and 1 meet (768 bytes each way rounded up to 1024), 2 begins where 0 ends and has a gap.
TEST_F(ImportTest, APackingInstance) {
  const std::string instance = Write(
      "i.csv", "id,lower,upper,size,alignment,gaps,offset\na,0,4,512,1,,0\nb,2,6,1024,4,,512\nc,4,12,512,1,8-10,-1\n");
  const Outcome outcome = Hotpack({"import", instance, "-o", Path("i.trace")});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err,
            "hotpack import: packing instance: 4 allocations, one iteration\n"
            "hotpack import: left out: offsets, alignments, 1 gap (the block is allocated again after it)\n");
  EXPECT_EQ(Hotpack({"export", Path("i.trace"), "--format", "event-csv"}).out,
            "event,id,bytes\nmark,step,\nalloc,0,512\nalloc,1,1024\nfree,0,\nalloc,2,512\nfree,1,\nfree,2,\nalloc,3,"
            "512\nfree,3,\n"
            "mark,end,\n");
  EXPECT_THAT(Hotpack({"pack", Path("i.trace")}).out, HasSubstr("\nlower bound  1536 (1.5 KiB)\n"));
  const std::string huge = Write("huge.csv", "id,lower,upper,size\nx,0,1,2000000000000\n");
  ExpectFailure(
      {"import", huge, "-o", Path("huge.trace")},
      "hotpack import: " + huge + ": block x has 2000000000000 bytes, more than the 1099511627776 of a recording");
}

// The exported instance is the packed one.
TEST_F(ImportTest, ARecordingAsAnInstance) {
  const std::string recording = kData + "cnn-carried.csv";
  const Outcome outcome = Hotpack({"export", recording, "--format", "minimalloc", "-o", Path("i.csv")});
  EXPECT_EQ(outcome.err, "hotpack export: 54 blocks of the last marked iteration, 54 requests\n");
  const std::string of_recording = Hotpack({"pack", recording, "--json"}).out,
                    of_instance = Hotpack({"pack", Path("i.csv"), "--json"}).out;
  const auto figures = [](const std::string& text) { return text.substr(0, text.find("\"ratio\"")); };
  EXPECT_EQ(figures(of_instance), figures(of_recording));
  EXPECT_EQ(Hotpack({"export", recording, "--format", "csv"}).out, ReadFile(recording));
  EXPECT_EQ(Hotpack({"import", Path("i.csv"), "-o", Path("again.trace")}).code, 0);
  EXPECT_EQ(Hotpack({"export", Path("again.trace"), "--format", "minimalloc"}).code, 0);
}

TEST_F(ImportTest, ThereAndBack) {
  const std::string first = Path("first.csv"), snapshot = Path("s.pickle"), second = Path("second.csv");
  ASSERT_EQ(Hotpack({"import", kSnapshot, "-o", first}).code, 0);
  const Outcome outcome = Hotpack({"export", first, "--format", "torch-snapshot", "-o", snapshot});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, ::testing::MatchesRegex("hotpack export: 158 allocations in one segment of [0-9.]+ MiB, "
                                                   "1\\.[0-9]+ times the lower bound\n"));
  EXPECT_EQ(Hotpack({"export", first, "--format", "torch-snapshot"}).out, ReadFile(snapshot));
  ASSERT_EQ(Hotpack({"import", snapshot, "-o", second}).code, 0);
  EXPECT_EQ(ReadFile(second), ReadFile(first));
}

TEST_F(ImportTest, RefusesWithOneLineAndWritesNothing) {
  const std::string out = Path("out.trace");
  const std::string text = Write("text", "nothing of that kind\n"), empty = Write("empty", "");
  const std::string cut = Write("cut.pickle", ReadFile(kSnapshot).substr(0, 5000));
  const std::string bare = Write("bare.pickle", "\x80\x02}q");
  const std::string attack = Write("attack.pickle",
                                   "\x80\x02"
                                   "cos\nsystem\nX\x02");
  const size_t before = Files().size();
  ExpectFailure({"import"}, "hotpack import: FILE is required");
  ExpectFailure({"import", kSnapshot}, "hotpack import: --out is required");
  ExpectFailure(
      {"import", kSnapshot, "-o", out, "--format", "json"},
      "hotpack import: --format: 'json' is none of auto, torch-snapshot, rmm-log, minimalloc, event-csv, trace");
  ExpectFailure({"import", Path("missing"), "-o", out},
                "hotpack import: " + Path("missing") + ": No such file or directory");
  ExpectFailure({"import", folder_.path(), "-o", out}, "hotpack import: " + folder_.path() + ": Is a directory");
  ExpectFailure({"import", empty, "-o", out}, "hotpack import: " + empty + ": the file is empty");
  ExpectFailure({"import", text, "-o", out},
                "hotpack import: " + text +
                    ": neither a PyTorch snapshot (a pickle of protocol 2 to 5), nor an RMM log with its header, nor a "
                    "packing instance (minimalloc), nor a recording");
  ExpectFailure({"import", text, "-o", out, "--format", "torch-snapshot"},
                "hotpack import: " + text + ": byte 0: this is no pickle of protocol 2 to 5");
  ExpectFailure({"import", text, "-o", out, "--format", "rmm-log"},
                "hotpack import: " + text + ":1:21: 1 columns, 6 expected: Thread,Time,Action,Pointer,Size,Stream");
  ExpectFailure({"import", kSnapshot, "-o", out, "--format", "event-csv", "--device", "1"},
                "hotpack import: --device is for PyTorch snapshots");
  ExpectFailure({"import", kSnapshot, "-o", out, "--device", "1"},
                "hotpack import: " + kSnapshot + ": there is no history of device 1 in it");
  EXPECT_THAT(Hotpack({"import", cut, "-o", out}).err, HasSubstr(": the file ends here: it is cut\n"));
  EXPECT_THAT(Hotpack({"import", bare, "-o", out}).err, HasSubstr(": byte 3: the file ends here"));
  EXPECT_THAT(Hotpack({"import", attack, "-o", out}).err,
              HasSubstr("byte 2: it wants Python to make an object (GLOBAL)"));
  ExpectFailure({"import", kSnapshot, "-o", "/nonexistent/out.trace"},
                "hotpack import: --out /nonexistent/out.trace: No such file or directory");
  ExpectFailure({"import", kSnapshot, "-o", "/dev/full"},
                "hotpack import: /dev/full: cannot be written: No space left on device");
  ExpectFailure({"import", kSnapshot, "-o", folder_.path()},
                "hotpack import: --out " + folder_.path() + ": is a directory");
  ExpectFailure({"import", text, "-o", text}, "hotpack import: --out " + text + " is the input");
  EXPECT_EQ(Files().size(), before);
}

TEST_F(ImportTest, WritesOverAFileOnlyWhenToldTo) {
  const std::string out = Write("there.trace", "precious");
  ExpectFailure({"import", kSnapshot, "-o", out},
                "hotpack import: --out " + out + ": is there already; --force writes over it");
  EXPECT_EQ(ReadFile(out), "precious");
  const std::string cut = Write("cut.pickle", ReadFile(kSnapshot).substr(0, 5000));
  EXPECT_EQ(Hotpack({"import", cut, "-o", out, "--force"}).code, 2);
  EXPECT_EQ(ReadFile(out), "precious");
  EXPECT_EQ(Hotpack({"import", kSnapshot, "-o", out, "--force"}).code, 0);
  EXPECT_THAT(ReadFile(out), StartsWith("\x89hotpack"));
}

// A reader that waits for more, or a pipe without a reader: the signal ends it as it ends any program, and the earlier
// file remains.
TEST_F(ImportTest, AnInterruptLeavesNothing) {
  const std::string out = Write("there.trace", "precious"), pipe = Path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const int number : {SIGINT, SIGTERM}) {
    const pid_t child = fork();
    if (child == 0) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, 2);
      unsetenv("LD_PRELOAD");
      execl(HOTPACK_COMMAND, HOTPACK_COMMAND, "import", pipe.c_str(), "--format", "torch-snapshot", "--force", "-o",
            out.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    std::ofstream writer(pipe, std::ios::binary);  // opened when the other end is
    writer << ReadFile(kSnapshot).substr(0, 5000) << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // so that it waits in read; either way it has to end
    kill(child, number);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_EQ(ReadFile(out), "precious");
    EXPECT_EQ(Files().size(), 2u);
  }
}

// The signal comes while the file is written under a temporary name, which takes long enough because it is large.
TEST_F(ImportTest, AnInterruptRemovesTheTemporaryFile) {
  const std::string big = Path("big.csv"), out = Path("out.trace");
  std::ofstream writer(big);
  writer << "event,id,bytes\n";
  constexpr int kBlocks = 400'000;
  for (int i = 0; i < kBlocks; ++i) writer << "alloc," << i << "," << 512 + i << "\nfree," << i << ",\n";
  writer.close();
  int seen = 0;
  for (int attempt = 0; attempt < 40 && seen < 3; ++attempt) {
    const pid_t child = fork();
    if (child == 0) {
      unsetenv("LD_PRELOAD");
      execl(HOTPACK_COMMAND, HOTPACK_COMMAND, "import", big.c_str(), "-o", out.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    const std::string partial = out + ".partial." + std::to_string(child);
    int status = 0;
    while (!std::filesystem::exists(partial) && waitpid(child, &status, WNOHANG) == 0) {
    }
    const bool writing = std::filesystem::exists(partial);
    kill(child, SIGINT);
    waitpid(child, &status, 0);
    EXPECT_FALSE(std::filesystem::exists(partial));
    if (writing && WIFSIGNALED(status)) {
      ++seen;
      EXPECT_FALSE(std::filesystem::exists(out)) << "half written";
    }
    std::filesystem::remove(out);
  }
  EXPECT_GT(seen, 0) << "never caught while it wrote";
}

TEST_F(ImportTest, AFileThatCannotBeWrittenToTheEndIsNotLeft) {
  const std::string out = Write("there.trace", "precious");
  const std::string command = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";  // no file larger than a block
  const Outcome imported =
      RunProgram({"/bin/sh", "-c", command, HOTPACK_COMMAND, "import", kLog, "-o", out, "--force"});
  EXPECT_EQ(imported.code, 2);
  EXPECT_EQ(imported.err, "hotpack import: " + out + ": cannot be written: File too large\n");
  const Outcome exported = RunProgram({"/bin/sh", "-c", command, HOTPACK_COMMAND, "export", kData + "lstm.csv",
                                       "--format", "torch-snapshot", "-o", out, "--force"});
  EXPECT_EQ(exported.code, 2);
  EXPECT_EQ(exported.err, "hotpack export: " + out + ": cannot be written: File too large\n");
  EXPECT_EQ(ReadFile(out), "precious");
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(ImportTest, ExportsToAFileOnly) {
  const std::string text = kData + "make_traces.py";
  ExpectFailure({"export", text, "--format", "torch-snapshot", "-o", Path("x")},
                "hotpack export: " + text + ":1:1: neither a hotpack trace nor an event CSV (event,id,bytes)");
  ExpectFailure({"export", kData + "lstm.csv", "--format", "torch-snapshot", "-o", "/dev/full"},
                "hotpack export: /dev/full: cannot be written: No space left on device");
  ExpectFailure({"export", kData + "lstm.csv", "--format", "torch-snapshot", "--all-pairs"},
                "hotpack export: --as-published and --all-pairs are for models, not for the format torch-snapshot");
  EXPECT_TRUE(Files().empty());
}

}  // namespace
