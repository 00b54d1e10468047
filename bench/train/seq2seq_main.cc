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
  app.add_option("--layers", shape.layers, "LSTM layers of the encoder, and of the decoder")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--width", shape.width, "Columns of embeddings and hidden states")
      ->check(CLI::Range(1, 16384))
      ->capture_default_str();
  app.add_option("--vocabulary", shape.vocabulary, "Words of either language, padding, begin and end among them")
      ->check(CLI::Range(kFirstWord + 1, 10'000'000))
      ->capture_default_str();
  app.add_option("--max-words", options.max_words, "Words of the longest sentences; training cuts them at 50")
      ->check(CLI::Range(1, options.generated_words - 1))
      ->capture_default_str();
  app.add_flag("--stop-at-end", options.stop_at_end,
               "End an evaluation when all its sentences have ended, not after " +
                   std::to_string(options.generated_words) + " words");
}

int Main(int argc, char** argv) {
  Seq2SeqOptions options = Defaults();
  Program program;
  program.name = "train_seq2seq";
  program.description = "Trains an LSTM sequence-to-sequence model with attention on a generated translation task.";
  program.batch = 64;
  program.steps = 30;
  program.epochs = 2;
  program.last_rows = 40;
  program.evaluations = 2;
  program.add_options = [&](CLI::App& app) { AddOptions(app, options); };
  program.make = [&](Device& device, uint64_t seed) {
    return std::make_unique<Seq2SeqWorkload>(device, options, seed);
  };
  program.make_tiny = [](Device& device, uint64_t seed) {
    Seq2SeqOptions tiny;
    tiny.shape = kTinySeq2Seq;
    tiny.max_words = 5;
    return std::make_unique<Seq2SeqWorkload>(device, tiny, seed);
  };
  return RunProgram(program, argc, argv);
}

}  // namespace
}  // namespace hotpack::train

int main(int argc, char** argv) { return hotpack::train::Main(argc, argv); }
