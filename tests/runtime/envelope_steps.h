// Jobs as lists of requests and releases, for the tests of envelopes: steps of layers, of which some may be left out.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "runtime/script/envelope.h"
#include "runtime/script/request_sign.h"

namespace hotpack_test {

// Counts requests and releases as an engine would, and splits them into iterations.
class EnvelopeJob {
 public:
  // Requests a block and returns its ordinal.
  uint64_t Request(uint32_t units, uint32_t taken = hotpack::kNone) {
    iteration_.push_back({context_.Sign(units), UINT64_MAX, taken});
    context_.Clear();
    released_.push_back(UINT64_MAX);
    return released_.size() - 1;
  }
  void Release(uint64_t ordinal) {
    released_[ordinal] = released_.size();
    context_.Add(released_.size() - ordinal);
  }
  // What the next request would show.
  hotpack::RequestSign Sign(uint32_t units) const { return context_.Sign(units); }
  // Ends the iteration and merges it. Returns the entries of its requests.
  template <typename Merger>  // an Envelope, or an EnvelopeLearner
  std::vector<uint32_t> End(Merger* envelope) {
    for (size_t i = 0; i < iteration_.size(); ++i) iteration_[i].released = released_[first_ + i];
    const std::vector<uint32_t> entries =
        envelope->Merge(first_, iteration_, [this](uint64_t ordinal) { return released_[ordinal]; });
    first_ = released_.size();
    iteration_.clear();
    return entries;
  }
  const std::vector<hotpack::EnvelopeRequest>& iteration() const { return iteration_; }

 private:
  hotpack::ReleaseContext context_;
  std::vector<hotpack::EnvelopeRequest> iteration_;
  std::vector<uint64_t> released_;
  uint64_t first_ = 0;
};

// One training step: for each layer an activation and a workspace forward, and a gradient backward. `length` scales all
// sizes; `skipped`: a layer that is left out.
struct Layers {
  uint32_t count = 6, length = 10;
  int skipped = -1;
};

// Calls request(units) → handle and release(handle) in the step's order.
template <typename RequestFunction, typename ReleaseFunction>
void PlayStep(const Layers& layers, RequestFunction request, ReleaseFunction release) {
  std::vector<decltype(request(0u))> activations;
  for (uint32_t k = 0; k < layers.count; ++k) {
    if (static_cast<int>(k) == layers.skipped) continue;
    activations.push_back(request(layers.length * (k + 3)));
    const auto workspace = request(layers.length * 2 + k);
    release(workspace);
  }
  for (size_t k = activations.size(); k-- > 0;) {
    const auto gradient = request(layers.length * 4 + static_cast<uint32_t>(k));
    release(activations[k]);
    const auto update = request(7);
    release(gradient);
    release(update);
  }
}

inline void PlayStep(const Layers& layers, EnvelopeJob* job) {
  PlayStep(
      layers, [job](uint32_t units) { return job->Request(units); },
      [job](uint64_t ordinal) { job->Release(ordinal); });
}

}  // namespace hotpack_test
