// request_threads: requests per second of several threads on one device's arena, compared with one thread's.
//
// The engine runs on a device of addresses without memory. So the figures are its own: the lock and the work under it.
// In each run one thread and several take turns, so that a noisy machine disturbs both alike.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/thread_job.h"
#include "tools/check/findings.h"

namespace hotpack::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Settings {
  std::vector<int> threads = {1, 8};
  std::string workload = "script";
  double seconds = 0.2;
  int runs = 5;
  int held = 1;
  bool json = false;
};

struct Rate {
  double per_second = 0;  // pairs of a request and its release
  double planned = 0;     // share of the requests served by script
  double slowest = 0;     // the slowest thread's pairs over the mean
};

class Threads {
 public:
  Threads(bool script, int held) : job_(script, static_cast<size_t>(held)) {}

  void WarmUp(int threads) { job_.WarmUp(static_cast<size_t>(threads)); }

  Rate Measure(int threads, double seconds) {
    const hotpack_stats before = job_.engine().Stats();
    std::vector<uint64_t> pairs(static_cast<size_t>(threads), 0);
    std::atomic<bool> start{false}, stop{false};
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        while (!start) std::this_thread::yield();
        pairs[static_cast<size_t>(t)] = Work(stop, static_cast<uint64_t>(t));
      });
    }
    const Clock::time_point begin = Clock::now();
    start = true;
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
    for (std::thread& worker : workers) worker.join();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    const hotpack_stats after = job_.engine().Stats();
    uint64_t sum = 0;
    for (uint64_t count : pairs) sum += count;
    Rate rate;
    rate.per_second = static_cast<double>(sum) / took;
    rate.planned =
        static_cast<double>(after.planned - before.planned) / static_cast<double>(after.requests - before.requests);
    rate.slowest =
        static_cast<double>(*std::min_element(pairs.begin(), pairs.end())) * threads / static_cast<double>(sum);
    return rate;
  }

  bool failed() const { return job_.failed(); }

 private:
  uint64_t Work(const std::atomic<bool>& stop, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<DeviceAddress> live(job_.held(), 0);
    uint64_t pairs = 0;
    for (; !stop.load(std::memory_order_relaxed); ++pairs) job_.Replace(&live[pairs % live.size()], &random);
    for (DeviceAddress address : live) {
      if (address != 0) job_.engine().Release(address, 0);
    }
    return pairs;
  }

  ThreadJob job_;
};

// The samples of one number of threads, one per run.
struct Samples {
  std::vector<double> ns, ratio, planned, slowest;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void PrintText(const Settings& settings, const std::vector<Samples>& samples) {
  for (size_t i = 0; i < samples.size(); ++i) {
    const Samples& of = samples[i];
    printf(
        "%s: %d threads %8.1f ns a pair, %5.2f of the rate of %d (%.2f to %.2f), %5.1f %% by script, slowest thread "
        "%.2f of the mean\n",
        settings.workload.c_str(), settings.threads[i], Median(of.ns), Median(of.ratio), settings.threads[0],
        *std::min_element(of.ratio.begin(), of.ratio.end()), *std::max_element(of.ratio.begin(), of.ratio.end()),
        100 * Median(of.planned), Median(of.slowest));
  }
}

// For gpu_check.
void PrintJson(const Settings& settings, const std::vector<Samples>& samples) {
  nlohmann::ordered_json json = {{"program", "request_threads"}, {"findings", nlohmann::ordered_json::array()}};
  for (size_t i = 0; i < samples.size(); ++i) {
    const std::string threads = std::to_string(settings.threads[i]) + " threads";
    json["figures"].push_back(ToJson(check::Summarize(threads, "ns a pair", samples[i].ns)));
    if (i == 0) continue;
    json["figures"].push_back(ToJson(check::Summarize(threads + " over " + std::to_string(settings.threads[0]),
                                                      "times the rate", samples[i].ratio)));
  }
  printf("%s\n", json.dump().c_str());
}

int Run(const Settings& settings) {
  const int most = *std::max_element(settings.threads.begin(), settings.threads.end());
  std::vector<std::vector<Rate>> rates(settings.threads.size());
  for (int run = 0; run < settings.runs; ++run) {
    Threads threads(settings.workload == "script", settings.held);
    threads.WarmUp(most);
    for (size_t i = 0; i < settings.threads.size(); ++i) {
      rates[i].push_back(threads.Measure(settings.threads[i], settings.seconds));
    }
    if (threads.failed()) {
      fprintf(stderr, "request_threads: a request failed\n");
      return 1;
    }
  }
  std::vector<Samples> samples(settings.threads.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    for (int run = 0; run < settings.runs; ++run) {
      const Rate& rate = rates[i][static_cast<size_t>(run)];
      samples[i].ns.push_back(1e9 / rate.per_second);
      samples[i].ratio.push_back(rate.per_second / rates[0][static_cast<size_t>(run)].per_second);
      samples[i].planned.push_back(rate.planned);
      samples[i].slowest.push_back(rate.slowest);
    }
  }
  settings.json ? PrintJson(settings, samples) : PrintText(settings, samples);
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Requests a second of several threads on one device, against one thread's", "request_threads");
  app.add_option("--threads", settings.threads, "Numbers of threads; the first is what the others are compared with")
      ->delimiter(',')
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--workload", settings.workload, "script (one size: all by script) or mixed (drawn sizes: none)")
      ->check(CLI::IsMember({"script", "mixed"}))
      ->capture_default_str();
  app.add_option("--seconds", settings.seconds, "Of each measurement")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  app.add_option("--held", settings.held, "Blocks that a thread has at a time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--runs", settings.runs, "Medians are taken over these")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_flag("--json", settings.json, "Print figures as gpu_check reads them (docs/gpu_check.md)");
  CLI11_PARSE(app, argc, argv);
  return Run(settings);
}

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::Main(argc, argv); }
