// Writes instances for bench/packer as minimalloc CSVs: deterministic, the same on every machine.
//
//   packer_instances alexnet|googlenet inference|BATCH FILE   a network's propagation (bench/models/networks.h);
//                                                             BATCH: training with mini-batches of that size
//   packer_instances training N[/SEED] FILE                   N blocks: outputs that nest like brackets, gradients,
//                                                             workspaces
//   packer_instances random N[/SEED] FILE                     N blocks: lives and sizes of every magnitude
//   packer_instances lasting N[/SEED] FILE                    N blocks: few huge ones, and small ones that last
//   packer_instances cut N[/SEED] FILE                        a rectangle cut into N blocks: its lower bound is reached
//   packer_instances evenly-cut N[/SEED] FILE                 the same, into blocks of similar areas
#include <charconv>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include "bench/generated_instances.h"
#include "bench/models/networks.h"
#include "packer/csv.h"

namespace hotpack::bench {
namespace {

constexpr int64_t kMostBlocks = 10'000'000;
constexpr int64_t kMostBatch = 65536;

int Usage() {
  fprintf(stderr,
          "usage: packer_instances alexnet|googlenet inference|BATCH FILE\n"
          "       packer_instances training|random|lasting|cut|evenly-cut BLOCKS[/SEED] FILE\n");
  return 2;
}

// Returns a number from 1 to `most`, or 0.
int64_t Number(const std::string& text, int64_t most) {
  int64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && stop == text.data() + text.size() && number >= 1 && number <= most ? number : 0;
}

std::optional<Instance> Propagation(const std::string& what, const std::string& how) {
  const bool inference = how == "inference";
  const int64_t batch = inference ? 1 : Number(how, kMostBatch);
  if (batch == 0) return std::nullopt;
  const Network net = (what == "alexnet" ? AlexNet : GoogLeNet)(batch);
  return inference ? net.Inference() : net.Training();
}

std::optional<Instance> Generated(const std::string& what, const std::string& how) {
  using Generator = Instance (*)(int64_t blocks, uint64_t seed);
  static const std::map<std::string, Generator> kinds = {{"training", TrainingInstance},
                                                         {"random", RandomInstance},
                                                         {"lasting", LastingInstance},
                                                         {"cut", CutInstance},
                                                         {"evenly-cut", EvenlyCutInstance}};
  const size_t slash = how.find('/');
  const int64_t blocks = Number(how.substr(0, slash), kMostBlocks);
  const int64_t seed = slash == std::string::npos ? 1 : Number(how.substr(slash + 1), INT64_MAX);
  const auto kind = kinds.find(what);
  if (kind == kinds.end() || blocks == 0 || seed == 0) return std::nullopt;
  return kind->second(blocks, static_cast<uint64_t>(seed));
}

int Main(int count, char** arguments) {
  if (count != 4) return Usage();
  const std::string what = arguments[1], how = arguments[2], path = arguments[3];
  const bool network = what == "alexnet" || what == "googlenet";
  const std::optional<Instance> instance = network ? Propagation(what, how) : Generated(what, how);
  if (!instance) return Usage();
  const absl::Status written = WriteTextFile(path, FormatCsv(*instance, {}, nullptr));
  if (written.ok()) return 0;
  fprintf(stderr, "packer_instances: %s\n", std::string(written.message()).c_str());
  return 2;
}

}  // namespace
}  // namespace hotpack::bench

int main(int count, char** arguments) { return hotpack::bench::Main(count, arguments); }
