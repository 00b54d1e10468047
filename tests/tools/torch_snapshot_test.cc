// With PyTorch itself: the recording of its caching allocator is imported completely, and its own viewers open the
// exported file. Needs a Python with torch: HOTPACK_TORCH_PYTHON, else the build's torch-venv, else python3.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/subprocess.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using hotpack_test::RunProgram;
using ::testing::HasSubstr;

Outcome Hotpack(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  return RunProgram(arguments, {{"LD_PRELOAD", ""}});
}

std::string FindTorch() {
  const char* chosen = std::getenv("HOTPACK_TORCH_PYTHON");
  for (const std::string& python : {std::string(chosen == nullptr ? "" : chosen),
                                    std::string(HOTPACK_BINARY_DIR "/torch-venv/bin/python"), std::string("python3")}) {
    const char* has_torch = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
    if (!python.empty() && RunProgram({"/bin/sh", "-c", "\"$0\" -c \"$1\"", python, has_torch}).code == 0) {
      return python;
    }
  }
  return "";
}

// Empty if there is none.
const std::string& TorchPython() {
  static const std::string python = FindTorch();
  return python;
}

class TorchSnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TorchPython().empty()) GTEST_SKIP() << "no Python with torch (HOTPACK_TORCH_PYTHON says where one is)";
  }
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  hotpack_test::TemporaryDirectory folder_;
};

TEST_F(TorchSnapshotTest, WhatPyTorchRecordsIsImported) {
  const std::string simgpu = HOTPACK_SIMGPU_DIR;
  std::string preload;
  for (const char* library : {"libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13"}) {
    if (!std::filesystem::exists(simgpu + "/" + library)) GTEST_SKIP() << "no simulated " << library << " was built";
    preload.append(preload.empty() ? "" : ":").append(simgpu).append("/").append(library);
  }
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--entries", "300", "--streams"}, {"--strip", "--steps", "3"}}) {
    const std::string snapshot = Path("s.pickle"), trace = Path("s.trace");
    std::vector<std::string> command = {TorchPython(), HOTPACK_SOURCE_DIR "/tests/data/make_snapshot.py", snapshot};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome recorded = RunProgram(command, {{"LD_PRELOAD", preload}, {"LD_LIBRARY_PATH", simgpu}});
    ASSERT_EQ(recorded.code, 0) << recorded.err;
    const auto facts = nlohmann::json::parse(recorded.out);
    ASSERT_GT(facts["allocations"].get<int>(), 50);
    EXPECT_EQ(facts["live_before"].get<int>() > 0, !options.empty() && options[0] == "--entries");

    const Outcome imported = Hotpack({"import", snapshot, "-o", trace, "--force"});
    ASSERT_EQ(imported.code, 0) << imported.err;
    EXPECT_THAT(imported.err, HasSubstr(": " + facts["allocations"].dump() + " allocations"));
    EXPECT_THAT(imported.err, HasSubstr(", " + facts["not_released"].dump() + " not released\n"));
    const Outcome shown = Hotpack({"show", "--json", trace});
    ASSERT_EQ(shown.code, 0) << shown.err;
    const auto figures = nlohmann::json::parse(shown.out);
    EXPECT_EQ(figures["requests"], facts["allocations"].get<int>() + facts["live_before"].get<int>()) << shown.out;
    EXPECT_EQ(figures["releases"], facts["releases"]) << shown.out;
    EXPECT_EQ(figures["streams"], facts["streams"]) << shown.out;
  }
}

// Runs each command of python -m torch.cuda._memory_viz in one interpreter. flamegraph.pl, which two of them would
// fetch, is replaced by one that prints its input.
constexpr char kView[] = R"(
import os, runpy, sys, warnings
warnings.simplefilter('ignore')
snapshot, folder = sys.argv[1:]
import torch
for command, output in (('trace', None), ('stats', None), ('trace_plot', 'trace.html'),
                        ('segment_plot', 'segment.html'), ('memory', 'memory.svg'), ('segments', 'segments.svg')):
    sys.argv = ['_memory_viz', command, snapshot] + (['-o', os.path.join(folder, output)] if output else [])
    runpy.run_module('torch.cuda._memory_viz', run_name='__main__')
)";

TEST_F(TorchSnapshotTest, PyTorchsViewersOpenWhatIsExported) {
  std::filesystem::create_directories(Path(".cache"));
  std::ofstream(Path(".cache/flamegraph.pl")) << "#!/bin/sh\nexec cat\n";
  std::filesystem::permissions(Path(".cache/flamegraph.pl"), std::filesystem::perms::owner_all);
  for (const std::string file : {"mlp-adam.trace", "lstm.csv"}) {
    const std::string snapshot = Path("s.pickle");
    ASSERT_EQ(Hotpack({"export", HOTPACK_SOURCE_DIR "/tests/data/" + file, "--format", "torch-snapshot", "-o", snapshot,
                       "--force"})
                  .code,
              0);
    const Outcome seen = RunProgram({TorchPython(), "-c", kView, snapshot, folder_.path()}, {{"HOME", folder_.path()}});
    ASSERT_EQ(seen.code, 0) << seen.err;
    EXPECT_THAT(seen.out, HasSubstr("Device 0 ----------------\n"));
    EXPECT_THAT(seen.out, HasSubstr("\na = cudaMalloc("));
    EXPECT_THAT(seen.out, HasSubstr("\nb = a[0:"));
    EXPECT_THAT(seen.out, HasSubstr("\nsegments: 1\n"));
    for (const char* plot : {"trace.html", "segment.html"})
      EXPECT_THAT(ReadFile(Path(plot)), HasSubstr("snapshot.pickle"));
    EXPECT_THAT(ReadFile(Path("segments.svg")), HasSubstr("stream_0;seg_139637976727552;"));
    EXPECT_EQ(ReadFile(Path("memory.svg")).find("active_allocated") != std::string::npos, file == "mlp-adam.trace");
  }
}

}  // namespace
