// Operator logs of the DTR prototype (Kirisame et al. 2021, "Dynamic tensor rematerialization"): one JSON object a
// line.
//
//   CONSTANT NAME           a tensor from outside; MEMORY follows. Before the first operator it is given, else an operator that
//                           never runs again makes it
//   CALL NAME ARGS RESULT TIME   for each result MEMORY (bytes) and ALIAS (the argument whose storage it is a view of, or -1)
//   MUTATE NAME ARGS MUTATE TIME   changes the arguments of these indices in place
//   COPY DST SRC, RELEASE NAME   one name more, or less, for a tensor
//   ANNOTATE                is skipped
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "remat/core/graph.h"

namespace hotpack::remat {

// Storages that have a name left at the end are kept; those of them that are given are weights. Operators from the
// first one on whose name has "backward" in it, behind the last convolution and normalisation without, are the backward
// pass; those named like dropout and its kin are random, those named like convolutions and products of matrices are
// heavy. Errors are one line, "NAME:LINE: reason". The graph passes Check(). O(length). Thread-safe.
absl::StatusOr<Graph> ParseDtrLog(std::string_view text, std::string_view name);

}  // namespace hotpack::remat
