// One iteration, drawn once and played many times, like a training step's requests.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/property/job.h"

namespace property {

struct ScriptStep {
  enum class Kind : uint8_t { kAllocate, kRelease, kUse, kEdge, kWait, kLaunch };
  Kind kind = Kind::kUse;
  Job::How how = Job::How::kPlain;
  bool async = false;
  int slot = 0;        // the block's slot in the iteration; unused for an edge
  int others[2] = {};  // slots that the same work also uses
  uint64_t bytes = 0;
  uint64_t stream = 0, to = 0;  // hints
  int worker = 0;
};

// Where iterations differ: steps [begin, end) that an iteration has once, has or leaves out, repeats, or has instead of
// the section after them.
struct ScriptSection {
  enum class Kind : uint8_t { kOnce, kOptional, kLoop, kAlternative };
  Kind kind = Kind::kOnce;
  size_t begin = 0, end = 0;
};

struct Script {
  int slots = 0;
  std::vector<ScriptStep> steps;
  std::vector<ScriptSection> sections;  // cover the steps
};

// Blocks are released in the iteration of their request, or in the next one (carried).
Script DrawScript(const Settings& settings, bool small, Random* random);

// Plays a script. Steps run in pieces, each by one worker.
class Player {
 public:
  Player(const Script* script, int context, Job* job, Random* random);

  void Begin(int deviations);  // permille of the steps that differ
  // The same, of an iteration of its own: which sections it has, how often, and the length that its sizes follow.
  void BeginVaried(int deviations);
  bool Ended() const { return next_ >= order_.size(); }
  int NextWorker() const { return script_->steps[order_[next_]].worker; }
  void PlayRun();                    // the next steps of the same worker
  void Grow();                       // makes one of the sizes larger from now on
  std::vector<int> Remains() const;  // live blocks of the last iteration

 private:
  static constexpr uint64_t kUsual = 16;  // length
  void Play(const ScriptStep& step);
  void Deviate(const ScriptStep& step);
  int Stream(uint64_t hint) { return job_->SomeStream(context_, hint); }

  const Script* script_;
  int context_;
  Job* job_;
  Random* random_;
  std::vector<size_t> order_;  // the iteration's steps
  size_t next_ = 0;            // in `order_`
  uint64_t length_ = kUsual;
  int deviations_ = 0;
  std::vector<int> blocks_;       // by slot
  std::vector<uint64_t> larger_;  // by slot: additional bytes
};

}  // namespace property
