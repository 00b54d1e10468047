#include "runtime/script/variants.h"

#include <algorithm>

namespace hotpack {

void Variant::NotePass(bool clean) {
  constexpr uint32_t kHelped = 16;  // iterations
  ++passes;
  clean_passes = clean ? clean_passes + 1 : 0;
  if (clean_passes % kHelped == kHelped - 1) replans /= 2;
}

void Variant::NoteReplan() {
  constexpr uint32_t kFree = 4, kMax = 16;  // after these, each wait is twice as many iterations
  ++replans;
  replan_from = passes + (replans <= kFree ? 0 : uint64_t{1} << std::min(replans - kFree, kMax));
}

uint64_t Variants::BytesOf(const Script& script) {
  constexpr uint64_t kOfFollower = 64 + 16 + 2 * sizeof(LiveSlots::Slot);  // cell, Seen, slots
  uint64_t each = sizeof(ScriptEntry) + sizeof(ProfileBlock) + sizeof(script.contexts[0]) + kOfFollower;
  return script.size() * each + script.successors.size() * sizeof(script.successors[0]);
}

void Variants::Evict(uint64_t followed) {
  uint64_t bytes = 0;
  for (const Variant& v : all_) bytes += BytesOf(*v.script);
  while (all_.size() > kMax || bytes > kMaxBytes) {
    auto oldest = all_.end();
    for (auto it = std::next(all_.begin()); it != all_.end(); ++it) {  // the newest stays
      if (it->number != followed && (oldest == all_.end() || it->used_at <= oldest->used_at)) oldest = it;
    }
    if (oldest == all_.end()) return;
    bytes -= BytesOf(*oldest->script);
    all_.erase(oldest);
    ++evicted_;
  }
}

Variant* Variants::Add(std::shared_ptr<const Script> script, uint64_t requests, uint64_t followed) {
  for (auto it = all_.begin(); it != all_.end(); ++it) {
    if (it->script->size() != script->size()) continue;
    if (CommonHead(it->script->profile, script->profile) != script->size()) continue;
    SetScript(&*it, std::move(script));
    it->used_at = requests;
    all_.splice(all_.begin(), all_, it);
    Evict(followed);
    return &all_.front();
  }
  passes_.reserve(kPasses);  // here, not at an iteration's end
  runs_.reserve(kPasses);
  Variant& added = all_.emplace_front();
  added.script = std::move(script);
  added.number = ++last_number_;
  added.used_at = requests;
  Evict(followed);
  return &added;
}

Variant* Variants::Replace(uint64_t number, std::shared_ptr<const Script> script) {
  Variant* v = Find(number);
  if (v == nullptr) return nullptr;
  SetScript(v, std::move(script));
  return v;
}

void Variants::SetScript(Variant* variant, std::shared_ptr<const Script> script) {
  const uint64_t old = variant->number;
  variant->script = std::move(script);
  variant->number = ++last_number_;
  variant->idle_follower = Follower();
  variant->fresh = true;
  for (Pass& pass : passes_) {
    if (pass.number == old) pass.number = variant->number;
  }
  if (expected_.number == old) expected_.number = variant->number;
  if (predicted_ == old) predicted_ = variant->number;
}

void Variants::NoteIteration(uint64_t number, uint32_t phase) {
  constexpr uint32_t kLongestRun = 64;
  if (predicted_ != 0) {  // a mistake counts more than a success
    mistakes_ = predicted_ == number ? mistakes_ - std::min(mistakes_, 1u) : std::min(mistakes_ + 2, kLongestRun);
  }
  predicted_ = 0;
  const Pass pass{number, phase};
  uniform_ = !passes_.empty() && passes_.back() == pass ? uniform_ + 1 : 0;
  if (uniform_ > kLongestRun) return;  // always the same: another one does not change the expectation
  if (passes_.size() == kPasses) {
    passes_.erase(passes_.begin());
    runs_.erase(runs_.begin());
  }
  passes_.push_back(pass);
  runs_.push_back(0);
  const size_t last = passes_.size() - 1;
  for (size_t i = last; i-- > 0;) {  // a run is one longer than the previous one, or broken
    const uint8_t before = i > 0 ? runs_[i - 1] : 0;
    runs_[i] = passes_[i].number != number ? 0 : static_cast<uint8_t>(std::min<uint32_t>(before + 1, kLongestRun));
  }
  expected_ = {};
  expected_after_ = 0;
  for (size_t end = last; end-- > 0;) {  // the newest of the longest
    const uint32_t run = runs_[end];
    if (run == expected_after_ && run > 0) agreed_ &= passes_[end + 1] == expected_;
    if (run <= expected_after_) continue;
    expected_after_ = run;
    expected_ = passes_[end + 1];
    agreed_ = true;
  }
}

Variant* Variants::Predict(uint64_t followed, uint32_t* phase) {
  constexpr uint32_t kSure = 4;  // equal iterations
  if (expected_.number == 0 || expected_.number == followed || !agreed_ || expected_after_ < kSure + mistakes_)
    return nullptr;
  Variant* next = Find(expected_.number);
  if (next == nullptr || expected_.phase >= next->script->size()) return nullptr;
  *phase = expected_.phase;
  predicted_ = next->number;
  return next;
}

Variant* Variants::Find(uint64_t number) {
  auto it = std::find_if(all_.begin(), all_.end(), [&](const Variant& v) { return v.number == number; });
  return it == all_.end() ? nullptr : &*it;
}

Variant* Variants::Find(const Script* script) {
  auto it = std::find_if(all_.begin(), all_.end(), [&](const Variant& v) { return v.script.get() == script; });
  return it == all_.end() ? nullptr : &*it;
}

void Variants::Remove(uint64_t number) {
  all_.remove_if([&](const Variant& v) { return v.number == number; });
}

uint32_t Variants::LongestRequests() const {
  uint32_t longest = 0;
  for (const Variant& v : all_) longest = std::max(longest, v.script->size());
  return longest;
}

Variant* Variants::MatchHead(const History& history, uint64_t begin, uint64_t newest, uint64_t except) {
  Variant* best = nullptr;
  if (newest - begin >= history.Window()) return nullptr;
  for (Variant& v : all_) {
    if (v.number == except || v.script->size() <= newest - begin) continue;
    const std::vector<ScriptEntry>& entries = v.script->entries;
    uint64_t at = newest;  // from the newest backwards: heads are similar
    while (entries[at - begin].units == history.Units(at) && at > begin) --at;
    if (entries[at - begin].units != history.Units(at)) continue;
    auto rank = [&](const Variant& x) { return std::make_pair(x.number == expected_.number, x.used_at); };
    if (best == nullptr || rank(v) > rank(*best)) best = &v;
  }
  return best;
}

Variant* Variants::MatchContext(const History& history, uint64_t newest, uint32_t least, uint64_t except,
                                uint32_t* entry) {
  constexpr int kTries = 64;
  if (newest + 1 < Script::kContext) return nullptr;
  uint32_t window[Script::kContext];
  for (uint32_t k = 0; k < Script::kContext; ++k) window[k] = history.Units(newest + 1 - Script::kContext + k);
  uint32_t hash = ContextHash(window, Script::kContext);
  Variant* best = nullptr;
  uint32_t best_length = least - 1;
  for (Variant& v : all_) {
    if (v.number == except) continue;
    const Script& script = *v.script;
    uint32_t n = script.size();
    auto it = std::lower_bound(script.contexts.begin(), script.contexts.end(), std::make_pair(hash, 0u));
    for (int tries = 0; tries < kTries && it != script.contexts.end() && it->first == hash; ++it, ++tries) {
      uint32_t last = it->second == 0 ? n - 1 : it->second - 1, i = last, length = 0;
      while (length < kLongestContext && length <= newest &&
             history.Units(newest - length) == script.entries[i].units) {
        ++length;
        i = i == 0 ? n - 1 : i - 1;
      }
      if (length <= best_length) continue;
      best = &v;
      best_length = length;
      *entry = last;
    }
  }
  return best;
}

}  // namespace hotpack
