// request_bench: the cost of a request and its release through cudaMalloc, cudaMallocAsync or hotpack.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/request_allocator.h"
#include "bench/request_player.h"
#include "bench/request_sequence.h"
#include "profiler/trace_file.h"
#include "tools/check/findings.h"

namespace hotpack::bench {
namespace {

using check::Figure;
using check::Finding;

constexpr int kExitFailed = 1;
constexpr int kExitBadInput = 2;

struct Settings {
  std::string allocator = "cuda";
  std::string trace;
  uint32_t blocks = 0;
  TimingOptions timing;
  bool json = false;
};

int Complain(int code, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  fprintf(stderr, "request_bench: %s\n", reason.c_str());
  return code;
}

// Returns the times of the sequence with this allocator. Returns no samples if a call failed, which *error names.
std::vector<double> TimeAllocator(const Settings& settings, const RequestSequence& sequence, const std::string& name,
                                  RequestDevice& device, Served* served, std::string* error) {
  const absl::StatusOr<RequestAllocator> allocator = device.Choose(name);
  if (!allocator.ok()) {
    *error = std::string(allocator.status().message());
    return {};
  }
  RequestPlayer player(sequence, *allocator, device);
  std::vector<double> samples = player.Time(settings.timing, served);
  if (samples.empty()) *error = player.error();
  player.ReleaseAll();
  return samples;
}

// Times the loop with an allocator that does nothing: the loop's own part of a pair's time. Nothing is used on the
// device.
std::vector<double> TimeLoop(const Settings& settings, const RequestSequence& sequence, RequestDevice& device,
                             std::string* error) {
  class NoDevice : public RequestDevice {
   public:
    absl::StatusOr<RequestAllocator> Choose(const std::string&) override { return RequestAllocator{}; }
    int Touch(void*, size_t) override { return 0; }
    int Synchronize() override { return 0; }
  } no_device;
  const absl::StatusOr<RequestAllocator> none = device.Choose("none");
  Served served;
  RequestPlayer player(sequence, *none, no_device);
  std::vector<double> samples = player.Time(settings.timing, &served);
  if (samples.empty()) *error = player.error();
  return samples;
}

struct Measured {
  Figure pair, loop;
  Served served;
};

std::vector<Finding> Judge(const Settings& settings, const Measured& measured) {
  std::vector<Finding> findings;
  const Served& served = measured.served;
  const std::string expected = "every timed request is served by script";
  if (served.present) {
    const bool all = served.by_script && served.requests > 0 && served.planned == served.requests;
    findings.push_back({"served_by_script", all ? check::Result::kPass : check::Result::kFail, expected,
                        std::to_string(served.planned) + " of " + std::to_string(served.requests)});
  } else if (settings.allocator == "hotpack") {
    findings.push_back(
        {"served_by_script", check::Result::kFail, expected, "hotpack answers no request of this process"});
  }
  return findings;
}

void PrintJson(const std::vector<Finding>& findings, const Measured& measured) {
  nlohmann::ordered_json json = {{"program", "request_bench"}};
  json["findings"] = nlohmann::ordered_json::array();
  for (const Finding& finding : findings) json["findings"].push_back(ToJson(finding));
  json["figures"] = {ToJson(measured.pair), ToJson(measured.loop),
                     ToJson(check::Summarize("warm_up", "iterations", {static_cast<double>(measured.served.warm_up)}))};
  printf("%s\n", json.dump().c_str());
}

void PrintText(const Settings& settings, const RequestSequence& sequence, const std::vector<Finding>& findings,
               const Measured& measured) {
  const Figure& pair = measured.pair;
  printf("%s: %llu pairs an iteration, live peak %.1f MiB, %zu samples after %llu iterations of warm-up\n",
         settings.allocator.c_str(), static_cast<unsigned long long>(sequence.pairs),
         static_cast<double>(sequence.live_peak) / (1 << 20), pair.samples,
         static_cast<unsigned long long>(measured.served.warm_up));
  if (sequence.held_to_end > 0) {
    printf("  blocks without a release in the recording  %llu (released at the iteration's end)\n",
           static_cast<unsigned long long>(sequence.held_to_end));
  }
  printf("  a request and its release   %10.1f ns (%.1f to %.1f)\n", pair.median, pair.low, pair.high);
  printf("  of that, the loop itself    %10.1f ns (%.1f to %.1f)\n", measured.loop.median, measured.loop.low,
         measured.loop.high);
  for (const Finding& finding : findings) {
    printf("  %s: %s; %s\n", check::ResultName(finding.result), finding.expected.c_str(), finding.seen.c_str());
  }
}

int Run(const Settings& settings) {
  RequestSequence sequence = settings.blocks > 0 ? GeneratedSequence(settings.blocks) : BuiltInSequence();
  if (!settings.trace.empty()) {
    const absl::StatusOr<TraceFile> file = LoadTrace(settings.trace);
    if (!file.ok()) return Complain(kExitBadInput, std::string(file.status().message()));
    absl::StatusOr<RequestSequence> read = SequenceOf(file->trace);
    if (!read.ok()) return Complain(kExitBadInput, settings.trace + ": " + std::string(read.status().message()));
    sequence = *std::move(read);
  }
  const absl::StatusOr<std::unique_ptr<RequestDevice>> device = RequestDevice::Open();
  if (!device.ok()) return Complain(kExitBadInput, std::string(device.status().message()));
  Measured measured;
  std::string error;
  const std::vector<double> loop = TimeLoop(settings, sequence, **device, &error);
  std::vector<double> pair;
  if (error.empty()) pair = TimeAllocator(settings, sequence, settings.allocator, **device, &measured.served, &error);
  if (loop.empty() || pair.empty()) return Complain(kExitFailed, settings.allocator + ": " + error);
  measured.pair = check::Summarize("pair", "ns", pair);
  measured.loop = check::Summarize("loop", "ns", loop);
  const std::vector<Finding> findings = Judge(settings, measured);
  if (settings.json) {
    PrintJson(findings, measured);
  } else {
    PrintText(settings, sequence, findings, measured);
  }
  const bool failed = std::any_of(findings.begin(), findings.end(),
                                  [](const Finding& finding) { return finding.result == check::Result::kFail; });
  return failed ? kExitFailed : 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Times a request and its release, over an iteration of a training job", "request_bench");
  app.add_option("--allocator", settings.allocator, "cuda, cuda-async or hotpack (the C interface)")
      ->check(CLI::IsMember({"cuda", "cuda-async", "hotpack"}))
      ->capture_default_str();
  app.add_option("--trace", settings.trace, "Play the steady step of this recording (default: a built-in step)")
      ->type_name("FILE");
  app.add_option("--blocks", settings.blocks, "Play a generated iteration of so many requests")
      ->excludes("--trace")
      ->check(CLI::Range(4, 4'000'000));
  app.add_option("--iterations", settings.timing.iterations, "Timed iterations")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--warm-up", settings.timing.warm_up, "Iterations before that, at least")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--launches", settings.timing.launches, "Use each block on the device in the timed iterations too");
  app.add_flag("--json", settings.json, "Findings and figures as one JSON object");
  app.footer("Example:\n  hotpack run -- request_bench --allocator cuda-async");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Complain(kExitBadInput, error.what());
  }
  return Run(settings);
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::Main(argc, argv); }
