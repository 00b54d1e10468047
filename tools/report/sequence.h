// Iterations that differ as one sequence: which of its entries each of them requests, and where it leaves the order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profiler/event.h"

namespace hotpack {

struct SequenceRow {
  std::vector<uint32_t> positions;  // of its requests in the sequence, in the order of the requests
  uint64_t jumps = 0;               // requests whose entry is not the one behind that of the request before
};

struct IterationSequence {
  uint64_t entries = 0;
  uint64_t choices = 0;           // entries after which the next request was not always of the same entry
  uint64_t iterations = 0;        // of the recording, each from a mark to the next one
  std::vector<SequenceRow> rows;  // of the first kMostRows of them
  static constexpr uint64_t kMostRows = 64;
};

// Returns the sequence (runtime/script/envelope.h) of the iterations that the recording marks, as hotpack would learn
// it. What comes before the first mark is left out: it has what a program does once. Nothing if fewer than three are
// marked, if at least 95 % of them request the same sizes in the same order, or if there would be too many entries.
// O(entries · requests) for each iteration.
std::optional<IterationSequence> FindSequence(const Trace& trace);

// Returns the sequence in words: its length, and what an iteration takes of it.
std::string SequenceText(const IterationSequence& sequence);

// Returns a picture: a row for each iteration, the sequence to the right. What an iteration requests is dark. Its size
// does not grow with the number of entries. Well-formed, self-contained XML.
std::string SequenceSvg(const IterationSequence& sequence);

}  // namespace hotpack
