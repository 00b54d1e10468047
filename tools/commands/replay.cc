// hotpack replay: plays a recording as a CUDA program.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "profiler/trace_file.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/formats/any_recording.h"
#include "tools/replay/replay_cuda.h"
#include "tools/replay/replay_player.h"
#include "tools/replay/replay_steps.h"

namespace hotpack {
namespace {

struct ReplayArguments {
  std::string file;
  uint64_t repeat = 0;
  uint64_t whole = 1;
  std::string api = "malloc";
  std::string marks = "none";
  std::string weights = "0";
  std::string optimizer_state = "0";
  bool wait_plan = false;
  bool no_touch = false;
};

constexpr uint64_t kMaxPlays = 1'000'000'000;

int FailReplay(int code, const std::string& message) {
  fprintf(stderr, "hotpack replay: %s\n", message.c_str());
  return code;
}

ReplayApi ApiFromName(const std::string& name) {
  if (name == "async") return ReplayApi::kAsync;
  return name == "driver" ? ReplayApi::kDriver : ReplayApi::kMalloc;
}

PlayOptions PlayOptionsFrom(const ReplayArguments& options, const RecordedSteps& recorded) {
  PlayOptions play;
  play.passes = options.whole;
  play.weights = static_cast<uint64_t>(*ParseSize(options.weights));
  play.optimizer_state = static_cast<uint64_t>(*ParseSize(options.optimizer_state));
  play.touch = !options.no_touch;
  if (options.repeat == 0) return play;
  if (recorded.steady) {
    play.repeat = options.repeat;
  } else {
    play.passes = options.repeat + 1;
    const char* why = recorded.steps.size() > 1
                          ? "the last two marked steps differ"
                          : "the recording has no marks; hotpack.step() or hotpack_step() sets them";
    fprintf(stderr, "hotpack replay: %s: no steady step (%s): the whole is repeated\n", options.file.c_str(), why);
  }
  return play;
}

int Report(const ReplayArguments& options, PlayResult result) {
  if (!result.error.empty()) return FailReplay(1, options.file + ": " + result.error);
  printf("requests    %llu\n", static_cast<unsigned long long>(result.requests));
  std::vector<uint64_t>& steps = result.step_ns;
  if (!steps.empty()) {
    std::nth_element(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(steps.size() / 2), steps.end());
    printf("ms per step %.3f (median of %zu)\n", static_cast<double>(steps[steps.size() / 2]) / 1e6, steps.size());
  }
  printf("live peak   %llu (%s)\n", static_cast<unsigned long long>(result.live_peak),
         FormatSize(result.live_peak).c_str());
  fflush(stdout);
  if (result.mismatches == 0) return 0;
  return FailReplay(
      1, options.file + ": " + CountText(result.mismatches, "block") + " did not hold what was written to them");
}

PlayResult PlayWithProgress(const ReplayArguments& options, const RecordedSteps& recorded, const ReplayHooks& hooks,
                            ReplayDevice* device, PlayOptions play) {
  Progress progress("playing " + options.file, play.passes * recorded.steps.size() + play.repeat);
  play.progress = &progress;
  Player player(recorded, play, hooks, device);
  return player.Play();
}

int RunReplay(const ReplayArguments& options) {
  absl::StatusOr<TraceFile> file = LoadForCommand("replay", options.file);
  if (!file.ok()) return FailReplay(2, std::string(file.status().message()));
  RecordedSteps recorded = CutIntoSteps(file->trace);
  absl::StatusOr<std::unique_ptr<ReplayDevice>> device = OpenCudaDevice(ApiFromName(options.api), !options.no_touch);
  if (absl::IsNotFound(device.status())) {  // no driver
    return FailReplay(2, std::string(device.status().message()) +
                             "; without a GPU: hotpack run --simulate -- hotpack replay " + options.file);
  }
  if (!device.ok()) return FailReplay(2, std::string(device.status().message()));
  PlayOptions play = PlayOptionsFrom(options, recorded);
  ReplayHooks hooks = FindHooks(options.marks == "api", options.wait_plan);
  return Report(options, PlayWithProgress(options, recorded, hooks, device->get(), play));
}

}  // namespace

void AddReplayCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ReplayArguments>();
  CLI::App* command = app.add_subcommand("replay", "Plays a recording as a CUDA program");
  command->add_option("FILE", options->file, "A recording, also a PyTorch snapshot or an RMM log")->required();
  auto* repeat = command->add_option("--repeat", options->repeat, "Play it once and its steady step N more times")
                     ->check(CLI::Range(uint64_t{0}, kMaxPlays))
                     ->type_name("N");
  command->add_option("--whole", options->whole, "Play the whole recording N times")
      ->check(CLI::Range(uint64_t{1}, kMaxPlays))
      ->type_name("N")
      ->excludes(repeat);
  NoteChoices(
      command->add_option("--api", options->api, "malloc (cudaMalloc), async (cudaMallocAsync) or driver (cuMemAlloc)")
          ->check(CLI::IsMember({"malloc", "async", "driver"}))
          ->capture_default_str(),
      {"malloc", "async", "driver"});
  NoteChoices(command->add_option("--marks", options->marks, "api: call hotpack_step() where the recording has a mark")
                  ->check(CLI::IsMember({"none", "api"}))
                  ->capture_default_str(),
              {"none", "api"});
  command->add_flag("--wait-plan", options->wait_plan, "After each step wait until hotpack has planned");
  command->add_option("--weights", options->weights, "Allocate so much before the first step, and keep it")
      ->check(SizeOption());
  command
      ->add_option("--optimizer-state", options->optimizer_state, "Allocate so much during the first step, and keep it")
      ->check(SizeOption());
  command->add_flag("--no-touch", options->no_touch, "Do not use the blocks on the device (for timing)");
  command->footer("Example:\n  hotpack run --simulate -- hotpack replay resnet50-train.csv --repeat 20 --wait-plan");
  command->callback([options, exit_code] { *exit_code = RunReplay(*options); });
}

}  // namespace hotpack
