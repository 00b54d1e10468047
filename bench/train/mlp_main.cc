// train_mlp: a multi-layer perceptron with its own kernels and without its own allocator, to be run with and without
// hotpack.
#include "bench/train/mlp_model.h"
#include "bench/train/program.h"

namespace hotpack::train {
namespace {

int Main(int argc, char** argv) {
  MlpShape shape = {.features = 128, .width = 1024, .layers = 6, .classes = 10};
  Program program;
  program.name = "train_mlp";
  program.description = "Trains a multi-layer perceptron on a generated task.";
  program.batch = 256;
  program.add_options = [&](CLI::App& app) {
    app.add_option("--layers", shape.layers, "Linear layers")->check(CLI::Range(1, 1000))->capture_default_str();
    app.add_option("--width", shape.width, "Columns of a hidden layer")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
  };
  program.make = [&](Device& device, uint64_t seed) { return std::make_unique<Mlp>(device, shape, seed); };
  program.make_tiny = [](Device& device, uint64_t seed) {
    return std::make_unique<Mlp>(device, MlpShape{.features = 5, .width = 6, .layers = 3, .classes = 3}, seed);
  };
  return RunProgram(program, argc, argv);
}

}  // namespace
}  // namespace hotpack::train

int main(int argc, char** argv) { return hotpack::train::Main(argc, argv); }
