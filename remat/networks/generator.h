// Generators of graphs by name: `resnet:1007,batch=32`.
//
//   NAME                               all keys have their defaults
//   NAME:1007                          the first keys by place, separated by x if there are several (lstm:4x1024)
//   NAME:1007,batch=32,image=64        and others by name
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
  int64_t standard = 0;  // the default
  int64_t least = 0;
  int64_t most = 0;
  std::string what;
};

// By key. Has all keys of the generator.
using Parameters = std::map<std::string, int64_t, std::less<>>;

struct Generator {
  std::string name;
  std::string what;                 // one line
  std::vector<std::string> places;  // keys that may be given by their place
  std::vector<Key> keys;
  // Exactly one of the two is set. `network` makes training steps: the keys of TrainingKeys() are added to its own.
  std::function<absl::StatusOr<Network>(const Parameters&)> network = nullptr;
  std::function<absl::StatusOr<Graph>(const Parameters&)> graph = nullptr;
};

// Returns the keys weights, updates, states and stay, the members of TrainingOptions.
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

// Returns all generators, by name.
const std::vector<Generator>& Generators();

// Whether `spec`, or its part before the colon, is a generator's name.
bool NamesGenerator(std::string_view spec);

// Returns the graph of a specification. It passes Check(), and is the same on any machine. Thread-safe. Takes a few
// seconds at most, because there are at most kMaxLayers layers. Errors are InvalidArgument with one line:
//  - an unknown name or key, with the known ones;
//  - a malformed number, or one out of its range;
//  - a key given twice, or a size that the family does not have;
//  - sums beyond 2^62 bytes.
absl::StatusOr<Graph> Generate(std::string_view spec);
// Returns the network of a specification, for generators that train one. `options`, if not null, receives the training
// options of the specification.
absl::StatusOr<Network> GenerateNetwork(std::string_view spec, TrainingOptions* options = nullptr);

// Returns a text of several lines: each generator, its keys and their ranges.
std::string GeneratorHelp();

}  // namespace hotpack::remat
