// train_seq2seq: an LSTM sequence-to-sequence model with attention, to be run with and without hotpack. Its requests
// vary from batch to batch with the sentences' lengths.
#include "bench/train/program.h"
#include "bench/train/seq2seq_workload.h"

namespace hotpack::train {
namespace {

Seq2SeqOptions Defaults() {
  Seq2SeqOptions options;
  options.shape = {.vocabulary = 8000, .width = 256, .layers = 2};
  options.max_words = 99;
  return options;
}

void AddOptions(CLI::App& app, Seq2SeqOptions& options) {
  Seq2SeqShape& shape = options.shape;
  AddNumber(app, "--layers", shape.layers, 1, 100, "LSTM layers of the encoder, and of the decoder");
  AddNumber(app, "--width", shape.width, 1, 16384, "Columns of embeddings and hidden states");
  AddNumber(app, "--vocabulary", shape.vocabulary, kFirstWord + 1, 10'000'000,
            "Words of either language, padding, begin and end among them");
  AddNumber(app, "--max-words", options.max_words, 1, options.generated_words - 1,
            "Words of the longest sentences; training cuts them at 50");
  app.add_flag("--stop-at-end", options.stop_at_end,
               "End an evaluation when all its sentences have ended, not after " +
                   std::to_string(options.generated_words) + " words");
}

}  // namespace

Program MakeProgram() {
  const auto options = std::make_shared<Seq2SeqOptions>(Defaults());
  Program program;
  program.name = "train_seq2seq";
  program.description = "Trains an LSTM sequence-to-sequence model with attention on a generated translation task.";
  program.batch = 64;
  program.steps = 30;
  program.epochs = 2;
  program.last_rows = 40;
  program.evaluations = 2;
  program.add_options = [options](CLI::App& app) { AddOptions(app, *options); };
  program.make = [options](Device& device, uint64_t seed) {
    return std::make_unique<Seq2SeqWorkload>(device, *options, seed);
  };
  program.make_tiny = [](Device& device, uint64_t seed) {
    Seq2SeqOptions tiny;
    tiny.shape = kTinySeq2Seq;
    tiny.max_words = 5;
    return std::make_unique<Seq2SeqWorkload>(device, tiny, seed);
  };
  return program;
}

}  // namespace hotpack::train
