#include "pack_checks.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>
#include <vector>

#include "packer/bounds.h"
#include "packer/random.h"
#include "packer/validator.h"
#include "reference_solver.h"

namespace hotpack::testing {
namespace {

std::string Number(int64_t value) { return std::to_string(value); }

// One instance's checks. The first fault is kept, and ends them.
class Checks {
 public:
  Checks(const Instance& instance, const Truth& truth, const CheckLimits& limits, uint64_t seed, CheckCounts* counts)
      : instance_(instance), truth_(truth), limits_(limits), random_(seed), counts_(*counts) {}

  std::optional<Fault> Run() {
    ++counts_.instances;
    counts_.above_bound += truth_.least > ReferenceLoad(instance_) ? 1 : 0;
    counts_.truth_open += truth_.least < truth_.placement.height ? 1 : 0;
    CheckBounds();
    CheckCarelessPins();
    CheckHeuristics();
    CheckAuto();
    CheckExact();
    CheckStopped();
    CheckGrown();
    if (random_.Below(64) == 0) CheckAgain();
    return fault_;
  }

 private:
  bool Failed() const { return fault_.has_value(); }
  void Fail(const char* kind, const std::string& detail) {
    if (!Failed()) fault_ = Fault{kind, detail};
  }

  PackOptions Options(Algorithm algorithm) {
    PackOptions options;
    options.algorithm = algorithm;
    options.time_limit_ns = algorithm == Algorithm::kExact ? limits_.exact_ns : limits_.auto_ns;
    options.seed = random_.Next();
    return options;
  }

  PackResult PackInstance(const Instance& instance, const PackOptions& options, const char* what) {
    if (Failed()) return {};
    ++counts_.packs;
    PackResult result = Pack(instance, options);
    context_ = std::string(AlgorithmName(options.algorithm)) + " (" + result.algorithm + "), " + what;
    if (result.status == PackStatus::kOk) CheckPlacement(instance, result.placement);
    return result;
  }

  // Runs both validators on the returned placement, and on the same with one offset or the height changed.
  void CheckPlacement(const Instance& instance, const Placement& placement) {
    ++counts_.placements;
    const std::string fault = ReferenceFault(instance, placement);
    if (!fault.empty()) Fail("invalid placement", context_ + ": " + fault);
    const std::string said = Validate(instance, placement);
    if (said.empty() != fault.empty()) Fail("validator", context_ + ": '" + said + "' for '" + fault + "'");
    if (placement.offsets.empty()) return;
    Placement damaged = placement;
    Offset& offset = damaged.offsets[random_.Below(static_cast<int64_t>(damaged.offsets.size()))];
    if (random_.Below(2) == 0) {
      offset += random_.Below(9) - 4;
    } else {
      offset = damaged.offsets[random_.Below(static_cast<int64_t>(damaged.offsets.size()))];
    }
    damaged.height = random_.Below(16) == 0 ? placement.height - 1 : 0;
    for (size_t i = 0; i < instance.blocks.size() && damaged.height != placement.height - 1; ++i) {
      damaged.height = std::max(damaged.height, damaged.offsets[i] + instance.blocks[i].size);
    }
    const std::string damage = ReferenceFault(instance, damaged);
    const std::string damage_said = Validate(instance, damaged);
    if (damage_said.empty() != damage.empty()) {
      Fail("validator", context_ + ", damaged: '" + damage_said + "' for '" + damage + "'");
    }
  }

  // What holds for every result on the instance itself.
  PackResult PackHere(const PackOptions& options, const char* what) {
    PackResult result = PackInstance(instance_, options, what);
    if (Failed()) return result;
    const Bytes known = truth_.placement.height;
    if (result.status == PackStatus::kInfeasible) {
      if (options.capacity <= 0) Fail("infeasible without capacity", context_);
      if (options.capacity >= known) {
        Fail("wrongly infeasible", context_ + ": capacity " + Number(options.capacity) + ", known " + Number(known));
      }
    } else if (result.status != PackStatus::kOk) {
      Fail("status", context_ + ": " + PackStatusText(result.status));
    }
    if (result.lower_bound > known) {
      Fail("lower bound too high", context_ + ": " + Number(result.lower_bound) + " > " + Number(known));
    }
    if (result.lower_bound < ReferenceLoad(instance_)) Fail("lower bound below the load", context_);
    if (result.status != PackStatus::kOk) return result;
    const Bytes height = result.placement.height;
    if (height < truth_.least) Fail("reference", context_ + ": lower than the judge's proof");
    if (result.proven_optimal && height > known) {
      Fail("false proof", context_ + ": height " + Number(height) + ", known " + Number(known));
    }
    if (!result.proven_optimal && height == result.lower_bound) Fail("proof not claimed", context_);
    return result;
  }

  void CheckBounds() {
    if (const PackStatus status = CheckInstance(instance_); status != PackStatus::kOk) {
      Fail("instance refused", PackStatusText(status));
    }
    const Bytes bound = LowerBound(instance_);
    if (bound < ReferenceLoad(instance_) || bound > truth_.placement.height) {
      Fail("LowerBound()", Number(bound) + ", load " + Number(ReferenceLoad(instance_)) + ", known height " +
                               Number(truth_.placement.height));
    }
  }

  void CheckCarelessPins() {
    Instance pinned = instance_;
    for (Block& block : pinned.blocks) {
      if (random_.Below(2) == 0) continue;
      block.pinned = random_.Below(truth_.placement.height + 1) / block.alignment * block.alignment;
    }
    const bool fit = ReferencePinsFit(pinned);
    if (CheckInstance(pinned) != (fit ? PackStatus::kOk : PackStatus::kBadInstance)) {
      Fail("pins", std::string(fit ? "refused" : "colliding, not refused") + "; with pins:\n" + Describe(pinned));
    }
    if (!fit || random_.Below(4) != 0) return;
    PackInstance(pinned, Options(random_.Below(2) == 0 ? Algorithm::kBestFit : Algorithm::kFirstFit), "careless pins");
  }

  void CheckHeuristics() {
    const auto run = [&](Algorithm algorithm, int64_t* optimal) {
      const PackResult result = PackHere(Options(algorithm), "alone");
      if (Failed()) return;
      *optimal += result.placement.height == truth_.least ? 1 : 0;
      PackOptions below = Options(algorithm);
      below.capacity = truth_.least - 1;
      if (below.capacity > 0) PackHere(below, "capacity below the least height");
      PackOptions at = Options(algorithm);
      at.capacity = truth_.placement.height;
      PackHere(at, "capacity at the known height");
    };
    run(Algorithm::kBestFit, &counts_.best_fit_optimal);
    run(Algorithm::kFirstFit, &counts_.first_fit_optimal);
  }

  // Told the known height auto ends as soon as it has it, so that is done every time.
  void CheckAuto() {
    PackOptions options = Options(Algorithm::kAuto);
    options.capacity = truth_.placement.height;
    const PackResult told = PackHere(options, "capacity at the known height");
    if (Failed()) return;
    counts_.auto_short += told.placement.height > truth_.placement.height ? 1 : 0;
    options.capacity = 0;
    if (random_.Below(256) == 0) options.threads = 2;
    counts_.auto_proofs += PackHere(options, "alone").proven_optimal ? 1 : 0;
  }

  // Exact without a capacity must end with the least height and say so; `instance` has that of the instance checked.
  void CheckMinimum(const Instance& instance, const PackResult& result, int64_t limit_ns) {
    if (Failed()) return;
    if (!result.proven_optimal) {
      ++counts_.exact_open;
      if (result.nanoseconds < limit_ns) {
        Fail("exact gave up", context_ + ": height " + Number(result.placement.height) + ", bound " +
                                  Number(result.lower_bound) + ", the least is " + Number(truth_.least));
      }
      return;
    }
    const Bytes height = result.placement.height;
    if (height < truth_.least || height > truth_.placement.height) {
      Fail("exact's height",
           context_ + ": " + Number(height) + ", the least is " + Number(truth_.least) + ":\n" + Describe(instance));
    }
    if (result.lower_bound != height) Fail("exact's bound", context_ + ": proven, but the bound is below the height");
  }

  void CheckExact() {
    PackOptions options = Options(Algorithm::kExact);
    CheckMinimum(instance_, PackHere(options, "alone"), options.time_limit_ns);
    options.start = &truth_.placement;
    CheckMinimum(instance_, PackHere(options, "from a start"), options.time_limit_ns);
    options.start = nullptr;

    options.capacity = truth_.placement.height;
    const PackResult at = PackHere(options, "capacity at the known height");
    if (!Failed() && at.placement.height > options.capacity) {
      ++counts_.exact_open;
      if (at.nanoseconds < options.time_limit_ns) Fail("exact misses the capacity", context_);
    }
    options.capacity = truth_.least - 1;
    if (options.capacity > 0 && truth_.least == truth_.placement.height) {
      const PackResult below = PackHere(options, "capacity below the least height");
      if (!Failed() && below.status != PackStatus::kInfeasible) {
        ++counts_.exact_open;
        if (below.nanoseconds < options.time_limit_ns) Fail("exact does not prove", context_);
      }
    }
    options.capacity = 0;
    const Instance turned = Turned();
    CheckMinimum(turned, PackInstance(turned, options, "renumbered, time reversed"), options.time_limit_ns);
  }

  // The same instance with the blocks in another order and time running backwards: no placement gains or loses by it.
  Instance Turned() {
    Instance turned = instance_;
    for (Block& block : turned.blocks) {
      std::reverse(block.residency.begin(), block.residency.end());
      for (Residency& residency : block.residency) residency = {-residency.end, -residency.begin};
    }
    for (size_t i = turned.blocks.size(); i > 1; --i) {
      std::swap(turned.blocks[i - 1], turned.blocks[random_.Below(static_cast<int64_t>(i))]);
    }
    return turned;
  }

  Algorithm AnyAlgorithm() {
    constexpr Algorithm kHeuristics[] = {Algorithm::kAuto, Algorithm::kBestFit, Algorithm::kFirstFit};
    const int64_t drawn = random_.Below(4);
    return drawn == 3 ? Algorithm::kExact : kHeuristics[drawn];
  }

  // No time, or cancelled before it begins; with a start that is kept by the algorithms that take one.
  void CheckStopped() {
    const std::atomic<bool> cancelled{true};
    constexpr int64_t kLong = 1'000'000'000;
    PackOptions options = Options(AnyAlgorithm());
    options.time_limit_ns = 0;
    if (random_.Below(2) == 0) {
      options.time_limit_ns = kLong;
      options.cancel = &cancelled;
    }
    if (PackHere(options, "stopped at once").nanoseconds >= kLong) Fail("cancellation not seen", context_);
    options.start = &truth_.placement;
    options.algorithm = random_.Below(2) == 0 ? Algorithm::kExact : Algorithm::kAuto;
    const PackResult result = PackHere(options, "stopped at once, from a start");
    if (!Failed() && result.placement.height > truth_.placement.height) Fail("above its start", context_);
  }

  // Re-packing in the background: some blocks have become larger, some of the others are live and must stay.
  void CheckGrown() {
    Instance grown = instance_;
    for (size_t i = 0; i < grown.blocks.size(); ++i) {
      Block& block = grown.blocks[i];
      if (block.pinned != kNotPinned) continue;
      const int64_t drawn = random_.Below(3);
      if (drawn == 0) block.size += random_.Below(block.size + 1);
      if (drawn == 1) block.pinned = truth_.placement.offsets[i];
    }
    PackOptions options = Options(Algorithm::kFirstFit);
    options.start = &truth_.placement;
    const PackResult first_fit = PackInstance(grown, options, "grown");
    if (Failed()) return;
    if (first_fit.status != PackStatus::kOk) return Fail("grown refused", Describe(grown));
    options.algorithm = AnyAlgorithm();
    options.capacity = first_fit.placement.height;  // ends auto early
    const PackResult result = PackInstance(grown, options, "grown");
    if (!Failed() && result.status != PackStatus::kOk) Fail("grown refused", context_ + "\n" + Describe(grown));
    // Grown and still valid: offsets that were far enough apart. Never worse than those.
    Placement start = truth_.placement;
    start.height = 0;
    for (size_t i = 0; i < grown.blocks.size(); ++i) {
      start.height = std::max(start.height, start.offsets[i] + grown.blocks[i].size);
    }
    if (!ReferenceFault(grown, start).empty()) return;
    options.algorithm = Algorithm::kAuto;
    options.time_limit_ns = 0;
    options.start = &start;
    const PackResult kept = PackInstance(grown, options, "grown, start still valid");
    if (!Failed() && kept.placement.height > start.height) Fail("above its start", context_ + "\n" + Describe(grown));
  }

  void CheckAgain() {
    PackOptions options = Options(AnyAlgorithm());
    options.capacity = truth_.placement.height;
    const PackResult one = PackHere(options, "once");
    const PackResult two = PackHere(options, "again");
    const bool timed_out = std::max(one.nanoseconds, two.nanoseconds) >= options.time_limit_ns;
    if (!timed_out && one.placement.offsets != two.placement.offsets) Fail("not deterministic", context_);
  }

  const Instance& instance_;
  const Truth& truth_;
  const CheckLimits limits_;
  Random random_;
  CheckCounts& counts_;
  std::string context_;  // of the last Pack()
  std::optional<Fault> fault_;
};

}  // namespace

CheckCounts& CheckCounts::operator+=(const CheckCounts& other) {
  instances += other.instances;
  packs += other.packs;
  placements += other.placements;
  above_bound += other.above_bound;
  truth_open += other.truth_open;
  best_fit_optimal += other.best_fit_optimal;
  first_fit_optimal += other.first_fit_optimal;
  auto_short += other.auto_short;
  auto_proofs += other.auto_proofs;
  exact_open += other.exact_open;
  return *this;
}

std::optional<Fault> CheckPacking(const Instance& instance, const Truth& truth, const CheckLimits& limits,
                                  uint64_t seed, CheckCounts* counts) {
  return Checks(instance, truth, limits, seed, counts).Run();
}

}  // namespace hotpack::testing
