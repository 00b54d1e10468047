// Finds the entry of an envelope that each request stands for, one request at a time: a beam of hypotheses about where
// the job is.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/script/envelope_script.h"
#include "runtime/script/request_sign.h"

namespace hotpack {

// Not thread-safe.
class EnvelopeFollower {
 public:
  // Begins behind the last request that was merged. Blocks of `live` (entries, one for each live block) keep their
  // entries busy.
  void Start(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live);
  // The same, but stays where the job is: entries keep their numbers in a later script of the same envelope.
  void Continue(std::shared_ptr<const EnvelopeScript> script, const std::vector<uint32_t>& live);
  void Stop();
  const std::shared_ptr<const EnvelopeScript>& script() const { return script_; }  // null: none is followed

  // Returns the entry that the request stands for, kNone if none is likely. O(1) while the expected entry comes, else
  // O(beam · successors), or O(candidates) if no expected one fits.
  uint32_t Next(const RequestSign& sign);

  // The usual request, in two parts, for a caller that serves it only in between.
  struct Hypothesis {
    uint32_t entry = 0;
    uint32_t branch = 0;
    double score = 0;
  };
  // Returns whether the request is that of the only likely position's successor, and sets *next to it. Changes nothing.
  bool Expects(const RequestSign& sign, Hypothesis* next) const {
    int fit = 0;
    const uint32_t entry = Successor(sign, &fit);
    if (entry == kNone) return Chooses(sign, next);
    *next = {entry, beam_[0].branch, beam_[0].score * kDecay + fit};
    return true;
  }
  // The same where there is no choice: returns the only successor of the only position, if the request fits it, and how
  // well; else kNone.
  [[gnu::always_inline]] uint32_t Successor(const RequestSign& sign, int* fit) const {
    if (beam_size_ != 1) [[unlikely]]
      return kNone;
    const EnvelopeStep* const steps = steps_;
    const uint32_t entry = steps[beam_[0].entry].successor;
    if (entry == kNone) [[unlikely]]
      return kNone;
    const EnvelopeStep& step = steps[entry];
    if (step.context != sign.context || live_[entry] > (step.overlaps ? 1u : 0u)) [[unlikely]]
      return kNone;
    *fit = kSeenContext + SizeScore(step, sign.units);
    return *fit >= kFits ? entry : kNone;
  }
  // Goes on to what Expects returned for the request, as Next does.
  void Follow(const Hypothesis& next, const RequestSign& sign) {
    beam_size_ = 1;
    beam_[0] = next;
    ++figures_.expected;
    Remember(sign);
  }
  // Goes on to what Successor returned.
  void FollowSuccessor(uint32_t entry, int fit, const RequestSign& sign) {
    Follow({entry, beam_[0].branch, beam_[0].score * kDecay + fit}, sign);
  }
  // The same for a request that Expects does not answer. Returns the entry; kNone: none is likely. Changes nothing but
  // what Go needs, and uses no heap. O(beam · successors), or O(candidates) if no expected one fits.
  uint32_t Look(const RequestSign& sign);
  // Goes on to what Look returned.
  void Go(const RequestSign& sign) {
    ++figures_.beam;
    figures_.searches += looked_.searched ? 1 : 0;
    std::copy_n(kept_.begin(), kept_size_, beam_.begin());
    beam_size_ = kept_size_;
    looked_.valid = false;
    Remember(sign);
  }

  // Returns entries whose places may serve the request of the last call of Next instead: the other likely ones, then
  // those that were seen with its size. Of these, first those whose blocks live as long as the likeliest one's, or
  // longer: what a short life leaves is soon asked for by others. At most kAlternatives. O(beam + entries of the size).
  static constexpr size_t kAlternatives = 512;
  std::vector<uint32_t> Alternatives();
  // The same, one at a time: calls function(entry) for each of them, until it returns true.
  template <typename Function>
  void ForEachAlternative(Function function);

  // A block of the entry was placed, or released. An entry is no candidate while all its places are in use.
  void Placed(uint32_t entry) {
    ++live_[entry];
    looked_.valid = false;
  }
  void Released(uint32_t entry) {
    if (entry < live_.size()) ReleasedKnown(entry);
  }
  // The same, of an entry of the script that is followed.
  void ReleasedKnown(uint32_t entry) {
    if (live_[entry] > 0) --live_[entry];
    looked_.valid = false;
  }

  // Requests since the start that the expected entry answered, that needed the beam, and that needed a search.
  struct Figures {
    uint64_t expected = 0, beam = 0, searches = 0;
  };
  const Figures& figures() const { return figures_; }

 private:
  static constexpr size_t kBeam = 24;     // hypotheses that are kept
  static constexpr size_t kPast = 16;     // requests that a search compares
  static constexpr double kDecay = 0.93;  // of a hypothesis's score, at each request
  static constexpr int kFits = 4;         // a local score at which nothing else is looked for
  static constexpr int kSeenSize = 4, kSeenContext = 3, kOtherSize = -5;

  bool Busy(uint32_t entry) const { return live_[entry] > (steps_[entry].overlaps ? 1u : 0u); }
  std::span<const Hypothesis> Beam() const { return {beam_.data(), beam_size_}; }
  bool Chooses(const RequestSign& sign, Hypothesis* next) const;
  [[gnu::always_inline]] int SizeScore(const EnvelopeStep& step, uint32_t units) const {
    if (units == step.last_units) return kSeenSize;
    return step.fixed ? kOtherSize : VaryingSizeScore(step, units);
  }
  static bool IsNearSize(const EnvelopeStep& step, uint32_t units);
  int VaryingSizeScore(const EnvelopeStep& step, uint32_t units) const;
  int ContextScore(const EnvelopeStep& step, const RequestSign& sign) const;
  int PastScore(uint32_t entry, const RequestSign& sign) const;
  int Score(uint32_t entry, const RequestSign& sign) const;
  void Offer(uint32_t entry, double score, uint32_t branch);
  int SpreadChoices(const Hypothesis& from, const RequestSign& sign);
  int Spread(const Hypothesis& from, const RequestSign& sign);
  int SpreadBeam(const RequestSign& sign);
  void FindCandidates(const RequestSign& sign);
  void Search(const RequestSign& sign);
  void Keep();
  uint32_t Answer(const RequestSign& sign) const;
  void Remember(const RequestSign& sign) { past_[past_count_++ % kPast] = sign; }
  // The request `back` requests before the next one, from 1.
  const RequestSign& Past(size_t back) const { return past_[(past_count_ - back) % kPast]; }

  std::shared_ptr<const EnvelopeScript> script_;
  const EnvelopeStep* steps_ = nullptr;  // the script's
  std::vector<uint32_t> live_;           // blocks, by entry
  std::array<Hypothesis, kBeam> beam_;   // beam_size_ of them, the best one first
  size_t beam_size_ = 0;
  std::array<Hypothesis, kBeam> kept_;  // the beam after a request, until it is taken
  size_t kept_size_ = 0;
  // The last call of Look, while its answer holds.
  struct Looked {
    bool valid = false, searched = false;
    RequestSign sign;
    uint32_t entry = kNone;
  };
  Looked looked_;
  std::vector<Hypothesis> next_;  // next_size_ of them, one for an entry
  size_t next_size_ = 0;
  double best_ = 0;              // score of next_
  std::vector<uint32_t> slots_;  // by entry: its index in next_, or in tried_, if that has the entry there
  std::vector<uint32_t> tried_;
  struct Candidate {
    uint32_t entry = 0;
    int fit = 0;  // in itself
  };
  std::vector<Candidate> candidates_, others_;  // of a search
  std::array<RequestSign, kPast> past_;         // the last requests, a ring
  uint64_t past_count_ = 0;                     // since the start
  Figures figures_;
};

template <typename Function>
void EnvelopeFollower::ForEachAlternative(Function function) {
  if (past_count_ == 0 || script_ == nullptr) return;
  const uint32_t units = Past(1).units;
  tried_.clear();
  const auto ends_with = [&](uint32_t entry) {
    uint32_t& slot = slots_[entry];
    if (Busy(entry) || (slot < tried_.size() && tried_[slot] == entry)) return false;
    slot = static_cast<uint32_t>(tried_.size());
    tried_.push_back(entry);
    return function(entry) || tried_.size() == kAlternatives;
  };
  for (const Hypothesis& each : Beam()) {
    if (SizeScore(steps_[each.entry], units) >= 1 && ends_with(each.entry)) return;
  }
  const std::span<const uint32_t> of_size = script_->by_units.Find(units);
  const int life = Beam().empty() ? 0 : script_->entries[beam_[0].entry].life;
  for (const bool as_long : {true, false}) {
    for (const uint32_t entry : of_size) {
      if ((script_->entries[entry].life >= life) == as_long && ends_with(entry)) return;
    }
  }
}

}  // namespace hotpack
