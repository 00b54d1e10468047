// hotpack pack: instance or recording → placement.
#include "packer/pack.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "packer/stream_edges.h"
#include "packer/validator.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/formats/instance_input.h"

namespace hotpack {
namespace {

struct PackArguments {
  std::string file;
  std::string algorithm = "auto";
  std::string time_limit = "1s";
  std::string capacity;
  uint64_t seed = 1;
  int threads = 1;
  bool start = false;
  bool ignore_streams = false;
  std::string out;
  bool force = false;
  bool json = false;
};

int FailPack(int code, const std::string& message) {
  fprintf(stderr, "hotpack pack: %s\n", message.c_str());
  return code;
}

// The outcome, as a word and an exit code.
struct Outcome {
  const char* word;
  int exit_code;
};

Outcome OutcomeOf(const PackResult& result, Bytes capacity) {
  if (result.status == PackStatus::kInfeasible) return {"infeasible", 3};
  if (capacity > 0 && result.placement.height > capacity) return {"undecided", 4};
  return {"packed", 0};
}

double RatioOf(const PackResult& result) {
  if (result.lower_bound == 0) return 1.0;
  return static_cast<double>(result.placement.height) / static_cast<double>(result.lower_bound);
}

// `edges`: null without several streams.
void PrintJson(size_t blocks, const PackResult& result, const Outcome& outcome, const StreamEdges* edges) {
  nlohmann::ordered_json object = {
      {"blocks", blocks},
      {"lower_bound", result.lower_bound},
      {"height", result.placement.height},
      {"ratio", RatioOf(result)},
      {"seconds", static_cast<double>(result.nanoseconds) / 1e9},
      {"algorithm", result.algorithm},
      {"proven_optimal", result.proven_optimal},
      {"status", outcome.word},
  };
  if (result.status == PackStatus::kInfeasible) object["height"] = object["ratio"] = nullptr;
  if (edges != nullptr) {
    object["stream_edges"] = edges->after;
    object["stream_edges_avoided"] = edges->before - edges->after;
  }
  printf("%s\n", object.dump(2).c_str());
}

void PrintPack(const InstanceInput& input, const PackResult& result, const Outcome& outcome,
               const std::string& capacity, const StreamEdges* edges) {
  printf("packed       %s\n", input.what.c_str());
  printf("blocks       %zu\n", input.named.instance.blocks.size());
  printf("lower bound  %lld (%s)\n", static_cast<long long>(result.lower_bound),
         FormatSize(static_cast<uint64_t>(result.lower_bound)).c_str());
  if (result.status == PackStatus::kInfeasible) {
    printf("height       none of at most %s: proved\n", capacity.c_str());
  } else {
    printf("height       %lld, %.5f times that%s\n", static_cast<long long>(result.placement.height), RatioOf(result),
           result.proven_optimal ? " (optimal)" : "");
  }
  if (edges != nullptr) {
    printf("stream edges %lld (%lld avoided): waits between streams that the placement makes\n",
           static_cast<long long>(edges->after), static_cast<long long>(edges->before - edges->after));
  }
  if (outcome.exit_code == 4) printf("capacity     %s: undecided\n", capacity.c_str());
  printf("solved in    %.6f s by %s\n", static_cast<double>(result.nanoseconds) / 1e9, result.algorithm);
}

// Returns the placement in the file, if every block has an offset there.
std::optional<Placement> PlacementInFile(const NamedInstance& named) {
  if (named.offsets.empty()) return std::nullopt;
  Placement placement{named.offsets, 0};
  for (size_t i = 0; i < named.offsets.size(); ++i) {
    if (named.offsets[i] == kNotPinned) return std::nullopt;
    placement.height = std::max(placement.height, named.offsets[i] + named.instance.blocks[i].size);
  }
  return placement;
}

PackResult PackWithProgress(const Instance& instance, const PackOptions& options, const std::string& time_limit) {
  const Progress progress("packing " + CountText(instance.blocks.size(), "block") + ", at most " + time_limit);
  return Pack(instance, options);
}

int RunPack(const PackArguments& options) {
  const absl::Status writable = CheckOutput("--out", options.out, options.force, {options.file});
  if (!writable.ok()) return FailPack(2, std::string(writable.message()));
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return FailPack(2, std::string(input.status().message()));
  const Instance& instance = input->named.instance;
  PackOptions pack_options;
  pack_options.algorithm = *AlgorithmFromName(options.algorithm);
  pack_options.time_limit_ns = *ParseDuration(options.time_limit);
  pack_options.seed = options.seed;
  pack_options.threads = options.threads;
  if (!options.capacity.empty()) pack_options.capacity = *ParseSize(options.capacity);
  std::optional<Placement> start;
  if (options.start) {
    start = PlacementInFile(input->named);
    if (!start) return FailPack(2, options.file + ": --start needs an offset for every block");
    if (std::string fault = Validate(instance, *start); !fault.empty()) {
      return FailPack(2, options.file + ": --start: the offsets are no placement: " + fault);
    }
    pack_options.start = &*start;
  }
  PackResult result = PackWithProgress(instance, pack_options, options.time_limit);
  if (result.status != PackStatus::kOk && result.status != PackStatus::kInfeasible) {
    return FailPack(2, options.file + ": " + PackStatusText(result.status));
  }
  const Outcome outcome = OutcomeOf(result, pack_options.capacity);
  const bool has_edges = result.status == PackStatus::kOk && !input->streams.empty();
  StreamEdges edges;
  if (has_edges && options.ignore_streams) {
    edges.before = edges.after = CountStreamEdges(instance, result.placement, input->streams);
  } else if (has_edges) {
    edges = AvoidStreamEdgesInPlace(instance, input->streams, pack_options.time_limit_ns, nullptr, nullptr,
                                    &result.placement);
  }
  const StreamEdges* shown = has_edges ? &edges : nullptr;
  if (result.status == PackStatus::kOk) {
    if (std::string fault = Validate(instance, result.placement); !fault.empty()) {
      return FailPack(1, options.file + ": the placement is wrong, please report this: " + fault);
    }
    if (!options.out.empty()) {
      absl::Status written = WriteFile(options.out, FormatCsv(instance, input->named.ids, &result.placement));
      if (!written.ok()) return FailPack(2, std::string(written.message()));
    }
  }
  if (options.json) {
    PrintJson(instance.blocks.size(), result, outcome, shown);
  } else {
    PrintPack(*input, result, outcome, options.capacity, shown);
  }
  return outcome.exit_code;
}

}  // namespace

void AddPackCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<PackArguments>();
  CLI::App* command = app.add_subcommand("pack", "Packs an instance, or the hot iteration of a recording");
  command->add_option("FILE", options->file, "A minimalloc CSV or a recording, also a PyTorch snapshot or an RMM log")
      ->required();
  NoteChoices(command->add_option("--algorithm", options->algorithm, std::string("One of ") + kAlgorithmNames)
                  ->check(
                      [](const std::string& name) {
                        return AlgorithmFromName(name) ? std::string() : "'" + name + "' is none of " + kAlgorithmNames;
                      },
                      "NAME")
                  ->capture_default_str(),
              absl::StrSplit(kAlgorithmNames, ", "));
  command->add_option("--time-limit", options->time_limit, "For the solve; the best placement found by then counts")
      ->check(DurationOption())
      ->capture_default_str();
  command
      ->add_option("--capacity", options->capacity,
                   "Ask only whether it fits into this many bytes (such as 80G). Exit code 0 if it does, 3 if it is "
                   "proved that it does not, 4 if neither is known")
      ->check(SizeOption())
      ->check([](const std::string& size) { return ParseSize(size) > 0 ? std::string() : "a capacity is at least 1"; });
  command->add_option("--seed", options->seed, "Same seed, one thread, no time-out: same placement")
      ->check([](const std::string& seed) {
        const bool digits = std::all_of(seed.begin(), seed.end(), [](char c) { return c >= '0' && c <= '9'; });
        return digits && !seed.empty() && seed.size() < 20 ? std::string() : "'" + seed + "' is no integer below 10^19";
      })
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that search")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--start", options->start, "Begin from the offsets in FILE");
  command->add_flag("--ignore-streams", options->ignore_streams,
                    "Count the waits between streams that the placement makes, but do not avoid any");
  AddOutputOption(command, "-o,--out", &options->out, "Write the instance with the offsets to this minimalloc CSV");
  AddForceFlag(command, &options->force);
  command->add_flag("--json", options->json,
                    "Print one object: blocks, lower_bound, height, ratio, seconds, algorithm, proven_optimal, status "
                    "(packed, infeasible or undecided); of a recording with several streams also stream_edges, "
                    "stream_edges_avoided");
  command->footer("Example:\n  hotpack pack resnet50-train.csv --time-limit 2s --out placed.csv");
  command->callback([options, exit_code] { *exit_code = RunPack(*options); });
}

}  // namespace hotpack
