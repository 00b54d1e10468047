// Compares the launch and range collectors with the training programs' own records: which work uses each block first
// and last, and the numbers of steps and evaluations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "profiler/trace_file.h"
#include "profiler/uses.h"
#include "tests/support/subprocess.h"
#include "tools/recording/demangle.h"

namespace {

using hotpack::BlockUses;
using hotpack::RangeKind;
using hotpack::TraceFile;
using hotpack::Uses;
using hotpack_test::Outcome;
using hotpack_test::TemporaryDirectory;
using Command = std::vector<std::string>;

Command Split(const std::string& text, char at) {
  std::istringstream in(text);
  Command words;
  for (std::string word; std::getline(in, word, at);) words.push_back(word);
  return words;
}

// The program's line about a block.
struct Known {
  uint64_t bytes = 0;
  int64_t uses = 0, first = 0, last = 0;
  std::string first_what, last_what;
};

std::vector<Known> ReadKnown(const std::string& path) {
  std::vector<Known> blocks;
  for (const std::string& line : Split(hotpack_test::ReadFile(path), '\n')) {
    Command fields = Split(line, '\t');
    fields.resize(6);
    blocks.push_back({std::stoull(fields[0]), std::stoll(fields[1]), std::stoll(fields[2]), std::stoll(fields[3]),
                      fields[4], fields[5]});
  }
  return blocks;
}

// The function that a launch runs for each index, out of __PRETTY_FUNCTION__ ("... [with auto Function = a::b::F;
// ...]"), the demangled kernel ("void ...::ForEachIndex<&...::F, ...>") or the name that NVIDIA's compiler writes out
// for it.
std::string FunctionOf(const std::string& name) {
  if (name.rfind("memcpy", 0) == 0) return name;
  for (const std::string begin : {"Function = ", "ForEachIndex<"}) {
    const size_t at = name.find(begin);
    if (at == std::string::npos) continue;
    std::string rest = name.substr(at + begin.size());
    for (const std::string hidden : {"(anonymous namespace)::", "{anonymous}::", "<unnamed>::"}) {
      for (size_t i; (i = rest.find(hidden)) != std::string::npos;) rest.erase(i, hidden.size());
    }
    rest = rest.substr(0, rest.find_first_of(";,(>"));
    const size_t colon = rest.rfind("::");
    return colon == std::string::npos ? rest : rest.substr(colon + 2);
  }
  return name;
}

class TrainUses : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {
 protected:
  Outcome Run(const Command& run_options, const Command& options) {
    const auto& [program, allocator, streams] = GetParam();
    Command command = {HOTPACK_COMMAND, "run", "--simulate", "--trace", trace_};
    command.insert(command.end(), run_options.begin(), run_options.end());
    command.push_back("--");
    const Command words = Split(program, ' ');
    command.push_back(std::string(HOTPACK_BINARY_DIR "/bin/") + words.front());
    command.insert(command.end(), words.begin() + 1, words.end());
    command.insert(command.end(), {"--allocator", allocator, "--streams", streams});
    command.insert(command.end(), options.begin(), options.end());
    return hotpack_test::RunProgram(command, {{"HOTPACK", ""}, {"LD_LIBRARY_PATH", ""}, {"NVTX_INJECTION64_PATH", ""}});
  }
  TraceFile Load() {
    absl::StatusOr<TraceFile> file = hotpack::LoadTrace(trace_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : TraceFile{};
  }
  std::string NameOf(const TraceFile& file, uint64_t launch) {
    const hotpack::NameOrdinal name = file.notes.launches[launch].name;
    return name == hotpack::kNoName ? "" : FunctionOf(hotpack::Demangled(file.notes.names[name]));
  }

  const TemporaryDirectory directory_;
  const std::string trace_ = directory_.path() + "/trace", uses_ = directory_.path() + "/uses";
};

std::vector<std::string> Programs() { return Split(HOTPACK_TRAIN_PROGRAMS, '|'); }

INSTANTIATE_TEST_SUITE_P(All, TrainUses,
                         testing::Combine(testing::ValuesIn(Programs()),
                                          testing::Values("cuda", "cuda-async", "hotpack"), testing::Values("1", "2")),
                         [](const auto& param) {
                           std::string name = Split(std::get<0>(param.param), ' ').front() + "_" +
                                              std::get<1>(param.param) + "_" + std::get<2>(param.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST_P(TrainUses, FirstAndLastUses) {
  const Outcome outcome =
      Run({"--launches"}, {"--steps", "12", "--epochs", "1", "--evaluations", "1", "--uses", uses_});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::vector<Known> known = ReadKnown(uses_);
  const TraceFile file = Load();
  const Uses uses = hotpack::FindUses(file.trace, file.notes);
  ASSERT_GT(known.size(), 100u);
  ASSERT_EQ(uses.blocks.size(), known.size());
  std::map<int64_t, uint64_t> same;  // ordinals of work in the program's log and in the recording
  for (size_t i = 0; i < known.size(); ++i) {
    const BlockUses& block = uses.blocks[i];
    ASSERT_EQ(block.bytes, known[i].bytes) << "block " << i;
    ASSERT_EQ(block.count, static_cast<uint64_t>(known[i].uses)) << "block " << i;
    if (block.count == 0) continue;
    const uint64_t first = uses.launches[block.first], last = uses.launches[block.first + block.count - 1];
    EXPECT_EQ(NameOf(file, first), FunctionOf(known[i].first_what)) << "block " << i;
    EXPECT_EQ(NameOf(file, last), FunctionOf(known[i].last_what)) << "block " << i;
    EXPECT_EQ(same.emplace(known[i].first, first).first->second, first) << "block " << i;
    EXPECT_EQ(same.emplace(known[i].last, last).first->second, last) << "block " << i;
    EXPECT_GE(uses.FirstUse(block, file.notes), block.allocated + 1);
    EXPECT_LE(uses.LastUse(block, file.notes), block.released);
  }
  // Work in the program's order is work in the recording's.
  uint64_t before = 0;
  for (const auto& [ordinal, launch] : same) {
    EXPECT_GE(launch, before);
    before = launch;
  }
}

TEST_P(TrainUses, Ranges) {
  const Outcome outcome = Run({"--iteration-range", "step", "--interrupt-range", "eval*"},
                              {"--steps", "7", "--epochs", "3", "--evaluations", "2"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const TraceFile file = Load();
  std::vector<std::string> names;
  int depth = 0;
  for (const hotpack::RangeEdge& edge : file.notes.ranges) {
    if (edge.kind == RangeKind::kPush) names.push_back(file.notes.names[edge.name]);
    depth += edge.kind == RangeKind::kPush ? 1 : -1;
    ASSERT_GE(depth, 0);
    ASSERT_LE(depth, 1);
  }
  EXPECT_EQ(depth, 0);
  std::vector<std::string> expected;
  for (int epoch = 0; epoch < 3; ++epoch) {
    expected.insert(expected.end(), 7, "step");
    expected.push_back("evaluation");
  }
  EXPECT_EQ(names, expected);
  std::map<hotpack::EventKind, int> events;
  for (const hotpack::Event& event : file.trace.events) ++events[event.kind];
  EXPECT_EQ(events[hotpack::EventKind::kMark], 21);
  EXPECT_EQ(events[hotpack::EventKind::kInterrupt], 3);
  EXPECT_EQ(events[hotpack::EventKind::kResume], 3);
  EXPECT_TRUE(file.notes.launches.empty());  // not asked for
}

}  // namespace
