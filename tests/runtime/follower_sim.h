// A job that follows a script, or deviates, and a model of addresses: the owner of each unit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "runtime/script/follower.h"
#include "tests/runtime/script_helper.h"

namespace hotpack {

class FollowerSim {
 public:
  struct Live {
    uint64_t id;
    uint32_t begin, end;  // units; empty: outside of the zone
    uint32_t entry;       // of the script; kNone: off script
    bool planned;
    uint64_t due;  // released before this request is made
  };

  FollowerSim(std::shared_ptr<const Script> script, uint32_t position, bool map_all = true)
      : script_(std::move(script)) {
    follower_.Start(script_, position, 0, 0);
    owner_.assign(script_->height_bytes / kBlockUnit, 0);
    if (map_all) {
      for (uint32_t i = 0; i < script_->size(); ++i) {
        if (script_->entries[i].offset != kNone) follower_.SetMapped(i);
      }
    }
  }

  // Requests `units` that live for `age` requests. Releases due blocks first.
  Follower::Outcome Ask(uint32_t units, uint64_t age) {
    ReleaseDue();
    uint64_t ordinal = history_.Append(units);
    uint32_t offset = 0, entry = kNone;
    auto outcome = Follower::Outcome::kPlanned;
    if (!follower_.lost() && follower_.TryNext(units, ordinal, &offset)) {
      entry = follower_.LiveAt(offset);
    } else {
      Follower::Answer answer = follower_.Next(units, ordinal, history_);
      outcome = answer.outcome;
      entry = answer.entry;
      if (outcome == Follower::Outcome::kUnmapped) follower_.SetMapped(entry);
    }
    Live block{ordinal, 0, 0, entry, false, ordinal + age};
    if (outcome == Follower::Outcome::kPlanned || outcome == Follower::Outcome::kUnmapped) {
      block.planned = true;
      block.begin = follower_.Offset(entry);
      block.end = block.begin + follower_.PlannedUnits(entry);
      EXPECT_GE(follower_.PlannedUnits(entry), units) << "a place that is too small";
      EXPECT_EQ(follower_.LiveAt(block.begin), entry);
      EXPECT_EQ(follower_.Ordinal(entry), ordinal);
      EXPECT_EQ(follower_.Units(entry), units);
      Occupy(block);
    }
    follower_.TakeEnded();
    live_.push_back(block);
    last_ = block;
    EXPECT_TRUE(follower_.Consistent());
    return outcome;
  }
  // Puts a block from elsewhere into a hole of the zone, if there is one.
  bool PutIntoHole(uint32_t units, uint32_t expected_age, uint64_t age) {
    uint32_t begin = follower_.FindIdleRange(units, expected_age,
                                             static_cast<uint32_t>(follower_.script().height_bytes / kBlockUnit), {});
    if (begin == kNone) return false;
    Live block{kForeign + foreign_++, begin, begin + units, kNone, false, history_.Count() + age};
    EXPECT_LE(block.end, owner_.size());
    Occupy(block);
    follower_.AddForeign(block.begin, block.end);
    live_.push_back(block);
    EXPECT_TRUE(follower_.Consistent());
    return true;
  }
  void ReleaseDue() {
    for (size_t k = 0; k < live_.size();) {
      if (live_[k].due <= history_.Count()) {
        Release(k);
      } else {
        ++k;
      }
    }
  }
  void Release(size_t k) {
    Live block = live_[k];
    live_.erase(live_.begin() + static_cast<ptrdiff_t>(k));
    for (uint32_t a = block.begin; a < block.end; ++a) owner_[a] = 0;
    if (block.planned) {
      ASSERT_EQ(follower_.LiveAt(block.begin), block.entry);
      history_.Released(block.id);
      follower_.Release(block.entry);
    } else if (block.id >= kForeign) {
      follower_.RemoveForeign(block.begin, block.end);
    }
    EXPECT_TRUE(follower_.Consistent());
  }
  // Plays one iteration of the script from its beginning. Returns the number of planned entries that were not served by
  // script. The entry is not compared, because scripts with few sizes resemble themselves.
  uint32_t PlayIteration() { return PlayFrom(0); }
  uint32_t PlayFrom(uint32_t position) {
    uint32_t missed = 0;
    for (uint32_t i = position; i < script_->size(); ++i) missed += !PlayEntry(i);
    return missed;
  }
  bool PlayEntry(uint32_t i) {
    const ProfileBlock& block = script_->profile.blocks[i];
    Follower::Outcome outcome = Ask(block.units, block.planned ? block.age : 2);
    if (!block.planned) return outcome == Follower::Outcome::kUnplanned;
    return last_.planned;
  }

  Follower& follower() { return follower_; }
  const Script& script() const { return *script_; }
  std::vector<Live>& live() { return live_; }
  const Live& last() const { return last_; }

 private:
  static constexpr uint64_t kForeign = uint64_t{1} << 60;
  void Occupy(const Live& block) {
    for (uint32_t a = block.begin; a < block.end; ++a) {
      if (owner_[a] != 0) {
        ADD_FAILURE() << "block " << block.id << " is put over " << owner_[a] - 1 << " at unit " << a;
        return;
      }
    }
    for (uint32_t a = block.begin; a < block.end; ++a) owner_[a] = block.id + 1;
  }

  std::shared_ptr<const Script> script_;
  Follower follower_;
  History history_{4096};
  std::vector<uint64_t> owner_;  // by unit: 0, or the live block's id + 1
  std::vector<Live> live_;
  Live last_{};
  uint64_t foreign_ = 0;
};

}  // namespace hotpack
