// The scripts a job is known to follow: training and evaluation, sequence lengths, a last batch that is smaller. One of
// them is followed at a time; all lie in the same zone of addresses, so the memory is that of the highest.
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
  uint64_t number = 0;   // unique in the engine, from 1; another one when the script is packed anew
  uint64_t used_at = 0;  // requests when it was last taken up or left (or made)
  uint64_t uses = 0;     // times it was taken up
  bool fresh = true;     // not yet with this script
  // Reoptimisation (Sekiyama 2018, §4.3): ever rarer while it does not help.
  uint64_t passes = 0;        // iterations of it that have ended
  uint32_t clean_passes = 0;  // ... of the last ones, in a row, without a request displaced
  uint32_t replans = 0;       // plans in its place lately
  uint64_t refine_from = 0;   // passes before the next
  void NotePass(bool clean);
  bool MayReplan() const { return passes >= refine_from; }
  void NoteReplan();

  Follower parked;  // its follower's memory while another one is followed: taking it up again needs no new one
};

// Not thread-safe: the engine's lock. What is followed is never evicted.
class Variants {
 public:
  static constexpr size_t kMax = 64;
  static constexpr uint32_t kLongestContext = 64;            // requests compared
  static constexpr uint64_t kMaxBytes = uint64_t{64} << 20;  // of the host's memory

  Variants() { passes_.reserve(kPasses); }  // no heap allocation later

  // A new variant; or, if there is one that asks for the same from its first request on, that one with the new script
  // and a new number. Evicts those least recently used beyond the limits, `followed` (a number) excepted. O(requests).
  Variant* Add(std::shared_ptr<const Script> script, uint64_t requests, uint64_t followed);
  // The script of variant `number` is replaced by one that asks for as many requests; null if it is not there any more.
  Variant* Replace(uint64_t number, std::shared_ptr<const Script> script);
  Variant* Find(uint64_t number);  // null if there is none
  Variant* Find(const Script* script);
  void Remove(uint64_t number);

  // An iteration of variant `number`, begun at its entry `phase`, has ended. O(256 × 64).
  void NoteIteration(uint64_t number, uint32_t phase);
  // The variant whose iteration is the next one by what came after the like before: after as many iterations, the same
  // ones, as make that sure. Null if that is not known, or it is `followed` all the same.
  Variant* Predict(uint64_t followed, uint32_t* phase);

  // Where the requests [begin, newest] of the history are the first ones of a variant: that variant, `except` (a
  // number) excluded. Of several the one that was expected next, else the one used last. Null: none. O(variants), and
  // O(newest - begin) for each that agrees.
  Variant* MatchHead(const History& history, uint64_t begin, uint64_t newest, uint64_t except);
  // The variant with the longest run of requests that ends with the history's, at least `least` (≥ Script::kContext)
  // and at most kLongestContext: *entry is the one that request `newest` is. Null: none. O(variants log requests).
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

  // The iterations that came, the newest last: what follows is guessed from the longest run of them that came before as
  // well.
  struct Pass {
    uint64_t number = 0;
    uint32_t phase = 0;
    bool operator==(const Pass&) const = default;
  };
  static constexpr size_t kPasses = 256;

  std::list<Variant> all_;  // addresses stay
  std::vector<Pass> passes_;
  std::vector<uint8_t> runs_;    // by pass: how many that end there are the same as the last ones
  uint32_t uniform_ = 0;         // passes at the end that are the same as the one before them
  Pass expected_;                // what came after that run; number 0: nothing did
  uint32_t expected_after_ = 0;  // its length
  bool agreed_ = false;          // it was the same wherever such a run came
  uint64_t predicted_ = 0;       // number; 0: nothing was said
  uint32_t mistakes_ = 0;
  uint64_t last_number_ = 0;
  uint64_t evicted_ = 0;
};

}  // namespace hotpack
