// The call stacks at which a memory snapshot's blocks were requested.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "profiler/notes.h"
#include "tools/formats/pickle_reader.h"

namespace hotpack {

// Makes notes of the snapshot's lists of frames. Entries share lists, so each is read once. Not thread-safe.
class SnapshotStacks {
 public:
  // The pickle must outlive it.
  explicit SnapshotStacks(const Pickle& pickle) : pickle_(pickle) {}

  // Returns the stack that an entry of the history or a block of a segment names; kNoName if it names none. O(frames)
  // for a new list, else O(1).
  NameOrdinal Of(const PickleValue& entry);

  // Takes the texts of all stacks so far out of the object.
  std::vector<std::string> TakeNames() { return std::move(names_); }

 private:
  std::string_view TextOf(const PickleValue& frame, uint8_t key) const;
  std::string Describe(const std::vector<PickleValue>& frames) const;

  const Pickle& pickle_;
  std::vector<std::string> names_;
  absl::flat_hash_map<std::string, NameOrdinal> known_;
  absl::flat_hash_map<int64_t, NameOrdinal> lists_;  // by index in Pickle::lists
};

}  // namespace hotpack
