// hotpack pack: instance or recording → placement.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "packer/csv.h"
#include "packer/pack.h"
#include "packer/validator.h"
#include "tools/commands.h"
#include "tools/instance_input.h"
#include "tools/units.h"

namespace hotpack {
namespace {

struct Options {
  std::string file;
  std::string algorithm = "auto";
  std::string time_limit = "1s";
  std::string out;
  bool json = false;
};

int Fail(int code, const std::string& message) {
  fprintf(stderr, "hotpack pack: %s\n", message.c_str());
  return code;
}

void Print(const Options& options, const InstanceInput& input, const PackResult& result) {
  size_t blocks = input.named.instance.blocks.size();
  double ratio = result.lower_bound > 0
                     ? static_cast<double>(result.placement.height) / static_cast<double>(result.lower_bound)
                     : 1.0;
  double seconds = static_cast<double>(result.nanoseconds) / 1e9;
  if (options.json) {
    nlohmann::ordered_json object = {
        {"blocks", blocks},   {"lower_bound", result.lower_bound}, {"height", result.placement.height},
        {"ratio", ratio},     {"seconds", seconds},                {"algorithm", result.algorithm},
        {"proven_optimal", result.proven_optimal},
    };
    printf("%s\n", object.dump(2).c_str());
    return;
  }
  printf("packed       %s\n", input.what.c_str());
  printf("blocks       %zu\n", blocks);
  printf("lower bound  %lld (%s)\n", static_cast<long long>(result.lower_bound),
         FormatSize(static_cast<uint64_t>(result.lower_bound)).c_str());
  printf("height       %lld, %.5f times that%s\n", static_cast<long long>(result.placement.height), ratio,
         result.proven_optimal ? " (optimal)" : "");
  printf("solved in    %.6f s by %s\n", seconds, result.algorithm);
}

int RunPack(const Options& options) {
  std::error_code error;
  if (!options.out.empty() && std::filesystem::equivalent(options.out, options.file, error)) {
    return Fail(2, "--out " + options.out + " is the input");
  }
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return Fail(2, std::string(input.status().message()));
  const Instance& instance = input->named.instance;
  PackOptions pack_options;
  pack_options.algorithm = *AlgorithmFromName(options.algorithm);
  pack_options.time_limit_ns = *ParseDuration(options.time_limit);
  PackResult result = Pack(instance, pack_options);
  if (result.status != PackStatus::kOk) return Fail(2, options.file + ": " + PackStatusText(result.status));
  if (std::string fault = Validate(instance, result.placement); !fault.empty()) {
    return Fail(1, options.file + ": the placement is wrong, please report this: " + fault);
  }
  if (!options.out.empty()) {
    absl::Status written = WriteTextFile(options.out, FormatCsv(instance, input->named.ids, &result.placement));
    if (!written.ok()) return Fail(2, std::string(written.message()));
  }
  Print(options, *input, result);
  return 0;
}

}  // namespace

void AddPackCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("pack", "Packs an instance, or the hot iteration of a recording");
  command->add_option("FILE", options->file, "A minimalloc CSV, an event CSV or a trace file")->required();
  command->add_option("--algorithm", options->algorithm, std::string("One of ") + kAlgorithmNames)
      ->check([](const std::string& name) {
        return AlgorithmFromName(name) ? std::string() : "'" + name + "' is none of " + kAlgorithmNames;
      }, "NAME")->capture_default_str();
  command->add_option("--time-limit", options->time_limit, "For the solve; the best placement found by then counts")
      ->check(DurationOption())->capture_default_str();
  command->add_option("--out", options->out, "Write the instance with the offsets to this minimalloc CSV");
  command->add_flag("--json", options->json,
                    "Print one object: blocks, lower_bound, height, ratio, seconds, algorithm, proven_optimal");
  command->footer("Example:\n  hotpack pack resnet50-train.csv --time-limit 2s --out placed.csv");
  command->callback([options, exit_code] { *exit_code = RunPack(*options); });
}

}  // namespace hotpack
