// train_conv: a small residual net with its own kernels and without its own allocator, to be run with and without
// hotpack.
#include "bench/train/conv_model.h"
#include "bench/train/program.h"

namespace hotpack::train {

Program MakeProgram() {
  const auto shape = std::make_shared<ConvShape>();
  Program program;
  program.name = "train_conv";
  program.description = "Trains a small residual net on generated images.";
  program.batch = 64;
  program.steps = 30;
  program.epochs = 12;
  program.last_rows = 40;
  program.evaluations = 4;
  program.optimizer = {.kind = OptimizerKind::kSgd, .rate = 0.05f};
  program.add_options = [shape](CLI::App& app) {
    AddNumber(app, "--width", shape->width, 1, 4096, "Channels of the first of three stages");
    AddNumber(app, "--blocks", shape->blocks, 1, 100, "Residual blocks a stage");
    AddNumber(app, "--image", shape->image, 4, 256, "Side of the images, pixels");
  };
  program.make = [shape](Device& device, uint64_t seed) { return std::make_unique<ConvNet>(device, *shape, seed); };
  program.make_tiny = [](Device& device, uint64_t seed) {
    return std::make_unique<ConvNet>(device, kTinyConvShape, seed);
  };
  program.tiny_rows = kTinyConvRows;
  return program;
}

}  // namespace hotpack::train
