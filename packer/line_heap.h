// The offset lines of a skyline by height: a heap whose top is the lowest line, of several the leftmost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packer/types.h"

namespace hotpack {

// Each node has four children: half the levels of a binary heap, and the children share a cache line. There is no
// search for entries: the skyline leaves stale ones in the heap and discards them when they reach the top. Not
// thread-safe.
class LineHeap {
 public:
  struct Entry {
    Offset height;
    int32_t line;
    bool Before(const Entry& other) const { return height != other.height ? height < other.height : line < other.line; }
  };

  void Clear() { entries_.clear(); }
  bool empty() const { return entries_.empty(); }
  const Entry& top() const { return entries_.front(); }  // only while not empty

  // Calls visit(line) for the lines that may become the top after this one.
  template <typename Visit>
  void VisitNext(const Visit& visit) const {
    const size_t end = entries_.size() < 5 ? entries_.size() : 5;
    for (size_t i = 1; i < end; ++i) visit(entries_[i].line);
  }

  // O(log n).
  void Push(const Entry& entry) {
    entries_.push_back(entry);
    size_t at = entries_.size() - 1;
    for (; at > 0 && entry.Before(entries_[(at - 1) / 4]); at = (at - 1) / 4) entries_[at] = entries_[(at - 1) / 4];
    entries_[at] = entry;
  }
  // Pop() and Push() in one step. O(log n).
  void ReplaceTop(const Entry& entry) {
    size_t at = 0;
    for (size_t child = 1; child < entries_.size(); child = 4 * at + 1) {
      const size_t end = child + 4 < entries_.size() ? child + 4 : entries_.size();
      for (size_t other = child + 1; other < end; ++other) {
        if (entries_[other].Before(entries_[child])) child = other;
      }
      if (!entries_[child].Before(entry)) break;
      entries_[at] = entries_[child];
      at = child;
    }
    entries_[at] = entry;
  }
  void Pop() {
    const Entry last = entries_.back();
    entries_.pop_back();
    if (!entries_.empty()) ReplaceTop(last);
  }

 private:
  std::vector<Entry> entries_;
};

}  // namespace hotpack
