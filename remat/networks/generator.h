// Generators of graphs by name: `resnet:1007,batch=32`.
//
//   NAME                        everything as it stands in the table
//   NAME:1007                   the first keys by their place, apart by x where there are several (lstm:4x1024)
//   NAME:1007,batch=32,image=64 and others by name
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"
#include "remat/networks/network.h"
#include "remat/networks/training_graph.h"

namespace hotpack::remat {

struct Key {
  std::string name;
  int64_t standard = 0;  // where nothing is said
  int64_t least = 0;
  int64_t most = 0;
  std::string what;
};

// By key: each key of the generator is there.
using Parameters = std::map<std::string, int64_t, std::less<>>;

struct Generator {
  std::string name;
  std::string what;                 // one line
  std::vector<std::string> places;  // keys that may be given by place
  std::vector<Key> keys;
  // One of the two. `network` makes training steps: the keys of TrainingKeys() are added to its own.
  std::function<absl::StatusOr<Network>(const Parameters&)> network = nullptr;
  std::function<absl::StatusOr<Graph>(const Parameters&)> graph = nullptr;
};

// weights, updates, states, stay: what TrainingOptions has.
std::vector<Key> TrainingKeys();
TrainingOptions TrainingOptionsOf(const Parameters& parameters);

inline constexpr int64_t kMaxBatch = 1'000'000;
inline constexpr int64_t kMaxImage = 16'384;

inline Key BatchKey(int64_t standard) { return {"batch", standard, 1, kMaxBatch, "samples"}; }
inline Key ImageKey(int64_t standard, int64_t least = 1) {
  return {"image", standard, least, kMaxImage, "height and width, pixels"};
}
inline Key ClassesKey(int64_t standard) { return {"classes", standard, 1, 1'000'000, "of the classifier"}; }
inline Key WorkspaceKey() { return {"workspace", 0, 0, 1'048'576, "MiB for each convolution, at most"}; }

// All of them, by name.
const std::vector<Generator>& Generators();

// Whether the part of `spec` before its colon, or all of it, is a generator's name.
bool NamesGenerator(std::string_view spec);

// InvalidArgument with one line: a name or a key that is not known, with those that are; a number that is none, or out
// of its range; a key given twice; a size that the family does not have; sums beyond 2^62 bytes. The graph passes
// Check(). The same for the same specification on any machine. Thread-safe. At most a few seconds: no more than
// kMaxLayers layers.
absl::StatusOr<Graph> Generate(std::string_view spec);
// Those generators that train a network, as far as the network. `options`, if it is given, takes what the specification
// says.
absl::StatusOr<Network> GenerateNetwork(std::string_view spec, TrainingOptions* options = nullptr);

// A text of some lines: each generator, its keys, their ranges.
std::string GeneratorHelp();

}  // namespace hotpack::remat
