// How well an envelope of the iterations seen serves jobs whose iterations differ (runtime/script/envelope.h).
//   envelope_bench [--headroom X] [--growth X] [--pack-limit SECONDS] [--iterations] [--engine [--without-envelopes]]
//                  RECORDING...
// Plays each recording (event CSV or trace with marks) and prints the share of requests that get a planned place, from
// the sixth iteration on and in the last third of the iterations, and which of them get another entry's place.
// --engine: plays them on the engine instead.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "bench/envelope_player.h"
#include "profiler/trace_file.h"
#include "tools/compare/engine_replay.h"

namespace {

using hotpack::EnvelopeIterationFigures;
using hotpack::EnvelopePlay;

constexpr size_t kLearning = 5;  // iterations

double MiB(uint64_t units) { return static_cast<double>(units) / 2048; }

EnvelopeIterationFigures Sum(const std::vector<EnvelopeIterationFigures>& iterations, size_t from) {
  EnvelopeIterationFigures sum;
  for (size_t i = from; i < iterations.size(); ++i) sum += iterations[i];
  return sum;
}

// Of 100.
double Percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

void PrintIterations(const EnvelopePlay& play) {
  std::printf(
      "| iteration | requests | planned, %% | at another place | unknown | without a place | too large | displaced | "
      "mistaken |\n");
  std::printf("|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (size_t i = 0; i < play.iterations.size(); ++i) {
    const EnvelopeIterationFigures& each = play.iterations[i];
    std::printf("| %zu | %zu | %.2f | %zu | %zu | %zu | %zu | %zu | %zu |\n", i, size_t{each.requests},
                Percent(each.planned, each.requests), size_t{each.alternative}, size_t{each.unknown},
                size_t{each.unplaced}, size_t{each.too_large}, size_t{each.displaced}, size_t{each.mistaken});
  }
}

void PrintRow(const std::string& name, const EnvelopePlay& play) {
  const EnvelopeIterationFigures all = Sum(play.iterations, kLearning);
  const EnvelopeIterationFigures last = Sum(play.iterations, play.iterations.size() * 2 / 3);
  const hotpack::EnvelopePlan plan = play.plans.empty() ? hotpack::EnvelopePlan{} : play.plans.back();
  const uint64_t answers = play.expected + play.beam;
  std::printf(
      "| %s | %zu | %zu | %.2f | %.2f | %.2f | %zu (%.1f) | %.1f | %.1f | %.1f | %.0f | %.0f | %.1f |\n", name.c_str(),
      play.iterations.size(), size_t{play.entries}, Percent(all.planned, all.requests),
      Percent(last.planned, last.requests), Percent(all.alternative, all.requests), play.plans.size(),
      1 + std::log2(static_cast<double>(std::max<size_t>(1, play.iterations.size()))), MiB(plan.height_units),
      MiB(plan.load_units), MiB(Sum(play.iterations, 0).live_units), Percent(play.expected, answers),
      static_cast<double>(play.follow_ns) / static_cast<double>(std::max<uint64_t>(1, answers)),
      static_cast<double>(play.merge_ns) / 1e6 / static_cast<double>(std::max<size_t>(1, play.iterations.size())));
}

// --- the engine ------------------------------------------------------------------------------------------------------

struct EnginePlay {
  std::string name;
  bool envelopes = false;
  hotpack::EngineReplay replay;
};

hotpack::EngineIteration Sum(const std::vector<hotpack::EngineIteration>& iterations, size_t from) {
  hotpack::EngineIteration sum;
  for (size_t i = from; i < iterations.size(); ++i) {
    sum.requests += iterations[i].requests;
    sum.planned += iterations[i].planned;
    sum.held_peak = std::max(sum.held_peak, iterations[i].held_peak);
    sum.live_peak = std::max(sum.live_peak, iterations[i].live_peak);
  }
  return sum;
}

void PrintIterations(const EnginePlay& play) {
  std::printf("%s, %s envelopes\n\n", play.name.c_str(), play.envelopes ? "with" : "without");
  std::printf(
      "| iteration | requests | planned, %% | held, MiB | live, MiB | plans |\n|---:|---:|---:|---:|---:|---:|\n");
  for (size_t i = 0; i < play.replay.iterations.size(); ++i) {
    const hotpack::EngineIteration& each = play.replay.iterations[i];
    std::printf("| %zu | %zu | %.2f | %.1f | %.1f | %zu |\n", i, size_t{each.requests},
                Percent(each.planned, each.requests), MiB(each.held_peak / 512), MiB(each.live_peak / 512),
                size_t{each.plans});
  }
  std::printf("\n");
}

void PrintRow(const EnginePlay& play) {
  const auto& iterations = play.replay.iterations;
  const hotpack::EngineIteration run = Sum(iterations, 0), learnt = Sum(iterations, kLearning),
                                 last = Sum(iterations, iterations.size() * 2 / 3);
  std::printf("| %s | %s | %zu | %.2f | %.2f | %zu (%.1f) | %.1f | %.1f | %.1f | %.1f | %.0f |\n", play.name.c_str(),
              play.envelopes ? "yes" : "no", iterations.size(), Percent(learnt.planned, learnt.requests),
              Percent(last.planned, last.requests), iterations.empty() ? size_t{0} : size_t{iterations.back().plans},
              1 + std::log2(static_cast<double>(std::max<size_t>(1, iterations.size()))), MiB(run.held_peak / 512),
              MiB(run.live_peak / 512), MiB(last.held_peak / 512), MiB(last.live_peak / 512),
              static_cast<double>(play.replay.planning_ns) / 1e6);
}

void PlayOnEngine(const std::vector<std::pair<std::string, hotpack::Trace>>& traces, bool envelopes, bool iterations) {
  std::vector<EnginePlay> plays;
  for (const auto& [name, trace] : traces) {
    plays.push_back({name, envelopes,
                     hotpack::ReplayOnEngine(trace, hotpack::TakeRecording(trace), /*capacity=*/0, {}, envelopes)});
    if (iterations) PrintIterations(plays.back());
  }
  std::printf(
      "| recording | envelopes | iterations | planned, %% | ... in the last third | plans (limit) | held, MiB "
      "| live, MiB | held in the last third | live in it | planning, ms |\n");
  std::printf("|:---|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const EnginePlay& play : plays) PrintRow(play);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How well an envelope of the iterations seen serves jobs whose iterations differ");
  hotpack::EnvelopeSettings options;
  double pack_seconds = 1;
  bool iterations = false, engine = false, without = false;
  std::vector<std::string> paths;
  app.add_option("--headroom", options.limits.headroom, "Factor of the sizes that have changed")
      ->check(CLI::Range(1.0, 4.0));
  app.add_option("--growth", options.limits.load_growth, "Factor of the load that a merge may cost")
      ->check(CLI::Range(1.0, 100.0));
  app.add_option("--pack-limit", pack_seconds, "Seconds for a placement")->check(CLI::Range(0.001, 3600.0));
  app.add_flag("--iterations", iterations, "A row for each iteration, too");
  app.add_flag("--engine", engine, "Plays them on the engine, which has its own settings")
      ->excludes("--headroom", "--growth", "--pack-limit");
  app.add_flag("--without-envelopes", without, "... with envelopes switched off")->needs("--engine");
  app.add_option("recording", paths, "Recordings")->required()->check(CLI::ExistingFile);
  CLI11_PARSE(app, argc, argv);
  options.pack_ns = static_cast<int64_t>(pack_seconds * 1e9);
  std::vector<std::pair<std::string, EnvelopePlay>> plays;
  std::vector<std::pair<std::string, hotpack::Trace>> traces;
  for (const std::string& path : paths) {
    const absl::StatusOr<hotpack::TraceFile> read = hotpack::LoadTrace(path);
    if (!read.ok()) {
      std::fprintf(stderr, "envelope_bench: %s\n", std::string(read.status().message()).c_str());
      return 2;
    }
    if (engine) {
      traces.emplace_back(std::filesystem::path(path).stem(), read->trace);
      continue;
    }
    plays.emplace_back(std::filesystem::path(path).stem(), hotpack::PlayEnvelope(read->trace, options));
    if (iterations) {
      std::printf("%s\n\n", plays.back().first.c_str());
      PrintIterations(plays.back().second);
      std::printf("\n");
    }
  }
  if (engine) {
    PlayOnEngine(traces, !without, iterations);
    return 0;
  }
  std::printf(
      "| recording | iterations | entries | planned, %% | ... in the last third | ... at another place, %% | plans "
      "(limit) | height, MiB |");
  std::printf(" bound, MiB | live peak, MiB | expected, %% | ns a request | ms a merge |\n");
  std::printf("|:---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const auto& [name, play] : plays) PrintRow(name, play);
  return 0;
}
