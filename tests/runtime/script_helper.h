// Scripts for tests: given block by block, or random and packed.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "packer/pack.h"
#include "runtime/script/script.h"

namespace hotpack {

struct TestBlock {
  uint32_t units;
  uint32_t age;     // 0: not planned
  uint32_t offset;  // units; ignored if not planned
};

inline std::shared_ptr<const Script> ScriptOf(const std::vector<TestBlock>& blocks) {
  Profile profile;
  std::vector<uint32_t> index;
  std::vector<Offset> offsets;
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    const TestBlock& b = blocks[i];
    profile.blocks.push_back({b.units, b.age, b.age, b.age != 0});
    if (b.age == 0) continue;
    index.push_back(i);
    offsets.push_back(static_cast<Offset>(b.offset * kBlockUnit));
  }
  profile.period = static_cast<uint32_t>(blocks.size());
  return std::make_shared<const Script>(CompileScript(profile, index, offsets, {}, 0, 0));
}

// Whether the profile's requests are a shorter sequence repeated.
inline bool RepeatsItself(const Profile& profile) {
  size_t n = profile.blocks.size();
  for (size_t shift = 1; shift < n; ++shift) {
    size_t i = 0;
    while (i < n && profile.blocks[i].units == profile.blocks[(i + shift) % n].units) ++i;
    if (i == n) return true;
  }
  return false;
}

// Returns `n` requests with one of `kinds` sizes. Lives have any length up to the cycle, mostly short. The whole
// repeats nothing shorter (unless kinds is 1).
inline std::shared_ptr<const Script> RandomScript(std::mt19937_64& random, uint32_t n, uint32_t kinds) {
  Profile profile;
  for (uint32_t i = 0; i < n; ++i) {
    ProfileBlock block;
    block.units = 1 + static_cast<uint32_t>(random() % kinds) * 3;
    block.planned = random() % 16 != 0;
    uint64_t reach = random() % 4 == 0 ? n : std::min<uint64_t>(n, 6);
    if (block.planned) block.age = block.min_age = static_cast<uint32_t>(1 + random() % reach);
    profile.blocks.push_back(block);
  }
  if (kinds > 1 && RepeatsItself(profile)) return RandomScript(random, n, kinds);
  profile.period = n;
  std::vector<uint32_t> index;
  Instance instance = ToInstance(profile, &index);
  PackOptions options;
  options.algorithm = random() % 2 ? Algorithm::kBestFit : Algorithm::kFirstFit;
  PackResult result = Pack(instance, options);
  return std::make_shared<const Script>(CompileScript(profile, index, result.placement.offsets, {}, 0, 0));
}

}  // namespace hotpack
