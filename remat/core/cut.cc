#include "remat/core/cut.h"

#include <algorithm>

namespace hotpack::remat {

void FlowNetwork::Clear() {
  arcs_.clear();
  out_.assign(2, {});
}

int32_t FlowNetwork::AddNode() {
  out_.emplace_back();
  return static_cast<int32_t>(out_.size()) - 1;
}

void FlowNetwork::AddArc(int32_t from, int32_t to, Wide capacity) {
  if (capacity <= 0) return;
  Append(from, to, std::min(capacity, kUncut));
  Append(to, from, 0);
}

void FlowNetwork::Append(int32_t from, int32_t to, Wide capacity) {
  const int32_t index = static_cast<int32_t>(arcs_.size());
  arcs_.push_back({to, kNoArc, capacity});
  Out& out = out_[static_cast<size_t>(from)];
  (out.last == kNoArc ? out.first : arcs_[static_cast<size_t>(out.last)].next) = index;
  out.last = index;
}

bool FlowNetwork::Levels() {
  level_.assign(out_.size(), -1);
  level_[kSource] = 0;
  reached_.assign(1, kSource);
  for (size_t i = 0; i < reached_.size(); ++i) {
    const int32_t node = reached_[i], level = level_[static_cast<size_t>(node)] + 1;
    for (int32_t a = out_[static_cast<size_t>(node)].first; a != kNoArc;) {
      const Arc& arc = arcs_[static_cast<size_t>(a)];
      a = arc.next;
      if (arc.left <= 0 || level_[static_cast<size_t>(arc.to)] >= 0) continue;
      level_[static_cast<size_t>(arc.to)] = level;
      reached_.push_back(arc.to);
    }
  }
  return level_[kSink] >= 0;
}

// Depth first without recursion: graphs are as deep as steps are long.
bool FlowNetwork::Augment() {
  path_.clear();
  int32_t node = kSource;
  while (node != kSink) {
    int32_t& next = next_[static_cast<size_t>(node)];
    while (next != kNoArc) {
      const Arc& arc = arcs_[static_cast<size_t>(next)];
      if (arc.left > 0 && level_[static_cast<size_t>(arc.to)] == level_[static_cast<size_t>(node)] + 1) break;
      next = arc.next;
    }
    if (next != kNoArc) {
      path_.push_back(next);
      node = arcs_[static_cast<size_t>(next)].to;
      continue;
    }
    if (path_.empty()) return false;
    const int32_t dead_end = path_.back();
    path_.pop_back();
    node = arcs_[static_cast<size_t>(dead_end ^ 1)].to;
    next_[static_cast<size_t>(node)] = arcs_[static_cast<size_t>(dead_end)].next;
  }
  Wide least = kUncut;
  for (int32_t a : path_) least = std::min(least, arcs_[static_cast<size_t>(a)].left);
  for (int32_t a : path_) {
    arcs_[static_cast<size_t>(a)].left -= least;
    arcs_[static_cast<size_t>(a ^ 1)].left += least;
  }
  return true;
}

void FlowNetwork::Cut() {
  while (Levels()) {
    next_.resize(out_.size());
    for (size_t i = 0; i < out_.size(); ++i) next_[i] = out_[i].first;
    while (Augment()) {
    }
  }
}

}  // namespace hotpack::remat
