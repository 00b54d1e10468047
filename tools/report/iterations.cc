#include "tools/report/iterations.h"

#include <algorithm>
#include <utility>

#include "profiler/history.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

// Returns the occurrences of `pattern` in `text` without overlaps, from the front (Knuth, Morris and Pratt). O(both).
std::vector<uint64_t> Occurrences(const std::vector<uint32_t>& text, const std::vector<uint32_t>& pattern) {
  std::vector<uint64_t> found;
  if (pattern.empty()) return found;
  std::vector<size_t> border(pattern.size() + 1, 0);
  for (size_t i = 1, k = 0; i < pattern.size(); ++i) {
    while (k > 0 && pattern[i] != pattern[k]) k = border[k];
    if (pattern[i] == pattern[k]) ++k;
    border[i + 1] = k;
  }
  for (size_t i = 0, k = 0; i < text.size(); ++i) {
    while (k > 0 && text[i] != pattern[k]) k = border[k];
    if (text[i] == pattern[k]) ++k;
    if (k < pattern.size()) continue;
    found.push_back(i + 1 - k);
    k = 0;
  }
  return found;
}

// Cuts parts that are not the hot iteration at the recording's marks.
void CutAtMarks(const std::vector<uint64_t>& marks, std::vector<RunIteration>* iterations) {
  std::vector<RunIteration> cut;
  for (RunIteration rest : *iterations) {
    const uint64_t end = rest.first_request + rest.requests;
    for (auto mark = std::upper_bound(marks.begin(), marks.end(), rest.first_request);
         mark != marks.end() && *mark < end; ++mark) {
      if (rest.state != IterationState::kDiffers) break;
      rest.requests = *mark - rest.first_request;
      cut.push_back(rest);
      rest.first_request = *mark;
    }
    rest.requests = end - rest.first_request;
    cut.push_back(rest);
  }
  *iterations = std::move(cut);
}

std::vector<RunIteration> Cut(const std::vector<uint32_t>& text, const std::vector<uint32_t>& pattern) {
  std::vector<RunIteration> iterations;
  auto add = [&](uint64_t from, uint64_t to, IterationState state) {
    if (from == to) return;
    RunIteration iteration;
    iteration.first_request = from;
    iteration.requests = to - from;
    iteration.state = state;
    iterations.push_back(iteration);
  };
  const std::vector<uint64_t> found = Occurrences(text, pattern);
  uint64_t done = 0;
  for (uint64_t at : found) {
    const bool tail =
        done == 0 && at < pattern.size() &&
        std::equal(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), pattern.end() - static_cast<ptrdiff_t>(at));
    add(done, at, tail ? IterationState::kPart : IterationState::kDiffers);
    add(at, at + pattern.size(), IterationState::kEqual);
    done = at + pattern.size();
  }
  const uint64_t rest = text.size() - done;
  const bool head = rest < pattern.size() && std::equal(pattern.begin(), pattern.begin() + static_cast<ptrdiff_t>(rest),
                                                        text.end() - static_cast<ptrdiff_t>(rest));
  add(done, text.size(), head ? IterationState::kPart : IterationState::kDiffers);
  return iterations;
}

void SetLivePeaks(const Trace& trace, std::vector<RunIteration>* iterations) {
  uint64_t live = 0;
  size_t current = 0;
  for (uint64_t e = 0; e < trace.events.size() && current < iterations->size(); ++e) {
    const Event& event = trace.events[e];
    while (current + 1 < iterations->size() && e >= (*iterations)[current].end_event) ++current;
    const uint64_t bytes = uint64_t{UnitsOf(event.bytes)} * kBlockUnit;
    if (event.kind == EventKind::kAllocate) live += bytes;
    if (event.kind == EventKind::kRelease) live -= bytes;
    (*iterations)[current].live_peak = std::max((*iterations)[current].live_peak, live);
  }
}

}  // namespace

std::vector<RunIteration> CutRun(const Trace& trace, const RecordedRequests& requests, const Profile& hot) {
  std::vector<uint32_t> text, pattern;
  for (uint32_t index : requests.monitored) text.push_back(UnitsOf(trace.events[requests.all[index].event].bytes));
  for (uint32_t i = 0; i < hot.period; ++i) pattern.push_back(hot.blocks[i].units);
  std::vector<RunIteration> iterations = Cut(text, pattern);
  CutAtMarks(MarkedIterations(trace), &iterations);
  for (size_t k = 0; k < iterations.size(); ++k) {
    RunIteration& iteration = iterations[k];
    iteration.first_event = k == 0 ? 0 : requests.all[requests.monitored[iteration.first_request]].event;
    if (k > 0) iterations[k - 1].end_event = iteration.first_event;
    iteration.end_event = trace.events.size();
    for (uint64_t i = 0; iteration.state == IterationState::kEqual && i < iteration.requests; ++i) {
      const ProfileBlock& planned = hot.blocks[i];
      const uint32_t age = requests.all[requests.monitored[iteration.first_request + i]].age;
      iteration.longer_lives += planned.planned && age > planned.age;
    }
  }
  SetLivePeaks(trace, &iterations);
  return iterations;
}

}  // namespace hotpack
