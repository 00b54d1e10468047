// Writes instances for bench/packer as minimalloc CSVs: deterministic, the same on every machine.
//
//   packer_instances alexnet|googlenet inference|BATCH FILE   a network's propagation (bench/models/networks.h); a number:
//                                                             training with mini-batches of that size
//   packer_instances training N FILE                          N blocks: outputs that nest like brackets, gradients,
//                                                             workspaces
//   packer_instances random N FILE                            N blocks: lives and sizes of every magnitude
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>

#include "bench/models/networks.h"
#include "packer/csv.h"

namespace hotpack::bench {
namespace {

// A forward and backward pass over N/3 layers, and what is left of N as more workspaces.
Instance TrainingInstance(int64_t blocks) {
  std::mt19937_64 random(1);
  const auto size = [&random](uint64_t most) { return static_cast<Bytes>(512 * (1 + random() % most)); };
  const int64_t layers = blocks / 3;
  const Clock end = 4 * layers + 2;
  Instance instance;
  for (int64_t i = 0; i < layers; ++i) {
    instance.blocks.push_back({.size = size(2048), .residency = {{2 * i, end - 2 * i}}});
    instance.blocks.push_back({.size = size(8192), .residency = {{2 * i, 2 * i + 1}}});
    instance.blocks.push_back({.size = size(2048), .residency = {{end - 2 * i - 3, end - 2 * i}}});
  }
  for (int64_t i = 3 * layers; i < blocks; ++i) {
    instance.blocks.push_back({.size = size(8192), .residency = {{end - 1, end}}});
  }
  return instance;
}

// Log-uniform lives of 1 to N/10 clock values and sizes of 512 bytes to 2 MiB, begun anywhere in N clock values.
Instance RandomInstance(int64_t blocks) {
  std::mt19937_64 random(1);
  // Raw numbers only: the distributions of standard libraries differ.
  const auto log_uniform = [&random](double most) {
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<int64_t>(std::exp2(share * std::log2(most)));
  };
  Instance instance;
  for (int64_t i = 0; i < blocks; ++i) {
    const auto begin = static_cast<Clock>(random() % static_cast<uint64_t>(blocks));
    const Clock life = log_uniform(1 + static_cast<double>(blocks) / 10);
    instance.blocks.push_back({.size = 512 * log_uniform(4096), .residency = {{begin, begin + life}}});
  }
  return instance;
}

int Usage() {
  fprintf(stderr,
          "usage: packer_instances alexnet|googlenet inference|BATCH FILE\n"
          "       packer_instances training|random BLOCKS FILE\n");
  return 2;
}

int Main(int count, char** arguments) {
  if (count != 4) return Usage();
  const std::string what = arguments[1], how = arguments[2], path = arguments[3];
  int64_t number = 0;
  const bool inference = how == "inference";
  const auto [stop, error] = std::from_chars(how.data(), how.data() + how.size(), number);
  const bool numeric = error == std::errc() && stop == how.data() + how.size() && number >= 1 && number <= 10'000'000;
  const bool network = what == "alexnet" || what == "googlenet";
  if ((!network && what != "training" && what != "random") || !(numeric || (network && inference))) return Usage();
  if (network && number > 65536) return Usage();

  Instance instance;
  if (network) {
    const Network net = (what == "alexnet" ? AlexNet : GoogLeNet)(inference ? 1 : number);
    instance = inference ? net.Inference() : net.Training();
  } else {
    instance = what == "training" ? TrainingInstance(number) : RandomInstance(number);
  }
  const absl::Status written = WriteTextFile(path, FormatCsv(instance, {}, nullptr));
  if (written.ok()) return 0;
  fprintf(stderr, "packer_instances: %s\n", std::string(written.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace hotpack::bench

int main(int count, char** arguments) { return hotpack::bench::Main(count, arguments); }
