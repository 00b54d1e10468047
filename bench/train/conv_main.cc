// train_conv: a small residual net with its own kernels and without its own allocator, to be run with and without
// hotpack.
#include "bench/train/conv_model.h"
#include "bench/train/program.h"

namespace hotpack::train {
namespace {

int Main(int argc, char** argv) {
  ConvShape shape;
  Program program;
  program.name = "train_conv";
  program.description = "Trains a small residual net on generated images.";
  program.batch = 64;
  program.steps = 30;
  program.epochs = 12;
  program.last_rows = 40;
  program.evaluations = 4;
  program.optimizer = {.kind = OptimizerKind::kSgd, .rate = 0.05f};
  program.add_options = [&](CLI::App& app) {
    app.add_option("--width", shape.width, "Channels of the first of three stages")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--blocks", shape.blocks, "Residual blocks a stage")
        ->check(CLI::Range(1, 100))
        ->capture_default_str();
    app.add_option("--image", shape.image, "Side of the images, pixels")
        ->check(CLI::Range(4, 256))
        ->capture_default_str();
  };
  program.make = [&](Device& device, uint64_t seed) { return std::make_unique<ConvNet>(device, shape, seed); };
  program.make_tiny = [](Device& device, uint64_t seed) {
    return std::make_unique<ConvNet>(device, kTinyConvShape, seed);
  };
  program.tiny_rows = kTinyConvRows;
  return RunProgram(program, argc, argv);
}

}  // namespace
}  // namespace hotpack::train

int main(int argc, char** argv) { return hotpack::train::Main(argc, argv); }
