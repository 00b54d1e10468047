// The command line and the run of a training program: the same for all.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/train/optimizer.h"
#include "bench/train/workload.h"

namespace hotpack::train {

// A program is its name, its own options, and how to make its workload. Defaults of the common options are the
// program's.
struct Program {
  std::string name;         // "train_conv"
  std::string description;  // one sentence for --help
  int batch = 64;           // rows of a mini-batch
  int steps = 30;           // mini-batches an epoch
  int epochs = 1;
  int last_rows = 0;    // rows of an epoch's last mini-batch, or `--batch` if that is less; 0: as many as the others
  int evaluations = 0;  // batches evaluated after each epoch
  OptimizerOptions optimizer;
  std::function<void(CLI::App&)> add_options;  // its own; may be empty
  std::function<std::unique_ptr<Workload>(Device&, uint64_t seed)> make;
  std::function<std::unique_ptr<Workload>(Device&, uint64_t seed)>
      make_tiny;      // for --check-gradients; a few hundred weights
  int tiny_rows = 4;  // of that workload's batch
};

// Common options: --batch --steps --epochs --last-rows --evaluations --accumulate --optimizer sgd|adam --rate
// --allocator cuda|cuda-async|hotpack --streams 1|2 --seed --losses FILE --check-gradients.
// Returns the exit code: 0, 1 when the device or the run fails, 2 on bad input (one line on stderr).
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace hotpack::train
