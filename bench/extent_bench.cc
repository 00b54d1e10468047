// The physical memory that hotpack's arena holds, and the calls that this takes, by the largest handle.
//   extent_bench [--scale N] [--repeat N] [--extents MIB,MIB] [--share N] RECORDING...
// Plays each recording (event CSV or trace) on the engine and a device without memory. --scale multiplies all sizes, so
// that a recorded step has the memory of a larger batch.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/trace_file.h"
#include "tools/compare/engine_replay.h"
#include "tools/replay/repeat_step.h"

int main(int argc, char** argv) {
  CLI::App app("The memory that hotpack's arena holds, by the largest handle");
  uint64_t scale = 1, repeat = 6, share = hotpack::ExtentLimits().share;
  std::vector<uint64_t> extents = {2, hotpack::ExtentLimits().bytes >> 20};
  std::vector<std::string> paths;
  app.add_option("--scale", scale, "Factor of all sizes")->check(CLI::Range(1, 1024));
  app.add_option("--repeat", repeat, "How many times more the last step is played")->check(CLI::Range(0, 1000));
  app.add_option("--extents", extents, "MiB that one handle has at most, powers of two")->delimiter(',');
  app.add_option("--share", share, "One handle has at most 1/share of the memory held")->check(CLI::Range(1, 1 << 20));
  app.add_option("recording", paths, "Recordings")->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  std::printf("| recording | scale | handles up to, MiB | held at most, MiB | held while served, MiB |");
  std::printf(" created | mapped | set access |\n|:---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const std::string& path : paths) {
    const absl::StatusOr<hotpack::TraceFile> read = hotpack::LoadTrace(path);
    if (!read.ok()) {
      std::fprintf(stderr, "extent_bench: %s\n", std::string(read.status().message()).c_str());
      return 2;
    }
    hotpack::Trace trace = hotpack::RepeatSteadyStep(read->trace, repeat);
    for (hotpack::Event& event : trace.events) event.bytes *= scale;
    for (const uint64_t extent : extents) {
      const hotpack::EngineReplay replay =
          hotpack::ReplayOnEngine(trace, hotpack::TakeRecording(trace), 0, {extent << 20, share});
      std::printf("| %s | %zu | %zu | %.0f | %.0f | %zu | %zu | %zu |\n", std::filesystem::path(path).stem().c_str(),
                  size_t{scale}, size_t{extent}, static_cast<double>(replay.reserved_peak) / (1 << 20),
                  static_cast<double>(replay.reserved_steady) / (1 << 20), size_t{replay.creates}, size_t{replay.maps},
                  size_t{replay.accesses});
      std::fflush(stdout);
    }
  }
  return 0;
}
