// The command line and the run of a training program, common to all programs.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "bench/train/optimizer.h"
#include "bench/train/workload.h"

namespace hotpack::train {

// A program: its name, its own options, and how it makes its workload. It sets the defaults of the common options.
struct Program {
  std::string name;         // "train_conv"
  std::string description;  // one sentence for --help
  int batch = 64;           // rows of a mini-batch
  int steps = 30;           // mini-batches per epoch
  int epochs = 1;
  // Rows of an epoch's last mini-batch, or `--batch` if that is less. 0: as many as the others.
  int last_rows = 0;
  int evaluations = 0;  // batches evaluated after each epoch
  OptimizerOptions optimizer;
  std::function<void(CLI::App&)> add_options;  // its own; may be empty
  std::function<std::unique_ptr<Workload>(Device&, uint64_t seed)> make;
  // For --check-gradients: a workload with a few hundred weights.
  std::function<std::unique_ptr<Workload>(Device&, uint64_t seed)> make_tiny;
  int tiny_rows = 4;  // of that workload's batch
};

// Defined by each program.
Program MakeProgram();

// An option whose value is a number in [least, most].
CLI::Option* AddNumber(CLI::App& app, const std::string& name, int& value, int least, int most,
                       const std::string& help);

// Runs a program. Returns the exit code: 0; 1 if the device or the run fails; 2 on bad input (one line on stderr).
// Common options: --batch --steps --epochs --last-rows --evaluations --accumulate --optimizer sgd|adam --rate
// --allocator cuda|cuda-async|hotpack --streams 1|2 --seed --losses FILE --check-gradients.
int RunProgram(const Program& program, int argc, char** argv);

}  // namespace hotpack::train
