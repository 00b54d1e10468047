// Stores one bit per element instead of 32, where gradients need no more (Echo, section V-B; Jain et al. 2018, "Gist":
// for ReLU and dropout, whose backward operators work on the bits themselves).
//
//   dropout ──► mask ───────────────► dropout'          dropout ──► mask ─► encode ─► bits ──────► dropout'
//               4 bytes an element                                                 1/32 of it
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/baselines/echo.h"
#include "remat/core/graph.h"
#include "remat/core/values.h"

namespace hotpack::remat {

struct Encoding {
  // > 0: how fast an operator reads the storage that it encodes (a streaming kernel of the card in networks/device.h).
  double bytes_per_ns = 250;
  Nanoseconds launch = 5000;  // ≥ 0
};

struct Binarised {
  Graph graph;
  std::vector<OperatorId> from;  // by operator: the original operator; -1: an encoder
  int64_t encoded = 0;           // number of encoded storages
};

// Returns the graph with encoded feature maps. `graph` must pass Check(), and the result does. O(size of the graph).
// Thread-safe.
//  1. If the backward pass reads only masks of a feature map (Operator::masks), an operator behind its maker writes its
//     bits: a 32nd of its bytes, rounded up.
//  2. All readers of those masks read the bits, forward operators included, in the same time as before.
//  3. Storages are not encoded if they are given, kept, changed in place or made twice, if a backward operator reads
//     them whole, or if they would not get smaller.
Binarised Binarise(const Graph& graph, const Values& values, const Encoding& encoding = {});

// Echo's plan of the graph, or of the encoded graph if that has a lower live peak.
struct BinarisedPlan {
  Binarised binarised;  // without encoders if it is the original graph
  Values values;
  EchoPlan plan;
};
// Returns that plan. EchoOptions::allowed is by operator of `graph`; encoders may always run again. Thread-safe.
BinarisedPlan PlanByEchoWithBits(const Graph& graph, const Machine& machine = {}, const EchoOptions& options = {},
                                 const Encoding& encoding = {});

}  // namespace hotpack::remat
