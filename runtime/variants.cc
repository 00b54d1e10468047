#include "runtime/variants.h"

#include <algorithm>

namespace hotpack {

void Variant::NotePass(bool clean) {
  constexpr uint32_t kHelped = 16;  // iterations
  ++passes;
  clean_passes = clean ? clean_passes + 1 : 0;
  if (clean_passes % kHelped == kHelped - 1) refines /= 2;
}

void Variant::NoteRefine() {
  constexpr uint32_t kFree = 4, kMost = 16;  // after a few, each waits for twice as many iterations
  ++refines;
  refine_from = passes + (refines <= kFree ? 0 : uint64_t{1} << std::min(refines - kFree, kMost));
}

uint64_t Variants::BytesOf(const Script& script) {
  constexpr uint64_t kOfFollower = 64 + 16 + 2 * sizeof(LiveSlots::Slot);  // cell, what was seen, slots
  uint64_t each = sizeof(ScriptEntry) + sizeof(ProfileBlock) + sizeof(script.contexts[0]) + kOfFollower;
  return script.size() * each + script.successors.size() * sizeof(script.successors[0]);
}

void Variants::Evict(uint64_t followed) {
  uint64_t bytes = 0;
  for (const Variant& v : all_) bytes += BytesOf(*v.script);
  while (all_.size() > kMost || bytes > kMostBytes) {
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
  variant->parked = Follower();
  for (Variant& v : all_) {
    if (v.change.next == old) v.change.next = variant->number;
  }
}

void Variants::NoteNext(uint64_t before, uint64_t number, uint32_t phase) {
  Variant* variant = Find(before);
  if (variant == nullptr) return;
  ++variant->run;
  if (variant->predicted != 0 && variant->predicted != number) ++variant->mistakes;
  variant->predicted = 0;
  if (before == number) return;
  Variant::Change change{number, variant->run, phase};
  variant->change_times = change == variant->change ? variant->change_times + 1 : 1;
  variant->change = change;
  variant->run = 0;
}

Variant* Variants::Predict(uint64_t number, uint32_t* phase) {
  constexpr uint32_t kSure = 2;  // times alike; more after mistakes
  Variant* variant = Find(number);
  if (variant == nullptr || variant->run + 1 != variant->change.run) return nullptr;
  if (variant->change_times < kSure * (1 + variant->mistakes)) return nullptr;
  Variant* next = Find(variant->change.next);
  if (next == nullptr || variant->change.phase >= next->script->size()) return nullptr;
  *phase = variant->change.phase;
  variant->predicted = next->number;
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

Variant* Variants::MatchHead(const History& history, uint64_t begin, uint64_t newest, uint64_t except, uint64_t before) {
  Variant* best = nullptr;
  if (newest - begin >= history.Window()) return nullptr;
  const Variant* last = Find(before);
  const uint64_t expected = last != nullptr ? last->change.next : 0;
  for (Variant& v : all_) {
    if (v.number == except || v.script->size() <= newest - begin) continue;
    const std::vector<ScriptEntry>& entries = v.script->entries;
    uint64_t at = newest;  // from the newest back: heads are alike
    while (entries[at - begin].units == history.Units(at) && at > begin) --at;
    if (entries[at - begin].units != history.Units(at)) continue;
    auto rank = [&](const Variant& x) { return std::make_pair(x.number == expected, x.used_at); };
    if (best == nullptr || rank(v) > rank(*best)) best = &v;
  }
  return best;
}

Variant* Variants::MatchContext(const History& history, uint64_t newest, uint32_t least, uint64_t except, uint32_t* entry) {
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
      while (length < kLongestContext && length <= newest && history.Units(newest - length) == script.entries[i].units) {
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
