// The command as people and scripts use it: exit codes, one line for every error, the files that it writes and those
// that it does not.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "packer/validator.h"
#include "tests/support/subprocess.h"
#include "tests/tools/command_folder.h"
#include "tests/tools/command_with_fake_cuda.h"

namespace {

using hotpack_test::Hotpack;
using hotpack_test::kData;
using hotpack_test::kFakeCuda;
using hotpack_test::Lines;
using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// Bad options or input: exit code 2, nothing on stdout, exactly this line.
void ExpectRefused(const std::vector<std::string>& arguments, const std::string& line) {
  Outcome outcome = Hotpack(arguments);
  EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(arguments);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, line + "\n");
}

class CommandTest : public hotpack_test::CommandFolder {
 protected:
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
};

// A command that only detects the format does not consume the beginning of its input.
TEST_F(CommandTest, ARecordingThroughAPipe) {
  for (const char* file : {"mlp-adam.csv", "mlp-adam.trace"}) {
    const Outcome piped =
        RunProgram({"bash", "-c", "\"$0\" show <(cat \"$1\")", HOTPACK_COMMAND, kData + file}, kFakeCuda);
    EXPECT_EQ(piped.code, 0) << piped.err;
    EXPECT_EQ(piped.out, Hotpack({"show", kData + file}).out);
  }
}

TEST_F(CommandTest, Usage) {
  const Outcome alone = Hotpack({});
  EXPECT_EQ(alone.code, 2);
  EXPECT_EQ(alone.out, "");
  EXPECT_THAT(alone.err, StartsWith("hotpack: no command was given. The commands:\n  Run a program         need, run, "
                                    "record, top, doctor\n"));
  ExpectRefused({"dance"}, "hotpack: there is no command 'dance', see hotpack --help");
  ExpectRefused({"compar"}, "hotpack: there is no command 'compar': did you mean compare?");
  ExpectRefused({"help", "shwo"}, "hotpack help: there is no command 'shwo': did you mean show?");
  ExpectRefused({"pack"}, "hotpack pack: FILE is required");
  ExpectRefused({"show"}, "hotpack show: FILE is required");
  ExpectRefused({"replay"}, "hotpack replay: FILE is required");
  ExpectRefused({"run", "--budget", "4X", "--", "true"},
                "hotpack run: --budget 4X: not a size such as 7.5GiB, a share such as 60%, activations:50%, 0 or none");
  ExpectRefused({"pack", "x", "--fast"}, "hotpack pack: unknown option --fast");
  ExpectRefused({"pack", "x", "--threds", "4"}, "hotpack pack: unknown option --threds: did you mean --threads?");
  ExpectRefused({"plan", "verify", "--treads=4", "x"}, "hotpack plan: unknown option --treads");
  // An unknown option with a value is named itself, not the program behind it.
  ExpectRefused({"run", "--simulate", "--memroy-limit", "24G", "--", "true"},
                "hotpack run: unknown option --memroy-limit (the program's own options go behind --)");
  ExpectRefused({"run", "--tarce", "job.trace", "--", "true"},
                "hotpack run: unknown option --tarce: did you mean --trace?");
  ExpectRefused({"compare", "x", "--peers", "pytorch,"}, "hotpack compare: --peers: 'pytorch,' has an empty name");
  ExpectRefused({"pack", "x", "--time-limit", "0s"},
                "hotpack pack: --time-limit: '0s' is no duration such as 500ms or 2s");
  ExpectRefused({"pack", "x", "--algorithm", "magic"},
                "hotpack pack: --algorithm: 'magic' is none of auto, exact, best-fit, first-fit");
  ExpectRefused({"replay", "x", "--weights", "lots"},
                "hotpack replay: --weights: 'lots' is no size such as 4096, 512K, 300M or 2G");
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"replay", "x", "--repeat", "-1"},
                                             {"replay", "x", "--whole", "0"},
                                             {"replay", "x", "--api", "opencl"},
                                             {"replay", "x", "--repeat", "1", "--whole", "2"},
                                             {"replay", "x", "--marks", "some"},
                                             {"show", "x", "y"},
                                             {"pack", "x", "--out"},
                                             {"replay", "x", "--repeat", "two"}}) {
    Outcome outcome = Hotpack(bad);
    EXPECT_EQ(outcome.code, 2) << ::testing::PrintToString(bad);
    EXPECT_EQ(Lines(outcome.err).size(), 1u) << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("hotpack " + bad[0] + ": "));
    EXPECT_EQ(outcome.out, "");
  }
}

TEST_F(CommandTest, Help) {
  for (const char* command : {"pack", "show", "replay"}) {
    Outcome outcome = Hotpack({command, "--help"});
    EXPECT_EQ(outcome.code, 0);
    EXPECT_THAT(outcome.out, HasSubstr("Example:\n  hotpack "));
  }
  Outcome version = Hotpack({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, ::testing::MatchesRegex("hotpack [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

// Every reader of files, every kind of wrong file.
TEST_F(CommandTest, BadFiles) {
  std::string cut = ReadFile(kData + "mlp-adam.trace");
  std::string malformed = cut;
  malformed[300] = '\xff';
  struct Case {
    std::string path, reason;
  };
  for (const char* command : {"pack", "show", "replay"}) {
    std::string name = "hotpack " + std::string(command) + ": ";
    ExpectRefused({command, Path("none")}, name + Path("none") + ": No such file or directory");
    ExpectRefused({command, folder_.path()}, name + folder_.path() + ": Is a directory");
    for (const Case& bad : {
             Case{Write("cut.trace", cut.substr(0, 100)),
                  ": byte 100: the file ends in the header, which has 256 bytes"},
             Case{Write("cut.csv", "event,id,bytes\nalloc,1,5"), ":2:10: the line has no end: the file is cut"},
             Case{Write("twice.csv", "event,id,bytes\nalloc,1,5\nfree,1,\nfree,1,\n"),
                  ":4:6: block 1 is freed twice, first in line 3"},
             Case{Write("none.csv", "event,id,bytes\n"), ":1:1: no events follow the first line"},
         }) {
      ExpectRefused({command, bad.path}, name + bad.path + bad.reason);
    }
    Outcome outcome = Hotpack({command, Write("malformed.trace", malformed)});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_THAT(outcome.err, StartsWith(name + Path("malformed.trace") + ": byte "));
    EXPECT_EQ(Lines(outcome.err).size(), 1u);
    for (const char* contents : {"", "hello\n", "id,lower,upper,size\n0,5,3,8\n"}) {
      outcome = Hotpack({command, Write("other", contents)});
      EXPECT_EQ(outcome.code, 2) << contents;
      EXPECT_EQ(outcome.out, "");
      EXPECT_EQ(Lines(outcome.err).size(), 1u) << outcome.err;
      EXPECT_THAT(outcome.err, StartsWith(name + Path("other") + ":"));
    }
  }
  ExpectRefused({"pack", Write("marks.csv", "event,id,bytes\nmark,s,\n")},
                "hotpack pack: " + Path("marks.csv") + ": no requests to pack");
}

TEST_F(CommandTest, PackJson) {
  for (const char* file : {"mlp-adam.csv", "mlp-adam.trace", "cnn-carried.csv", "lstm.csv"}) {
    Outcome outcome = Hotpack({"pack", kData + file, "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    nlohmann::ordered_json object = nlohmann::ordered_json::parse(outcome.out);
    std::vector<std::string> keys;
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    std::vector<std::string> expected = {"blocks",  "lower_bound", "height",         "ratio",
                                         "seconds", "algorithm",   "proven_optimal", "status"};
    if (std::string_view(file) == "mlp-adam.trace") {  // its blocks are of two streams
      expected.insert(expected.end(), {"stream_edges", "stream_edges_avoided"});
    }
    EXPECT_EQ(keys, expected);
    EXPECT_EQ(object["status"], "packed");
    EXPECT_TRUE(object["blocks"].is_number_integer());
    EXPECT_TRUE(object["lower_bound"].is_number_integer());
    EXPECT_TRUE(object["height"].is_number_integer());
    EXPECT_TRUE(object["ratio"].is_number_float());
    EXPECT_TRUE(object["seconds"].is_number_float());
    EXPECT_TRUE(object["algorithm"].is_string());
    EXPECT_TRUE(object["proven_optimal"].is_boolean());
    EXPECT_EQ(object["height"], object["lower_bound"]) << file;
    EXPECT_EQ(outcome.err, "");
  }
  nlohmann::json object = nlohmann::json::parse(Hotpack({"pack", kData + "mlp-adam.csv", "--json"}).out);
  EXPECT_EQ(object["blocks"], 41);
  EXPECT_EQ(object["lower_bound"], 3784192);
}

TEST_F(CommandTest, PackInstancesAndAlgorithms) {
  std::string file = Write("i.csv", "id,lower,upper,size\r\na,0,4,10\r\nb,2,6,20\r\nc,4,8,10\r\n");
  for (const char* algorithm : {"auto", "exact", "best-fit", "first-fit"}) {
    Outcome outcome = Hotpack({"pack", file, "--algorithm", algorithm, "--out", Path("placed.csv"), "--force"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("blocks       3\nlower bound  30 (30 B)\nheight       30, 1.00000"));
    absl::StatusOr<hotpack::NamedInstance> placed = hotpack::ReadCsvFile(Path("placed.csv"));
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_THAT(placed->ids, ElementsAre("a", "b", "c"));
    EXPECT_EQ(hotpack::Validate(placed->instance, {placed->offsets, 30}), "");
  }
}

TEST_F(CommandTest, PackOfARecordingWritesItsIteration) {
  ASSERT_EQ(Hotpack({"pack", kData + "lstm.csv", "--out", Path("placed.csv")}).code, 0);
  absl::StatusOr<hotpack::NamedInstance> placed = hotpack::ReadCsvFile(Path("placed.csv"));
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->instance.blocks.size(), 345u);
  EXPECT_EQ(hotpack::Validate(placed->instance, {placed->offsets, 11175936}), "");
}

TEST_F(CommandTest, PackRefusesWhatItCannotWrite) {
  std::string file = Write("i.csv", "id,lower,upper,size\n0,0,4,10\n");
  ExpectRefused({"pack", file, "--out", "/nonexistent/out.csv"},
                "hotpack pack: --out /nonexistent/out.csv: No such file or directory");
  ExpectRefused({"pack", file, "--out", file}, "hotpack pack: --out " + file + " is the input");
  Outcome full = Hotpack({"pack", file, "--out", "/dev/full"});
  EXPECT_EQ(full.code, 2);
  EXPECT_EQ(full.out, "");
  EXPECT_EQ(full.err, "hotpack pack: /dev/full: cannot be written: No space left on device\n");
  // Bad input leaves an output alone.
  std::string old = Write("old.csv", "old");
  EXPECT_EQ(Hotpack({"pack", Write("bad.csv", "event,id,bytes\nfree,1,\n"), "--out", old, "--force"}).code, 2);
  EXPECT_EQ(ReadFile(old), "old");
  EXPECT_EQ(Hotpack({"pack", Path("bad.csv"), "--out", Path("new.csv")}).code, 2);
  EXPECT_THAT(Files(), ElementsAre("bad.csv", "i.csv", "old.csv"));
}

// The meanings of variables, as sentences of flags.
TEST_F(CommandTest, HelpOfRunReadsWell) {
  const std::string help = Hotpack({"run", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("(docs/collectors.md)"));
  EXPECT_THAT(help, testing::Not(HasSubstr(" (collectors.md)")));
  EXPECT_THAT(help, HasSubstr(" cuMemAlloc requests of these sizes"));
  EXPECT_THAT(help, HasSubstr("  Copies between devices"));
  EXPECT_THAT(help, testing::Not(HasSubstr("  whether ")));
}

TEST_F(CommandTest, ShowJson) {
  Outcome outcome = Hotpack({"show", kData + "mlp-adam.trace", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  nlohmann::ordered_json object = nlohmann::ordered_json::parse(outcome.out);
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre("format", "program", "process", "created", "end", "events", "requests", "releases", "marks",
                          "bytes", "live_peak", "live_end", "streams", "threads", "async_requests", "duration_ns",
                          "marked_iterations", "marked", "detected", "phases", "growth_known", "growth", "spike"));
  EXPECT_EQ(object["requests"], 194);
  EXPECT_EQ(object["marked_iterations"], nlohmann::ordered_json({61, 41, 41, 41}));
  EXPECT_EQ(object["created"], "2023-11-14T22:13:20Z");
  keys.clear();
  for (const auto& [key, value] : object["detected"].items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("requests", "unroll", "begins_at", "carried_blocks", "carried_bytes", "retained_blocks",
                                "retained_bytes", "peak", "lower_bound"));
  EXPECT_EQ(object["detected"]["requests"], 41);
  EXPECT_EQ(object["detected"]["peak"], 3784192);
}

TEST_F(CommandTest, ShowText) {
  Outcome outcome = Hotpack({"show", kData + "cnn-carried.csv"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith("format         event CSV\nevents         318: 162 requests, 152 releases, 4 marks\n"));
  EXPECT_THAT(outcome.out, HasSubstr("marked         3 iterations; requests: 54 54 54\n"));
  EXPECT_EQ(outcome.err, "");
  std::string cut = Write("cut.trace", ReadFile(kData + "mlp-adam.trace").substr(0, 1000));
  outcome = Hotpack({"show", cut});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, MatchesRegex("hotpack show: .*cut.trace: the file is cut: read are the events in its first "
                                        "1000 of [0-9]+ bytes\n"));
  EXPECT_THAT(outcome.out, StartsWith("format         trace file, not closed\n"));
  EXPECT_THAT(Hotpack({"pack", cut}).out, HasSubstr("the file is cut"));
  EXPECT_EQ(Hotpack({"compare", cut}).code, 0);
  EXPECT_THAT(Hotpack({"report", cut, "-o", Path("cut.html")}).err, HasSubstr("; the file is cut"));
}

// Each cut gives a whole prefix of the events, or one line.
TEST_F(CommandTest, ACutAnywhereIsReadUpToIt) {
  const std::string whole = ReadFile(kData + "mlp-adam.trace");
  int before = 0;
  for (size_t length = 256; length < whole.size(); length += 97) {
    const Outcome outcome = Hotpack({"show", Write("cut.trace", whole.substr(0, length)), "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const int events = nlohmann::json::parse(outcome.out)["events"];
    EXPECT_GE(events, before);
    before = events;
  }
  EXPECT_GT(before, 300);
}

// What `import` reads every command reads; what it does not read has a name.
TEST_F(CommandTest, RecordingsOfOtherAllocators) {
  for (const std::string file : {"mlp-torch.pickle", "mlp-adam.rmm.log"}) {
    ASSERT_EQ(Hotpack({"import", kData + file, "-o", Path("job.trace"), "--force"}).code, 0);
    const auto shown = nlohmann::json::parse(Hotpack({"show", kData + file, "--json"}).out);
    const auto imported = nlohmann::json::parse(Hotpack({"show", Path("job.trace"), "--json"}).out);
    for (const char* figure : {"events", "requests", "live_peak", "detected", "marked"}) {
      EXPECT_EQ(shown[figure], imported[figure]) << figure;
    }
    EXPECT_THAT(Hotpack({"show", kData + file}).out,
                StartsWith("format         " + std::string(file[4] == 't' ? "PyT" : "RMM")));
    EXPECT_EQ(Hotpack({"compare", kData + file, "--peers", "pytorch"}).code, 0);
    EXPECT_EQ(Hotpack({"pack", kData + file}).code, 0);
    EXPECT_EQ(Hotpack({"report", kData + file, "-o", Path("out.html"), "--force"}).code, 0);
    EXPECT_EQ(Hotpack({"export", kData + file, "--format", "chrome", "-o", Path("out.json"), "--force"}).code, 0);
  }
  for (const char* command : {"show", "compare", "pack", "replay", "report"}) {
    const Outcome zip = Hotpack({command, Write("model.pt", "PK\x03\x04 and so on")});
    EXPECT_EQ(zip.code, 2);
    EXPECT_THAT(zip.err, HasSubstr("model.pt: is a zip archive, such as torch.save writes")) << command;
  }
  ExpectRefused({"show", Write("job.gz", "\x1f\x8b\x08")},
                "hotpack show: " + Path("job.gz") + ": is compressed by gzip: unpack it first");
  for (const char* command : {"show", "compare", "pack", "report"}) {
    ExpectRefused({command, Write("random.bin", std::string("\xb0\x03,\x0a\xff\x00\x07", 7))},
                  std::string("hotpack ") + command + ": " + Path("random.bin") +
                      ": is neither a recording nor a snapshot, and no text such as a CSV");
    ExpectRefused({command, Write("empty", "")},
                  std::string("hotpack ") + command + ": " + Path("empty") + ": is empty");
  }
  EXPECT_THAT(Hotpack({"pack", Write("accents.csv",
                                     "id,lower,upper,gr\xc3\xb6\xc3\x9f"
                                     "e\n0,3,5,8\n")})
                  .err,
              HasSubstr("there is no column 'gr"));
  EXPECT_THAT(Hotpack({"compare", Write("i.csv", "id,lower,upper,size\n0,3,5,8\n")}).err,
              HasSubstr("is a packing instance, no recording: hotpack pack"));
}

TEST_F(CommandTest, AThresholdForChecks) {
  EXPECT_EQ(Hotpack({"show", kData + "cnn-carried.csv", "--fail-above", "1G"}).code, 0);
  const Outcome above = Hotpack({"show", kData + "cnn-carried.csv", "--fail-above", "1M"});
  EXPECT_EQ(above.code, 1);
  EXPECT_THAT(above.out, StartsWith("format         event CSV\n"));
  EXPECT_THAT(above.err, MatchesRegex("hotpack show: .*cnn-carried.csv: the live peak, [0-9.]+ MiB, is above 1M\n"));
  ExpectRefused({"show", kData + "cnn-carried.csv", "--fail-above", "lots"},
                "hotpack show: --fail-above: 'lots' is no size such as 4096, 512K, 300M or 2G");
}

// A block more, and one that is larger.
TEST_F(CommandTest, TwoRecordingsCompared) {
  const std::string first = Write("first.csv", "event,id,bytes\nalloc,1,1048576\nalloc,2,512\nfree,2,\n");
  const std::string second =
      Write("second.csv", "event,id,bytes\nalloc,1,1048576\nalloc,2,2097152\nalloc,3,512\nfree,2,\n");
  const Outcome outcome = Hotpack({"diff", first, second});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("live peak                   1.0 MiB      3.0 MiB      +2.0 MiB\n"));
  EXPECT_THAT(outcome.out, HasSubstr("  0 -> 1 blocks, 0 B -> 2.0 MiB  2.0 MiB to 4.0 MiB  only in the second\n"));
  EXPECT_THAT(outcome.out, testing::Not(HasSubstr("1.0 MiB to 2.0 MiB")));
  const auto object = nlohmann::json::parse(Hotpack({"diff", first, second, "--json"}).out);
  EXPECT_EQ(object["second"]["live_peak"], 3146240);
  EXPECT_TRUE(object["peak_by_line"].is_null()) << "no stacks";
  const Outcome same = Hotpack({"diff", first, first});
  EXPECT_THAT(same.out, HasSubstr("same\n"));
  EXPECT_THAT(same.out, testing::Not(HasSubstr("by size")));
  const auto lines = nlohmann::json::parse(Hotpack({"diff", kData + "mlp-torch.pickle", first, "--json"}).out);
  EXPECT_TRUE(lines["peak_by_line"].is_null());
  ExpectRefused({"diff", first, Path("none")}, "hotpack diff: " + Path("none") + ": No such file or directory");
}

}  // namespace
