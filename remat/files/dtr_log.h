// Operator logs of the DTR prototype (Kirisame et al. 2021, "Dynamic tensor rematerialization"): one JSON object per
// line.
//
//   CONSTANT NAME                  a tensor from outside; MEMORY follows. Before the first operator it is given, later
//                                  an operator with `once` makes it
//   CALL NAME ARGS RESULT TIME     for each result MEMORY (bytes) and ALIAS follow: the argument whose storage it is a
//                                  view of, or -1
//   MUTATE NAME ARGS MUTATE TIME   changes the arguments of these indices in place
//   COPY DST SRC, RELEASE NAME     adds or removes a name of a tensor
//   ANNOTATE                       is skipped
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"

namespace hotpack::remat {

// Returns the graph of a log. It passes Check(). Errors are one line, "NAME:LINE: reason". O(length). Thread-safe.
//  1. Storages that still have a name at the end are kept. Those of them that are given are weights.
//  2. The backward pass begins behind the last convolution and normalisation without "backward" in its name, at the
//     first operator whose name has it.
//  3. Operators named like dropout and its variants are random. Those named like convolutions and matrix products are
//     heavy.
absl::StatusOr<Graph> ParseDtrLog(std::string_view text, std::string_view name);

}  // namespace hotpack::remat
