// Writes recordings for bench/paper as event CSVs: the requests of Chainer 3 in a run of one of the paper's networks
// (Sekiyama 2018, §5.1), by the tables of layers in bench/models. The same on every machine.
//
//   paper_events NETWORK training|inference BATCH ITERATIONS FILE
#include <charconv>
#include <cstdio>
#include <string>

#include "bench/models/networks.h"
#include "bench/models/seq2seq.h"
#include "packer/csv.h"
#include "profiler/event_csv.h"

namespace hotpack::bench {
namespace {

int Usage() {
  fprintf(
      stderr,
      "usage: paper_events NETWORK training|inference BATCH ITERATIONS FILE\n"
      "       NETWORK: alexnet, googlenet, resnet50, inception_resnet_v1, inception_resnet_v2, seq2seq, seq2seq_tiny\n"
      "       BATCH from 1 to 65536; seq2seq's inference has a BATCH of 1. ITERATIONS from 1 to 1000\n");
  return 2;
}

bool ReadNumber(const std::string& text, int64_t most, int64_t* number) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && stop == text.data() + text.size() && *number >= 1 && *number <= most;
}

// Returns false if there is no such network.
bool Record(const std::string& name, bool training, int64_t batch, int iterations, Trace* trace) {
  if (name == "seq2seq" || name == "seq2seq_tiny") {
    const Seq2SeqSize size =
        name == "seq2seq" ? Seq2SeqSize{}
                          : Seq2SeqSize{.vocabulary = 500, .units = 32, .layers = 2, .longest = 9, .generated = 20};
    *trace = training ? RecordSeq2SeqTraining(size, batch, iterations) : RecordSeq2SeqInference(size, iterations);
    return true;
  }
  Network net(batch);
  if (name == "alexnet") {
    net = AlexNet(batch);
  } else if (name == "googlenet") {
    net = training ? GoogLeNetInTraining(batch) : GoogLeNet(batch);
  } else if (name == "resnet50") {
    net = ResNet50(batch);
  } else if (name == "inception_resnet_v1") {
    net = InceptionResNet1(batch);
  } else if (name == "inception_resnet_v2") {
    net = InceptionResNet2(batch);
  } else {
    return false;
  }
  *trace = training ? net.RecordTraining(iterations) : net.RecordInference(iterations);
  return true;
}

int Main(int count, char** arguments) {
  if (count != 6) return Usage();
  const std::string name = arguments[1], how = arguments[2], path = arguments[5];
  int64_t batch = 0, iterations = 0;
  if (how != "training" && how != "inference") return Usage();
  if (!ReadNumber(arguments[3], 65536, &batch) || !ReadNumber(arguments[4], 1000, &iterations)) return Usage();
  if (name.starts_with("seq2seq") && how == "inference" && batch != 1) return Usage();
  Trace trace;
  if (!Record(name, how == "training", batch, static_cast<int>(iterations), &trace)) return Usage();
  const absl::Status written = WriteTextFile(path, FormatEventCsv(trace));
  if (written.ok()) return 0;
  fprintf(stderr, "paper_events: %s\n", std::string(written.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace hotpack::bench

int main(int count, char** arguments) { return hotpack::bench::Main(count, arguments); }
