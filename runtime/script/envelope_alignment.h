// Aligns an iteration's requests to an envelope's entries: the alignment of two sequences of greatest score.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/script/envelope.h"

namespace hotpack {

// Parts that are not alike and have more pairs of entry and request are not aligned: bounds time and memory of a merge.
inline constexpr size_t kMostAlignedCells = size_t{1} << 26;

// Returns the entry of each request, kNone for those without one. Entries are taken in their order, each at most once.
// `lives`: LifeClass of each request's block. `equal_sizes`: only sizes that the entry has had are aligned. Dynamic
// programming (Needleman and Wunsch 1970) between the common beginning and the common end; O(entries · requests) time
// and bytes of these parts.
std::vector<uint32_t> AlignIteration(const std::vector<EnvelopeEntry>& entries, const std::vector<uint32_t>& order,
                                     const std::vector<EnvelopeRequest>& iteration, const std::vector<int>& lives,
                                     bool equal_sizes);

}  // namespace hotpack
