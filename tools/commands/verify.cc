// hotpack verify: checks a solution of an instance, and compares it to hotpack's.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "packer/exact_model.h"
#include "packer/pack.h"
#include "packer/solution_file.h"
#include "packer/validator.h"
#include "profiler/trace_file.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/formats/instance_input.h"

namespace hotpack {
namespace {

struct VerifyArguments {
  std::string instance;
  std::string solution;
  std::string time_limit = "1s";
  bool json = false;
};

// The solution, from either kind of file.
struct Candidate {
  const char* format = "";
  std::optional<SolverSolution> solver;  // nothing for a placement CSV
  Placement placement;
  double rounding = 0;  // largest distance from an integer before rounding, in units
};

int FailVerify(int code, const std::string& message) {
  fprintf(stderr, "hotpack verify: %s\n", message.c_str());
  return code;
}

const char* FormatText(SolutionFormat format) {
  switch (format) {
    case SolutionFormat::kCbc:
      return "CBC";
    case SolutionFormat::kHighs:
    case SolutionFormat::kHighsPretty:
      return "HiGHS";
    case SolutionFormat::kPlacementCsv:
      return "minimalloc CSV";
    case SolutionFormat::kOther:
      break;
  }
  return "unknown";
}

// Reads a solver's solution; without offsets if the solver found none.
absl::StatusOr<Candidate> ReadCandidate(const std::string& path, const InstanceInput& input) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  if (!contents.ok()) return contents.status();
  const SolutionFormat format = RecogniseSolution(*contents);
  Candidate candidate;
  candidate.format = FormatText(format);
  const Instance& instance = input.named.instance;
  if (format == SolutionFormat::kPlacementCsv) {
    absl::StatusOr<Placement> placement = ParsePlacementCsv(*contents, path, instance, input.named.ids);
    if (!placement.ok()) return placement.status();
    candidate.placement = *std::move(placement);
    return candidate;
  }
  absl::StatusOr<SolverSolution> solver = ParseSolverSolution(*contents, path, instance.blocks.size());
  if (!solver.ok()) return solver.status();
  candidate.solver = *std::move(solver);
  if (!candidate.solver->has_solution) return candidate;
  if (const Bytes unit = ModelUnit(instance); candidate.solver->unit != 1 && candidate.solver->unit != unit) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": in units of ", candidate.solver->unit,
                                                   " bytes, but the instance's are ", unit,
                                                   ": a solution of another instance"));
  }
  absl::StatusOr<RoundedSolution> rounded = RoundSolution(*candidate.solver, instance);
  if (!rounded.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", rounded.status().message()));
  candidate.placement = std::move(rounded->placement);
  candidate.rounding = rounded->distance;
  return candidate;
}

// Explains an overlap in a solver's solution. `fault` is the validator's.
std::string OverlapReason(const std::string& fault, const InstanceInput& input, const Candidate& candidate) {
  size_t a = 0, b = 0;
  if (sscanf(fault.c_str(), "block %zu and block %zu overlap", &a, &b) != 2) return "";
  std::string reason;
  if (!input.named.ids.empty()) reason = absl::StrCat(" (", input.named.ids[a], " and ", input.named.ids[b], ")");
  if (!candidate.solver) return reason;
  const auto top = [&](size_t i) { return candidate.placement.offsets[i] + input.named.instance.blocks[i].size; };
  const Bytes overlap =
      std::min(top(a), top(b)) - std::max(candidate.placement.offsets[a], candidate.placement.offsets[b]);
  const double units = static_cast<double>(overlap) / static_cast<double>(candidate.solver->unit);
  // Twice: each of the two offsets may be off by the tolerance.
  if (units <= 2 * ToleratedOverlap(candidate.solver->big) + 1) {
    absl::StrAppend(&reason, "; ", overlap,
                    " bytes, which an integrality tolerance of 1e-6 allows with W = ", candidate.solver->big,
                    ": a false solution of the solver, not of the model");
  }
  // CBC writes "%.8g", so larger numbers have lost their last digits.
  constexpr double kCbcExact = 99'999'999;
  if (std::string(candidate.format) == "CBC" && candidate.solver->height > kCbcExact) {
    absl::StrAppend(&reason, "; CBC writes eight digits of each number, too few for these");
  }
  return reason;
}

struct Comparison {
  Bytes lower_bound = 0;
  double ratio = 1;
  Bytes difference = 0;  // solution's height minus hotpack's: negative if it is better
  double percent = 0;    // of hotpack's height
  PackResult ours;
};

Comparison Compare(const Candidate& candidate, PackResult ours) {
  Comparison comparison;
  comparison.lower_bound = ours.lower_bound;
  const auto height = static_cast<double>(candidate.placement.height);
  if (ours.lower_bound > 0) comparison.ratio = height / static_cast<double>(ours.lower_bound);
  comparison.difference = candidate.placement.height - ours.placement.height;
  if (ours.placement.height > 0) {
    comparison.percent =
        100.0 * static_cast<double>(comparison.difference) / static_cast<double>(ours.placement.height);
  }
  comparison.ours = std::move(ours);
  return comparison;
}

void PrintJson(const Candidate& candidate, const Comparison& comparison) {
  const PackResult& ours = comparison.ours;
  nlohmann::ordered_json object = {
      {"format", candidate.format},
      {"blocks", candidate.placement.offsets.size()},
      {"lower_bound", comparison.lower_bound},
      {"height", candidate.placement.height},
      {"ratio", comparison.ratio},
      {"our_height", ours.placement.height},
      {"our_algorithm", ours.algorithm},
      {"our_proven_optimal", ours.proven_optimal},
      {"difference_bytes", comparison.difference},
      {"difference_percent", comparison.percent},
  };
  if (candidate.solver) {
    object["status"] = candidate.solver->status;
    object["unit"] = candidate.solver->unit;
    object["rounding"] = candidate.rounding;
  }
  printf("%s\n", object.dump(2).c_str());
}

std::string DifferenceText(const Comparison& comparison) {
  if (comparison.difference == 0) return "the solution is as high";
  char percent[32];
  snprintf(percent, sizeof(percent), "%.5f", std::abs(comparison.percent));
  return absl::StrCat("the solution ", comparison.difference < 0 ? "beats it by " : "misses it by ",
                      std::abs(comparison.difference), " bytes, ", percent, " %");
}

void PrintVerify(const Candidate& candidate, const Comparison& comparison) {
  printf("solution     valid, %s", candidate.format);
  if (candidate.solver) {
    printf(", '%s', in units of %lld bytes, at most %.2g of a unit from an integer", candidate.solver->status.c_str(),
           static_cast<long long>(candidate.solver->unit), candidate.rounding);
  }
  printf("\nblocks       %zu\n", candidate.placement.offsets.size());
  printf("lower bound  %lld (%s)\n", static_cast<long long>(comparison.lower_bound),
         FormatSize(static_cast<uint64_t>(comparison.lower_bound)).c_str());
  printf("height       %lld, %.5f times that\n", static_cast<long long>(candidate.placement.height), comparison.ratio);
  const PackResult& ours = comparison.ours;
  printf("hotpack      %lld by %s%s: %s\n", static_cast<long long>(ours.placement.height), ours.algorithm,
         ours.proven_optimal ? " (optimal)" : "", DifferenceText(comparison).c_str());
  if (candidate.solver && candidate.solver->optimal && comparison.difference > 0) {
    printf("note         the solver calls its solution optimal; it is so only within its gap and tolerances\n");
  }
}

PackResult PackWithProgress(const Instance& instance, const PackOptions& options) {
  const Progress progress("packing " + CountText(instance.blocks.size(), "block") + ", to compare");
  return Pack(instance, options);
}

int RunVerify(const VerifyArguments& options) {
  absl::StatusOr<InstanceInput> input = ReadInstance(options.instance);
  if (!input.ok()) return FailVerify(2, std::string(input.status().message()));
  const Instance& instance = input->named.instance;
  if (const PackStatus status = CheckInstance(instance); status != PackStatus::kOk) {
    return FailVerify(2, options.instance + ": " + PackStatusText(status));
  }
  absl::StatusOr<Candidate> candidate = ReadCandidate(options.solution, *input);
  if (!candidate.ok()) return FailVerify(2, std::string(candidate.status().message()));
  if (candidate->solver && !candidate->solver->has_solution) {
    return FailVerify(1, absl::StrCat(options.solution, ": there is no solution in it, ", candidate->format, " says '",
                                      candidate->solver->status, "'"));
  }
  if (const std::string fault = Validate(instance, candidate->placement); !fault.empty()) {
    return FailVerify(1,
                      absl::StrCat(options.solution, ": not valid: ", fault, OverlapReason(fault, *input, *candidate)));
  }
  PackOptions pack_options;
  pack_options.time_limit_ns = *ParseDuration(options.time_limit);
  const Comparison comparison = Compare(*candidate, PackWithProgress(instance, pack_options));
  if (candidate->placement.height < comparison.lower_bound) {
    return FailVerify(
        1, absl::StrCat(options.solution, ": valid and ", candidate->placement.height,
                        " bytes high, less than the lower bound ", comparison.lower_bound, ", please report this"));
  }
  if (options.json) {
    PrintJson(*candidate, comparison);
  } else {
    PrintVerify(*candidate, comparison);
  }
  return 0;
}

}  // namespace

void AddVerifyCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<VerifyArguments>();
  CLI::App* command = app.add_subcommand("verify", "Checks a solution of an instance, and compares it with hotpack's");
  command->add_option("INSTANCE", options->instance, "A minimalloc CSV, an event CSV or a trace file")->required();
  command->add_option("SOLUTION", options->solution, "Solution file of CBC or HiGHS, or a minimalloc CSV with offsets")
      ->required();
  command->add_option("--time-limit", options->time_limit, "For hotpack's own solve")
      ->check(DurationOption())
      ->capture_default_str();
  command->add_flag(
      "--json", options->json,
      "Print one object: format, blocks, lower_bound, height, ratio, our_height, our_algorithm, "
      "our_proven_optimal, difference_bytes, difference_percent; of a solver also status, unit, rounding");
  command->footer(
      "Exit code 1 if the solution is not valid or there is none.\n"
      "Example:\n  hotpack verify resnet50-train.csv model.sol");
  command->callback([options, exit_code] { *exit_code = RunVerify(*options); });
}

}  // namespace hotpack
