// train_mlp: a training program with its own kernels and no allocator of its own, to be run with and without hotpack.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "bench/train/trainer.h"

namespace hotpack::train {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadInput = 2;

struct Settings {
  TrainOptions train;
  std::string allocator = "malloc";
  std::string losses_path;
  bool check_gradients = false;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

void AddOptions(CLI::App& app, Settings& settings) {
  ModelShape& shape = settings.train.shape;
  shape = {.features = 128, .width = 1024, .layers = 6, .classes = 10};
  settings.train.batch = 256;
  settings.train.steps = 30;
  app.add_option("--layers", shape.layers, "Linear layers")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--width", shape.width, "Columns of a hidden layer")->check(CLI::Range(1, 65536))->capture_default_str();
  app.add_option("--batch", settings.train.batch, "Rows of a mini-batch")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--steps", settings.train.steps, "Mini-batches to train")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--evaluate-every", settings.train.evaluate_every, "Steps between evaluations on unseen rows; 0: none")
      ->check(CLI::Range(0, 100'000'000))
      ->capture_default_str();
  app.add_option("--seed", settings.train.seed, "Of the weights and of the data")->capture_default_str();
  app.add_option("--alloc", settings.allocator, "malloc (cudaMalloc, cudaFree) or async (cudaMallocAsync, cudaFreeAsync)")
      ->check(CLI::IsMember({"malloc", "async"}))
      ->capture_default_str();
  app.add_option("--losses", settings.losses_path, "Write each step's loss here, in hexadecimal: every bit counts");
  app.add_flag("--check-gradients", settings.check_gradients, "Compare gradients with differences of the loss, and end");
}

int CheckGradients(Device& device, uint64_t seed) {
  if (!DeviceComputes(device)) {
    std::printf("train_mlp: gradients not checked: this device is simulated and computes nothing\n");
    return 0;
  }
  const double error = LargestGradientError(device, seed);
  const bool right = error < kGradientTolerance;
  std::printf("train_mlp: gradients %s: largest difference %.4f of the largest gradient (allowed %.2f)\n",
              right ? "right" : "WRONG", error, kGradientTolerance);
  return right ? 0 : kExitFailed;
}

int RunTraining(Device& device, const Settings& settings) {
  File losses;
  if (!settings.losses_path.empty()) {
    losses.reset(std::fopen(settings.losses_path.c_str(), "w"));
    if (losses == nullptr) {
      std::fprintf(stderr, "train_mlp: %s: %m\n", settings.losses_path.c_str());
      return kExitBadInput;
    }
  }
  const TrainResult result = Train(device, settings.train, [&](int, float loss) {
    if (losses != nullptr) std::fprintf(losses.get(), "%a\n", static_cast<double>(loss));
  });
  if (losses != nullptr && std::fclose(losses.release()) != 0) {
    std::fprintf(stderr, "train_mlp: %s: %m\n", settings.losses_path.c_str());
    return kExitBadInput;
  }
  std::printf("train_mlp: %lld parameters, %d steps of %d rows through %s", static_cast<long long>(result.parameters),
              settings.train.steps, settings.train.batch, device.Name().c_str());
  if (DeviceComputes(device)) {
    std::printf(": loss %.4f -> %.4f", static_cast<double>(result.first_loss), static_cast<double>(result.last_loss));
    if (result.accuracy >= 0) std::printf(", accuracy %.3f", result.accuracy);
    std::printf("\n");
  } else {
    std::printf(" on a simulated device: no values\n");
  }
  return 0;
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Trains a multi-layer perceptron with Adam on a generated task.", "train_mlp");
  AddOptions(app, settings);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "train_mlp: %s\n", error.what());
    return kExitBadInput;
  }
  try {
    const auto device = MakeCudaDevice(settings.allocator == "async" ? AllocatorKind::kAsync : AllocatorKind::kMalloc);
    return settings.check_gradients ? CheckGradients(*device, settings.train.seed) : RunTraining(*device, settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_mlp: %s\n", error.what());
    return kExitFailed;
  }
}

}  // namespace
}  // namespace hotpack::train

int main(int argc, char** argv) { return hotpack::train::Main(argc, argv); }
