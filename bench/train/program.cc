#include "bench/train/program.h"

#include <cstdio>
#include <exception>
#include <map>
#include <utility>

#include "bench/train/trainer.h"
#include "bench/train/use_log.h"

namespace hotpack::train {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadInput = 2;
constexpr int kMaxRows = 1 << 20;
constexpr int kMaxSteps = 100'000'000;

struct Settings {
  TrainOptions train;
  DeviceOptions device;
  uint64_t seed = 1;
  std::string losses_path;
  std::string uses_path;
  bool check_gradients = false;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Settings Defaults(const Program& program) {
  Settings settings;
  settings.train.rows = program.batch;
  settings.train.steps = program.steps;
  settings.train.epochs = program.epochs;
  settings.train.last_rows = program.last_rows;
  settings.train.evaluations = program.evaluations;
  settings.train.optimizer = program.optimizer;
  return settings;
}

// An option whose values are names.
template <typename T>
void AddChoice(CLI::App& app, const std::string& name, T& value, const std::map<std::string, T>& names,
               const std::string& help) {
  std::string list, chosen;
  for (const auto& [word, meaning] : names) {
    list += (list.empty() ? "" : "|") + word;
    if (meaning == value) chosen = word;
  }
  app.add_option_function<std::string>(
         name, [&value, names](const std::string& word) { value = names.at(word); }, help)
      ->check([names, list](const std::string& word) {
        return names.count(word) != 0 ? "" : word + " is not one of " + list;
      })
      ->type_name(list)
      ->default_str(chosen);
}

void AddTrainingOptions(CLI::App& app, TrainOptions& train) {
  AddNumber(app, "--batch", train.rows, 1, kMaxRows, "Rows of a mini-batch, or of each micro-batch with --accumulate");
  AddNumber(app, "--steps", train.steps, 1, kMaxSteps, "Mini-batches an epoch");
  AddNumber(app, "--epochs", train.epochs, 1, kMaxSteps, "Passes over as many mini-batches");
  AddNumber(app, "--last-rows", train.last_rows, 0, kMaxRows,
            "Rows of an epoch's last mini-batch, at most --batch; 0: as many as the others");
  AddNumber(app, "--evaluations", train.evaluations, 0, kMaxSteps, "Batches of unseen rows evaluated after each epoch");
  AddNumber(app, "--accumulate", train.accumulate, 1, kMaxRows, "Micro-batches whose gradients make one step");
  AddChoice<OptimizerKind>(app, "--optimizer", train.optimizer.kind,
                           {{"sgd", OptimizerKind::kSgd}, {"adam", OptimizerKind::kAdam}},
                           "SGD with momentum 0.9, or Adam");
  app.add_option("--rate", train.optimizer.rate, "Learning rate")->check(CLI::Range(0.0f, 1e6f))->capture_default_str();
}

void AddRunOptions(CLI::App& app, Settings& settings) {
  AddChoice<AllocatorKind>(
      app, "--allocator", settings.device.allocator,
      {{"cuda", AllocatorKind::kCuda}, {"cuda-async", AllocatorKind::kCudaAsync}, {"hotpack", AllocatorKind::kHotpack}},
      "cudaMalloc and cudaFree, their Async forms, or hotpack_malloc and hotpack_free");
  AddNumber(app, "--streams", settings.device.streams, 1, 2,
            "1: all work on the default stream; 2: one for computing and one for copies");
  app.add_option("--seed", settings.seed, "Of the weights and of the data")->capture_default_str();
  app.add_option("--losses", settings.losses_path, "Write each step's loss here, in hexadecimal: every bit counts");
  app.add_option("--uses", settings.uses_path, "Write here which work uses each block first and last (use_log.h)");
  app.add_flag("--check-gradients", settings.check_gradients,
               "Compare gradients with differences of the loss, and end");
}

int CheckGradients(const Program& program, Device& device, uint64_t seed) {
  const char* name = program.name.c_str();
  if (!DeviceComputes(device)) {
    std::printf("%s: gradients not checked: this device is simulated and computes nothing\n", name);
    return 0;
  }
  const auto workload = program.make_tiny(device, seed);
  const double error = LargestGradientError(device, *workload, program.tiny_rows);
  const bool right = error < kGradientTolerance;
  std::printf("%s: gradients %s: largest difference %.4f of the largest gradient (allowed %.2f)\n", name,
              right ? "right" : "WRONG", error, kGradientTolerance);
  return right ? 0 : kExitFailed;
}

// Lowers a default that exceeds the batch. Returns false if the option itself does.
bool LimitLastRows(const CLI::App& app, TrainOptions& train) {
  if (train.last_rows <= train.rows) return true;
  if (app.count("--last-rows") > 0) return false;
  train.last_rows = train.rows;
  return true;
}

// "3 epochs of 30 steps of 4 x 256 rows"
std::string Amount(const TrainOptions& train) {
  std::string text;
  if (train.epochs > 1) text += std::to_string(train.epochs) + " epochs of ";
  text += std::to_string(train.steps) + " steps of ";
  if (train.accumulate > 1) text += std::to_string(train.accumulate) + " x ";
  return text + std::to_string(train.rows) + " rows";
}

int RunTraining(const Program& program, Device& device, const Settings& settings) {
  const char* name = program.name.c_str();
  File losses;
  if (!settings.losses_path.empty()) {
    losses.reset(std::fopen(settings.losses_path.c_str(), "w"));
    if (losses == nullptr) {
      std::fprintf(stderr, "%s: %s: %m\n", name, settings.losses_path.c_str());
      return kExitBadInput;
    }
  }
  const auto workload = program.make(device, settings.seed);
  const TrainResult result = Train(device, *workload, settings.train, [&](int64_t, float loss) {
    if (losses != nullptr) std::fprintf(losses.get(), "%a\n", static_cast<double>(loss));
  });
  if (losses != nullptr && std::fclose(losses.release()) != 0) {
    std::fprintf(stderr, "%s: %s: %m\n", name, settings.losses_path.c_str());
    return kExitBadInput;
  }
  std::printf("%s: %lld parameters, %s through %s", name, static_cast<long long>(result.parameters),
              Amount(settings.train).c_str(), device.Name().c_str());
  if (DeviceComputes(device)) {
    std::printf(": loss %.4f -> %.4f", static_cast<double>(result.first_loss), static_cast<double>(result.last_loss));
    if (settings.train.evaluations > 0) std::printf(", %s %.3f", workload->MeritName().c_str(), result.merit);
    std::printf("\n");
  } else {
    std::printf(" on a simulated device: no values\n");
  }
  return 0;
}

}  // namespace

CLI::Option* AddNumber(CLI::App& app, const std::string& name, int& value, int least, int most,
                       const std::string& help) {
  return app.add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}

int RunProgram(const Program& program, int argc, char** argv) {
  Settings settings = Defaults(program);
  CLI::App app(program.description, program.name);
  if (program.add_options) program.add_options(app);
  AddTrainingOptions(app, settings.train);
  AddRunOptions(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), error.what());
    return kExitBadInput;
  }
  if (!LimitLastRows(app, settings.train)) {
    std::fprintf(stderr, "%s: --last-rows %d is more than --batch %d\n", program.name.c_str(), settings.train.last_rows,
                 settings.train.rows);
    return kExitBadInput;
  }
  try {
    auto device = MakeCudaDevice(settings.device);
    if (!settings.uses_path.empty()) device = LogUses(std::move(device), settings.uses_path);
    return settings.check_gradients ? CheckGradients(program, *device, settings.seed)
                                    : RunTraining(program, *device, settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), error.what());
    return kExitFailed;
  }
}

}  // namespace hotpack::train
