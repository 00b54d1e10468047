// Writes instances for bench/packer as minimalloc CSVs: deterministic, the same on every machine.
//
//   packer_instances alexnet|googlenet inference|BATCH FILE   a network's propagation (bench/models/networks.h);
//                                                             BATCH: training with mini-batches of that size
//   packer_instances training N FILE                          N blocks: outputs that nest like brackets, gradients,
//                                                             workspaces
//   packer_instances random N FILE                            N blocks: lives and sizes of every magnitude
//   packer_instances cut N FILE                               a rectangle cut into N blocks: its lower bound is reached
#include <charconv>
#include <cstdio>
#include <string>

#include "bench/generated_instances.h"
#include "bench/models/networks.h"
#include "packer/csv.h"

namespace hotpack::bench {
namespace {

int Usage() {
  fprintf(stderr,
          "usage: packer_instances alexnet|googlenet inference|BATCH FILE\n"
          "       packer_instances training|random|cut BLOCKS FILE\n");
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
  const bool generated = what == "training" || what == "random" || what == "cut";
  if (!(network || generated) || !(numeric || (network && inference))) return Usage();
  if (network && number > 65536) return Usage();

  Instance instance;
  if (network) {
    const Network net = (what == "alexnet" ? AlexNet : GoogLeNet)(inference ? 1 : number);
    instance = inference ? net.Inference() : net.Training();
  } else {
    instance = what == "training" ? TrainingInstance(number)
               : what == "random" ? RandomInstance(number)
                                  : CutInstance(number);
  }
  const absl::Status written = WriteTextFile(path, FormatCsv(instance, {}, nullptr));
  if (written.ok()) return 0;
  fprintf(stderr, "packer_instances: %s\n", std::string(written.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace hotpack::bench

int main(int count, char** arguments) { return hotpack::bench::Main(count, arguments); }
