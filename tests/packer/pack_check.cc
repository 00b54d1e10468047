// Checks the packer against a judge on random instances, by the million.
//
//   pack_check --instances 1000000 --seed 1 --max-blocks 7 --against brute
//
// --against brute   the reference solver (up to 16 blocks; beyond 8 some least heights stay open, known as a range)
//           exact   the exact search, itself checked: valid, the same for renumbered blocks and reversed time, and
//                   never above what a heuristic finds; on every eighth instance against the reference solver
//           cut     rectangles cut into pieces, whose packing is known
//
// Prints one line of counts (--json: one object) with exit code 0, or the first failing instance, reduced, with exit
// code 1. Instance i depends only on seed and i: --first I --instances 1 repeats one. An instance that crashes or does
// not end is named, too. Bad options: exit code 2.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "pack_checks.h"
#include "packer/random.h"
#include "reference_solver.h"
#include "small_instance.h"

namespace hotpack::testing {
namespace {

struct Settings {
  int64_t instances = 10'000;
  int64_t first = 0;
  uint64_t seed = 1;
  int max_blocks = 7;
  int threads = 2;
  std::string against = "brute";
  bool json = false;
  int64_t reference_steps = 20'000;  // some 2 ms; up to 8 blocks always enough
  CheckLimits limits;
};

struct Failure {
  int64_t index;
  Instance instance;
  uint64_t seed;
  Fault fault;
};

Truth TruthFromReference(const Settings& settings, const Instance& instance) {
  const bool whole = instance.blocks.size() <= 8;
  ReferenceResult result = Reference(instance, whole ? std::numeric_limits<int64_t>::max() : settings.reference_steps);
  return {result.least, std::move(result.placement)};
}

// What exact says, if it is a placement at all; the judge's load is all that is known from elsewhere.
Truth TruthFromExact(const Settings& settings, const Instance& instance) {
  PackOptions options;
  options.algorithm = Algorithm::kExact;
  options.time_limit_ns = settings.limits.exact_ns;
  PackResult result = Pack(instance, options);
  if (result.status != PackStatus::kOk || !ReferenceFault(instance, result.placement).empty()) {
    return TruthFromReference(settings, instance);  // the checks will find the same again
  }
  return {result.proven_optimal ? result.placement.height : ReferenceLoad(instance), std::move(result.placement)};
}

// The instance that this thread is at.
thread_local int64_t current_index = -1;

[[noreturn]] void EndWith(int64_t index, const char* what) {
  char line[100];
  const int length = std::snprintf(line, sizeof(line), "pack_check: instance %" PRId64 " %s\n", index, what);
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) < 0) _exit(3);
  _exit(1);
}

void OnCrash(int) { EndWith(current_index, "crashes"); }

// Ends the program when none of the threads gets on to another instance for a minute.
class Watchdog {
 public:
  explicit Watchdog(const std::atomic<int64_t>* next) : thread_([this, next] { Watch(*next); }) {}
  ~Watchdog() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ended_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  void Watch(const std::atomic<int64_t>& next) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (int64_t seen = -1; !ended_;) {
      const int64_t at = next;
      if (at == seen) EndWith(at - 1, "or one shortly before does not end");
      seen = at;
      wake_.wait_for(lock, std::chrono::minutes(1), [&] { return ended_; });
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

class Run {
 public:
  explicit Run(const Settings& settings) : settings_(settings), next_(settings.first) {}

  int Do() {
    for (const int crash : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) signal(crash, OnCrash);
    {
      const Watchdog watchdog(&next_);
      std::vector<std::thread> threads;
      for (int i = 1; i < settings_.threads; ++i) threads.emplace_back([this] { Work(); });
      Work();
      for (std::thread& thread : threads) thread.join();
    }
    if (failure_.has_value()) return Report();
    if (settings_.json) {
      std::printf("{\"instances\": %" PRId64 ", \"against\": \"%s\", \"failures\": 0, \"packs\": %" PRId64
                  ", \"placements\": %" PRId64 ", \"above_bound\": %" PRId64 ", \"known_as_a_range\": %" PRId64
                  ", \"auto_proofs\": %" PRId64 ", \"auto_short\": %" PRId64 ", \"exact_out_of_time\": %" PRId64 "}\n",
                  counts_.instances, settings_.against.c_str(), counts_.packs, counts_.placements, counts_.above_bound,
                  counts_.truth_open, counts_.auto_proofs, counts_.auto_short, counts_.exact_open);
      return 0;
    }
    std::printf("pack_check: %" PRId64 " instances against %s: no failures; %" PRId64 " packs, %" PRId64
                " placements validated; least height above load and pins: %" PRId64 ", known as a range: %" PRId64
                "; optimal: best-fit %" PRId64 ", first-fit %" PRId64 "; auto: %" PRId64 " proofs, %" PRId64
                " short of a known height; exact: %" PRId64 " out of time\n",
                counts_.instances, settings_.against.c_str(), counts_.packs, counts_.placements, counts_.above_bound,
                counts_.truth_open, counts_.best_fit_optimal, counts_.first_fit_optimal, counts_.auto_proofs,
                counts_.auto_short, counts_.exact_open);
    return 0;
  }

 private:
  void Work() {
    CheckCounts counts;
    for (;;) {
      const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= settings_.first + settings_.instances || failed_.load(std::memory_order_relaxed)) break;
      One(index, &counts);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    counts_ += counts;
  }

  void One(int64_t index, CheckCounts* counts) {
    current_index = index;
    Random random(settings_.seed * 0x9e3779b97f4a7c15 + static_cast<uint64_t>(index) * 0xda942042e4dd58b5);
    KnownInstance known;
    Truth truth;
    if (settings_.against == "cut") {
      known = CutRectangle(settings_.max_blocks, &random);
      truth = {ReferenceLoad(known.instance), std::move(known.placement)};
    } else {
      known.instance = SmallInstance(settings_.max_blocks, &random);
      const bool by_reference =
          settings_.against == "brute" || (index % 8 == 0 && settings_.max_blocks <= kMaxReferenceBlocks);
      truth = (by_reference ? TruthFromReference : TruthFromExact)(settings_, known.instance);
    }
    const uint64_t seed = random.Next();
    std::optional<Fault> fault = CheckPacking(known.instance, truth, settings_.limits, seed, counts);
    if (!fault.has_value()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failed_.exchange(true)) return;
    failure_ = {index, std::move(known.instance), seed, std::move(*fault)};
  }

  // The least height of a smaller instance must be found again.
  int Report() {
    Failure& failure = *failure_;
    std::printf("pack_check: instance %" PRId64 " of seed %" PRIu64 " fails: %s: %s\n", failure.index, settings_.seed,
                failure.fault.kind.c_str(), failure.fault.detail.c_str());
    if (failure.instance.blocks.size() <= kMaxReferenceBlocks && !ShrinkBy(TruthFromReference, &failure) &&
        settings_.against == "exact") {
      ShrinkBy(TruthFromExact, &failure);
    }
    std::printf("%s", Describe(failure.instance).c_str());
    return 1;
  }

  // False when the fault does not come again with the least height known in this way.
  bool ShrinkBy(Truth (*truth_of)(const Settings&, const Instance&), Failure* failure) {
    const auto check = [&](const Instance& candidate) {
      CheckCounts ignored;
      return CheckPacking(candidate, truth_of(settings_, candidate), settings_.limits, failure->seed, &ignored);
    };
    std::optional<Fault> again = check(failure->instance);
    if (!again.has_value()) return false;
    const Fault fault = Shrink(check, std::move(*again), &failure->instance);
    std::printf("made small: %s: %s\n", fault.kind.c_str(), fault.detail.c_str());
    return true;
  }

  const Settings settings_;
  std::atomic<int64_t> next_;  // index to be done next
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  CheckCounts counts_;              // guarded by mutex_
  std::optional<Failure> failure_;  // guarded by mutex_
};

int Main(int argc, char** argv) {
  Settings settings;
  double auto_ms = 1e-6 * static_cast<double>(settings.limits.auto_ns);
  double exact_ms = 1e-6 * static_cast<double>(settings.limits.exact_ns);
  CLI::App app("Checks the packer against a judge on random instances.");
  app.add_option("--instances", settings.instances, "How many")->check(CLI::NonNegativeNumber);
  app.add_option("--first", settings.first, "Number of the first")->check(CLI::NonNegativeNumber);
  app.add_option("--seed", settings.seed, "Of everything random");
  app.add_option("--max-blocks", settings.max_blocks, "Blocks an instance")->check(CLI::Range(1, 1000));
  app.add_option("--threads", settings.threads, "Checking at the same time")->check(CLI::Range(1, 64));
  app.add_option("--against", settings.against, "The judge")->check(CLI::IsMember({"brute", "exact", "cut"}));
  app.add_option("--auto-ms", auto_ms, "Time limit of auto")->check(CLI::NonNegativeNumber);
  app.add_option("--exact-ms", exact_ms, "Time limit of exact")->check(CLI::NonNegativeNumber);
  app.add_flag("--json", settings.json, "Print the counts as one object");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (settings.against == "brute" && settings.max_blocks > kMaxReferenceBlocks) {
    std::fprintf(stderr, "pack_check: --against brute takes at most %d blocks\n", kMaxReferenceBlocks);
    return 2;
  }
  settings.limits.auto_ns = static_cast<int64_t>(1e6 * auto_ms);
  settings.limits.exact_ns = static_cast<int64_t>(1e6 * exact_ms);
  return Run(settings).Do();
}

}  // namespace
}  // namespace hotpack::testing

int main(int argc, char** argv) { return hotpack::testing::Main(argc, argv); }
