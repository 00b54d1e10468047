#include "remat/core/cut.h"

#include <algorithm>

namespace hotpack::remat {

int32_t FlowNetwork::AddNode() {
  out_.emplace_back();
  return static_cast<int32_t>(out_.size()) - 1;
}

void FlowNetwork::AddArc(int32_t from, int32_t to, Wide capacity) {
  if (capacity <= 0) return;
  out_[static_cast<size_t>(from)].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({to, std::min(capacity, kUncut)});
  out_[static_cast<size_t>(to)].push_back(static_cast<int32_t>(arcs_.size()));
  arcs_.push_back({from, 0});
}

bool FlowNetwork::Levels() {
  level_.assign(out_.size(), -1);
  level_[kSource] = 0;
  std::vector<int32_t> reached = {kSource};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (int32_t a : out_[static_cast<size_t>(reached[i])]) {
      const Arc& arc = arcs_[static_cast<size_t>(a)];
      if (arc.left <= 0 || level_[static_cast<size_t>(arc.to)] >= 0) continue;
      level_[static_cast<size_t>(arc.to)] = level_[static_cast<size_t>(reached[i])] + 1;
      reached.push_back(arc.to);
    }
  }
  return level_[kSink] >= 0;
}

// Depth first without recursion: graphs are as deep as steps are long.
bool FlowNetwork::Augment() {
  std::vector<int32_t> path;
  int32_t node = kSource;
  while (node != kSink) {
    const std::vector<int32_t>& out = out_[static_cast<size_t>(node)];
    size_t& next = next_[static_cast<size_t>(node)];
    while (next < out.size()) {
      const Arc& arc = arcs_[static_cast<size_t>(out[next])];
      if (arc.left > 0 && level_[static_cast<size_t>(arc.to)] == level_[static_cast<size_t>(node)] + 1) break;
      ++next;
    }
    if (next < out.size()) {
      path.push_back(out[next]);
      node = arcs_[static_cast<size_t>(out[next])].to;
      continue;
    }
    if (path.empty()) return false;
    node = arcs_[static_cast<size_t>(path.back() ^ 1)].to;  // back, because the arc that led here is a dead end
    path.pop_back();
    ++next_[static_cast<size_t>(node)];
  }
  Wide least = kUncut;
  for (int32_t a : path) least = std::min(least, arcs_[static_cast<size_t>(a)].left);
  for (int32_t a : path) {
    arcs_[static_cast<size_t>(a)].left -= least;
    arcs_[static_cast<size_t>(a ^ 1)].left += least;
  }
  return true;
}

void FlowNetwork::Cut() {
  while (Levels()) {
    next_.assign(out_.size(), 0);
    while (Augment()) {
    }
  }
}

}  // namespace hotpack::remat
