// train_mlp: a multi-layer perceptron with its own kernels and without its own allocator, to be run with and without
// hotpack.
#include "bench/train/mlp_model.h"
#include "bench/train/program.h"

namespace hotpack::train {

Program MakeProgram() {
  const auto shape = std::make_shared<MlpShape>(MlpShape{.features = 128, .width = 1024, .layers = 6, .classes = 10});
  Program program;
  program.name = "train_mlp";
  program.description = "Trains a multi-layer perceptron on a generated task.";
  program.batch = 256;
  program.add_options = [shape](CLI::App& app) {
    AddNumber(app, "--layers", shape->layers, 1, 1000, "Linear layers");
    AddNumber(app, "--width", shape->width, 1, 65536, "Columns of a hidden layer");
  };
  program.make = [shape](Device& device, uint64_t seed) { return std::make_unique<Mlp>(device, *shape, seed); };
  program.make_tiny = [](Device& device, uint64_t seed) {
    return std::make_unique<Mlp>(device, MlpShape{.features = 5, .width = 6, .layers = 3, .classes = 3}, seed);
  };
  return program;
}

}  // namespace hotpack::train
