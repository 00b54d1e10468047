#include "tools/report/sequence.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "profiler/history.h"
#include "runtime/script/envelope_learner.h"
#include "tools/cli/count_text.h"
#include "tools/recording/hot_iteration.h"
#include "tools/report/requests.h"

namespace hotpack {
namespace {

constexpr int kWidth = 1040, kLeft = 80, kTop = 8, kFoot = 24;  // pixels
constexpr uint64_t kMostBins = 480;
constexpr int kRowsHeight = 256, kLowestRow = 3, kHighestRow = 12;
constexpr uint32_t kShades = 4;

// All requests of the recording, as the engine would remember them.
HistoryTail TailOf(const Trace& trace) {
  const RecordedRequests requests = CollectRequests(trace);
  HistoryTail tail;
  for (const uint32_t index : requests.monitored) {
    tail.units.push_back(UnitsOf(trace.events[requests.all[index].event].bytes));
    tail.ages.push_back(requests.all[index].age);
  }
  return tail;
}

// Returns whether nearly all iterations request the same sizes in the same order.
bool NearlyAllAreEqual(const HistoryTail& tail, const std::vector<uint64_t>& marks) {
  std::map<std::vector<uint32_t>, uint64_t> kinds;
  uint64_t most = 0;
  for (size_t k = 0; k + 1 < marks.size(); ++k) {
    const auto at = [&](uint64_t ordinal) { return tail.units.begin() + static_cast<ptrdiff_t>(ordinal); };
    most = std::max(most, ++kinds[std::vector<uint32_t>(at(marks[k]), at(marks[k + 1]))]);
  }
  return most * 20 >= (marks.size() - 1) * 19;
}

std::string Range(uint64_t least, uint64_t most) {
  return least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most);
}

}  // namespace

std::optional<IterationSequence> FindSequence(const Trace& trace) {
  const std::vector<uint64_t> marks = MarkedIterations(trace);
  if (marks.size() < 4) return std::nullopt;
  const HistoryTail tail = TailOf(trace);
  if (NearlyAllAreEqual(tail, marks)) return std::nullopt;
  const auto released_at = [&](uint64_t ordinal) {
    return tail.ages[ordinal] == kStillLive ? UINT64_MAX : ordinal + tail.ages[ordinal];
  };
  EnvelopeLearner learner({});
  IterationSequence sequence;
  sequence.iterations = marks.size() - 1;
  std::vector<std::vector<uint32_t>> entries;  // of the requests, by iteration
  for (size_t k = 0; k + 1 < marks.size() && entries.size() < IterationSequence::kMostRows; ++k) {
    entries.push_back(learner.Merge(marks[k], EnvelopeIteration(tail, marks[k], marks[k + 1]), released_at));
    if (learner.Full()) return std::nullopt;
  }
  const Envelope& envelope = learner.envelope();
  sequence.entries = envelope.entries().size();
  for (const EnvelopeEntry& entry : envelope.entries()) sequence.choices += entry.successors.size() > 1 ? 1 : 0;
  for (const std::vector<uint32_t>& each : entries) {
    SequenceRow row;
    for (const uint32_t entry : each) {
      const uint32_t position = envelope.positions()[entry];
      row.jumps += !row.positions.empty() && position != row.positions.back() + 1 ? 1 : 0;
      row.positions.push_back(position);
    }
    sequence.rows.push_back(std::move(row));
  }
  return sequence;
}

std::string SequenceText(const IterationSequence& sequence) {
  uint64_t least = UINT64_MAX, most = 0, least_jumps = UINT64_MAX, most_jumps = 0;
  for (const SequenceRow& row : sequence.rows) {
    least = std::min<uint64_t>(least, row.positions.size());
    most = std::max<uint64_t>(most, row.positions.size());
    least_jumps = std::min(least_jumps, row.jumps);
    most_jumps = std::max(most_jumps, row.jumps);
  }
  std::string text = absl::StrCat("The iterations differ. One sequence of ", sequence.entries, " entries has ");
  if (sequence.rows.size() < sequence.iterations) {
    absl::StrAppend(&text, "the first ", sequence.rows.size(), " of the marked ones");
  } else {
    absl::StrAppend(&text, "all ", sequence.rows.size(), " marked ones");
  }
  absl::StrAppend(&text, ". One requests ", Range(least, most), " entries, in this order, and leaves the order ",
                  Range(least_jumps, most_jumps), most_jumps == 1 ? " time" : " times",
                  ": it leaves entries out, or goes back. ", CountText(sequence.choices, "entry"),
                  sequence.choices == 1 ? " has" : " have", " several successors.");
  return text;
}

std::string SequenceSvg(const IterationSequence& sequence) {
  const size_t rows = std::max<size_t>(1, sequence.rows.size());
  const int row_height = std::clamp(kRowsHeight / static_cast<int>(rows), kLowestRow, kHighestRow);
  const int height = kTop + row_height * static_cast<int>(rows) + kFoot;
  const auto bins = static_cast<uint32_t>(std::min(sequence.entries, kMostBins));
  const double bin_width = static_cast<double>(kWidth - kLeft) / std::max(1u, bins);
  const auto bin_of = [&](uint32_t position) {
    return static_cast<uint32_t>(uint64_t{position} * bins / sequence.entries);
  };
  std::vector<uint32_t> all(bins, 0);
  for (uint32_t position = 0; position < sequence.entries; ++position) ++all[bin_of(position)];
  std::vector<std::string> paths(kShades + 1);
  for (size_t k = 0; k < sequence.rows.size(); ++k) {
    std::vector<uint32_t> requested = sequence.rows[k].positions;  // one entry may be requested twice
    std::sort(requested.begin(), requested.end());
    requested.erase(std::unique(requested.begin(), requested.end()), requested.end());
    std::vector<uint32_t> shades(bins, 0);
    for (const uint32_t position : requested) ++shades[bin_of(position)];
    for (uint32_t bin = 0; bin < bins; ++bin) shades[bin] = (shades[bin] * kShades + all[bin] - 1) / all[bin];
    for (uint32_t bin = 0, end = 0; bin < bins; bin = end) {
      while (end < bins && shades[end] == shades[bin]) ++end;
      absl::StrAppendFormat(&paths[shades[bin]], "M%.2f %dH%.2fv%dH%.2fz", kLeft + bin * bin_width,
                            kTop + row_height * static_cast<int>(k), kLeft + end * bin_width, row_height - 1,
                            kLeft + bin * bin_width);
    }
  }
  std::string svg = absl::StrFormat(
      "<svg class=\"sequence\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"100%%\" role=\"img\" "
      "fill=\"currentColor\" font-size=\"11\"><title>%s</title>\n",
      kWidth, height, SequenceText(sequence));
  for (uint32_t shade = 1; shade <= kShades; ++shade) {
    if (!paths[shade].empty())
      absl::StrAppendFormat(&svg, "<path class=\"shade-%d\" fill-opacity=\"%.2f\" d=\"%s\"/>\n", shade,
                            0.8 * shade / kShades, paths[shade]);
  }
  const auto text = [&](int x, int y, const char* anchor, const std::string& words) {
    absl::StrAppendFormat(&svg, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill-opacity=\"0.7\">%s</text>\n", x, y,
                          anchor, words);
  };
  text(kLeft - 7, kTop + 9, "end", "iteration 1");
  if (rows > 2) text(kLeft - 7, kTop + row_height * static_cast<int>(rows), "end", absl::StrCat(rows));
  text(kLeft, height - 8, "start", "the sequence →");
  text(kWidth, height - 8, "end", absl::StrCat(sequence.entries, " entries"));
  return svg + "</svg>\n";
}

}  // namespace hotpack
