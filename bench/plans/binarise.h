// One bit an element instead of 32, where that is all that a gradient needs (Echo, section V-B; Jain et al. 2018,
// "Gist": for ReLU and dropout, where the backward operator works on the bits themselves).
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
  double bytes_per_ns =
      250;  // > 0: how fast an operator reads what it encodes (a streaming kernel of the card in networks/device.h)
  Nanoseconds launch = 5000;  // ≥ 0
};

struct Binarised {
  Graph graph;
  std::vector<OperatorId> from;  // by operator: which one it was; -1: it encodes
  int64_t encoded = 0;           // storages
};

// Where all that the backward pass reads of a feature map are masks (Operator::masks), an operator behind its maker
// writes its bits, a 32nd of its bytes rounded up, and those masks are read from there, forward ones as well; who reads
// them takes as long as before. Left alone are what is given, kept, changed in place or made twice, what some backward
// operator reads whole, and what would not get smaller. O(size of the graph). `graph` must pass Check(), the result
// does. Thread-safe.
Binarised Binarise(const Graph& graph, const Values& values, const Encoding& encoding = {});

// Echo's plan of the graph, or of the binarised one, where that has a lower live peak.
struct BinarisedPlan {
  Binarised binarised;  // with no operator that encodes where it is the graph as it was
  Values values;
  EchoPlan plan;
};
// EchoOptions::allowed is by operator of `graph`; encoders may always run again. Thread-safe.
BinarisedPlan PlanByEchoWithBits(const Graph& graph, const Machine& machine = {}, const EchoOptions& options = {},
                                 const Encoding& encoding = {});

}  // namespace hotpack::remat
