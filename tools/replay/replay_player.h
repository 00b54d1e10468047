// Plays the steps of a recording on a device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/cli/progress.h"
#include "tools/replay/replay_device.h"
#include "tools/replay/replay_steps.h"

namespace hotpack {

struct PlayOptions {
  uint64_t passes = 1;           // plays of the whole recording, ≥ 1
  uint64_t repeat = 0;           // plays of the steady step, which must exist, after its first play
  uint64_t weights = 0;          // bytes allocated first and kept to the end
  uint64_t optimizer_state = 0;  // bytes allocated in the last third of the first marked step and kept to the end
  Progress* progress = nullptr;  // gets the number of finished plays of steps; null: none
  bool touch = true;             // Fill each block after its allocation, Check it before its release
};

struct PlayResult {
  std::string error;  // empty: all was played
  uint64_t requests = 0;
  uint64_t mismatches = 0;
  uint64_t live_peak = 0;         // bytes, each block rounded up to 512
  std::vector<uint64_t> step_ns;  // each marked step, synchronised at its end; excludes waits for planning
};

// Plays a recording.
// 1. A release of the steady step that belongs to a request of an earlier step does so in each repetition: it releases
//    the block requested the same number of steps before.
// 2. Steps after the steady step are played after the repetitions.
// 3. A pass begins with only weights and optimizer state live. The end of the pass before releases what the recording
//    did not. At the end everything is released.
class Player {
 public:
  // All must outlive the player.
  Player(const RecordedSteps& recorded, const PlayOptions& options, const ReplayHooks& hooks, ReplayDevice* device);
  PlayResult Play();  // once

 private:
  // The blocks of one play of a step, by request. Plays are numbered in time order.
  struct Generation {
    std::vector<ReplayBlock> blocks;
    uint64_t live = 0;
  };

  bool PlayPass(uint64_t base);
  bool PlayRepetitions();
  bool PlayStep(const std::vector<PlayedEvent>& step, uint64_t generation, bool optimizer);
  bool PlayEvent(const PlayedEvent& event, uint64_t generation);
  // Returns the play in which the block of a release was requested, given the play that releases it.
  uint64_t OriginOf(const RecordedBlock& block, uint64_t generation) const;
  bool IsLive(uint64_t generation, uint32_t request) const;
  bool Boundary();
  bool AllocateTensors(const std::vector<uint64_t>& sizes, size_t begin, size_t end);
  bool Allocate(uint64_t bytes, uint32_t stream, ReplayBlock* block);
  bool Release(ReplayBlock* block, uint32_t stream);
  bool ReleaseGenerations();
  bool Fail(const std::string& what, const std::string& reason);

  const RecordedSteps& recorded_;
  const PlayOptions& options_;
  const ReplayHooks& hooks_;
  ReplayDevice* device_;
  PlayResult result_;

  std::map<uint64_t, Generation> generations_;
  std::vector<ReplayBlock> kept_;  // weights and optimizer state
  uint64_t base_ = 0;              // the generation of step 0 in the current pass
  uint64_t shift_ = 0;             // repetitions played before the rest of the recording
  uint64_t repetition_ = 0;        // the current one, 0: none
  uint64_t next_id_ = 0;
  uint64_t live_bytes_ = 0;
  uint64_t steps_played_ = 0;
  bool in_step_ = false;  // between two boundaries
  uint64_t step_begin_ns_ = 0;
};

}  // namespace hotpack
