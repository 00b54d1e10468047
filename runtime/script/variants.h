// The scripts that a job is known to follow: training and evaluation, sequence lengths, a smaller last batch. The job
// follows one of them at a time. All lie in the same zone of addresses, so the highest one determines the memory.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "profiler/history.h"
#include "runtime/script/follower.h"
#include "runtime/script/script.h"

namespace hotpack {

struct Variant {
  std::shared_ptr<const Script> script;
  uint64_t number = 0;   // unique in the engine, from 1; replanning assigns a new one
  uint64_t used_at = 0;  // requests when it was last started, left or made
  uint64_t uses = 0;     // times it was started
  bool fresh = true;     // not yet started with this script
  // Replanning (Sekiyama 2018, §4.3): the interval grows while it does not help.
  uint64_t passes = 0;        // iterations of it that have ended
  uint32_t clean_passes = 0;  // ... the last of them, in a row, without a displaced request
  uint32_t replans = 0;       // recent plans that replaced it
  uint64_t replan_from = 0;   // passes before the next replan
  void NotePass(bool clean);
  bool MayReplan() const { return passes >= replan_from; }
  void NoteReplan();

  // Its follower's memory while another variant is followed, so that returning to it allocates nothing.
  Follower idle_follower;
};

// Not thread-safe: guarded by the engine's lock. The followed variant is never evicted.
class Variants {
 public:
  static constexpr size_t kMax = 64;
  static constexpr uint32_t kLongestContext = 64;            // requests compared
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of the host's memory

  Variants() { passes_.reserve(kPasses); }  // no later heap allocation

  // Adds a variant. If one has the same requests from its first on, that one gets the new script and a new number.
  // Evicts the least recently used variants beyond the limits, except `followed` (a number). O(requests).
  Variant* Add(std::shared_ptr<const Script> script, uint64_t requests, uint64_t followed);
  // Replaces the script of variant `number` by one with as many requests. Returns null if the variant no longer exists.
  Variant* Replace(uint64_t number, std::shared_ptr<const Script> script);
  Variant* Find(uint64_t number);  // null if there is none
  Variant* Find(const Script* script);
  void Remove(uint64_t number);
  void Clear() { all_.clear(); }

  // Records that an iteration of variant `number`, begun at its entry `phase`, has ended. O(256 × 64).
  void NoteIteration(uint64_t number, uint32_t phase);
  // Returns the variant whose iteration comes next, judged by what followed the same sequence of iterations before. The
  // sequence must be long enough to be sure. Returns null if that is unknown, or if it is `followed`.
  Variant* Predict(uint64_t followed, uint32_t* phase);

  // Returns the variant whose first requests are the requests [begin, newest] of the history, except number `except`.
  // Of several, prefers the one expected next, then the one used last. Null: none. O(variants), and O(newest - begin)
  // for each that agrees.
  Variant* MatchHead(const History& history, uint64_t begin, uint64_t newest, uint64_t except);
  // Returns the variant with the longest run of requests that ends with the history's. The run has at least `least`
  // (≥ Script::kContext) and at most kLongestContext requests. *entry: the entry that request `newest` is. Null: none.
  // O(variants log requests).
  Variant* MatchContext(const History& history, uint64_t newest, uint32_t least, uint64_t except, uint32_t* entry);

  uint32_t LongestRequests() const;  // of the longest script. O(variants)
  size_t size() const { return all_.size(); }
  uint64_t evicted() const { return evicted_; }
  uint64_t newest() const { return last_number_; }        // the highest number so far
  const std::list<Variant>& all() const { return all_; }  // most recently added first

 private:
  static uint64_t BytesOf(const Script& script);
  void Evict(uint64_t followed);
  void SetScript(Variant* variant, std::shared_ptr<const Script> script);

  // The past iterations, the newest last. Predict looks for the longest run of last iterations that occurred before,
  // and expects what followed it then.
  struct Pass {
    uint64_t number = 0;
    uint32_t phase = 0;
    bool operator==(const Pass&) const = default;
  };
  static constexpr size_t kPasses = 256;

  std::list<Variant> all_;  // a list, so that addresses stay
  std::vector<Pass> passes_;
  std::vector<uint8_t> runs_;    // by pass: the length of the run ending there that equals the last passes
  uint32_t uniform_ = 0;         // passes at the end that equal the one before them
  Pass expected_;                // what came after that run; number 0: nothing did
  uint32_t expected_after_ = 0;  // its length
  bool agreed_ = false;          // the same came after every such run
  uint64_t predicted_ = 0;       // number; 0: no prediction was made
  uint32_t mistakes_ = 0;
  uint64_t last_number_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace hotpack
