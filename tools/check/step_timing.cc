// Times a request of every allocator in the same run. The machine's state drifts, so the allocators take turns.
#include <map>

#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "timing";
constexpr char kPair[] = "pair";  // request_bench's figure: nanoseconds per allocation and its release

struct Contender {
  const char* name;
  const char* allocator;
  bool hotpack;
};

constexpr Contender kContenders[] = {
    {"cuda", "cuda", false},          {"cuda-async", "cuda-async", false},          {"hotpack-api", "hotpack", false},
    {"cuda-preloaded", "cuda", true}, {"cuda-async-preloaded", "cuda-async", true},
};

// {dividend, divisor}: how many times longer the first one takes.
constexpr const char* kRatios[][2] = {
    {"cuda", "hotpack-api"},       {"cuda", "cuda-preloaded"},
    {"cuda-async", "hotpack-api"}, {"cuda-async", "cuda-async-preloaded"},
    {"cuda", "cuda-async"},
};

using Samples = std::map<std::string, std::vector<double>>;

// Returns the median of one run in nanoseconds; 0 if it failed.
double RunOnce(Session& session, const Contender& contender, int round) {
  Job job;
  job.name = "round" + std::to_string(round) + "/" + contender.name;
  job.command = {session.kit().Program("request_bench"),
                 "--allocator",
                 contender.allocator,
                 "--json",
                 "--iterations",
                 session.tiny()   ? "20"
                 : session.full() ? "400"
                                  : "100"};
  job.hotpack = contender.hotpack;
  job.limit = 60;
  job.tells_findings = true;
  const Step* step = session.Run(kGroup, job);
  if (step == nullptr || step->Failed()) return 0;
  for (const Figure& figure : step->figures) {
    if (figure.name == kPair) return figure.median;
  }
  return 0;
}

}  // namespace

void RunTiming(Session& session) {
  if (!session.kit().Has("request_bench")) {
    session.Skip(kGroup, "all", "bin/request_bench is not here");
    return;
  }
  const int rounds = session.tiny() ? 2 : session.full() ? 9 : 5;
  Samples pairs, ratios;
  constexpr int kCount = std::size(kContenders);
  for (int round = 0; round < rounds; ++round) {
    std::map<std::string, double> of_round;
    for (int i = 0; i < kCount; ++i) {
      const Contender& contender = kContenders[(i + round) % kCount];  // a different one is first each round
      const double median = RunOnce(session, contender, round);
      if (median <= 0) continue;
      of_round[contender.name] = median;
      pairs[contender.name].push_back(median);
    }
    for (const auto& [dividend, divisor] : kRatios) {
      if (of_round.count(dividend) == 0 || of_round.count(divisor) == 0) continue;
      ratios[std::string(dividend) + " over " + divisor].push_back(of_round[dividend] / of_round[divisor]);
    }
  }
  Step* step = pairs.empty() ? nullptr : session.Add(kGroup, "rounds");
  for (const auto& [name, samples] : pairs) step->AddFigure(name, "ns a pair", samples);
  for (const auto& [name, samples] : ratios) step->AddFigure(name, "ratio", samples);
  RunTorchRequests(session, step);
}

}  // namespace hotpack::check
