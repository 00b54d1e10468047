// A recording with notes, made by hand, like a collector's for a small training step.
#pragma once

#include "profiler/trace_file.h"

namespace hotpack_test {

// Four equal marked steps after the weights: forward and backward ranges on thread 0, backward blocks asked for on
// thread 1, kernels k_forward and k_backward<float>, and stacks of which one has markup in it. 3 weights; a step asks
// for 8 blocks. The third step has the most notes.
inline hotpack::TraceFile Sample() {
  using namespace hotpack;
  TraceFile file;
  file.origin.program = "/opt/jobs/train <b>&co";
  file.origin.process = 77;
  file.origin.created_ns = 1'700'000'000'000'000'000;
  file.notes.names = {"step",
                      "forward",
                      "backward",
                      "k_forward",
                      "k_backward<float>",
                      "loss() (train.py:7)\nmain (train.py:1)",
                      "</script><b>evil"};
  auto& events = file.trace.events;
  uint64_t id = 0;
  auto time = [&] { return events.size() * 1000; };
  auto allocate = [&](uint64_t bytes, uint16_t thread = 0, uint32_t stream = 0) {
    events.push_back({EventKind::kAllocate, 0, thread, stream, id, bytes, time()});
    return id++;
  };
  auto release = [&](uint64_t block, uint64_t bytes) {
    events.push_back({EventKind::kRelease, 0, 0, 0, block, bytes, time()});
  };
  auto range = [&](RangeKind kind, NameOrdinal name = kNoName) {
    file.notes.ranges.push_back({events.size(), time(), 0, name, 0, kind});
  };
  auto launch = [&](NameOrdinal name, std::initializer_list<uint64_t> blocks) {
    file.notes.launches.push_back({events.size(), time(), time() + 100, time() + 600, file.notes.launch_blocks.size(),
                                   static_cast<uint32_t>(blocks.size()), name, 0, 0});
    file.notes.launch_blocks.insert(file.notes.launch_blocks.end(), blocks);
  };
  for (int i = 0; i < 3; ++i) allocate(1 << 20);
  for (int step = 0; step < 4; ++step) {
    events.push_back({EventKind::kMark, 0, 0, 0, 0, 0, time()});
    const bool noted = step == 2;
    if (noted) range(RangeKind::kPush, 0);
    if (noted) range(RangeKind::kPush, 1);
    std::vector<uint64_t> activations;
    for (int layer = 0; layer < 4; ++layer) activations.push_back(allocate((4u - static_cast<unsigned>(layer)) << 20));
    if (noted) file.notes.stacks.push_back({activations[0], 5});
    if (noted) file.notes.stacks.push_back({activations[1], 6});
    if (noted) launch(3, {activations[0], activations[1]});
    if (noted) range(RangeKind::kPop);
    if (noted) range(RangeKind::kPush, 2);
    for (int layer = 3; layer >= 0; --layer) {
      const uint64_t gradient = allocate(700'000, 1, 2);
      if (noted) launch(4, {gradient, activations[static_cast<size_t>(layer)]});
      release(activations[static_cast<size_t>(layer)], (4u - static_cast<unsigned>(layer)) << 20);
      release(gradient, 700'000);
    }
    if (noted) range(RangeKind::kPop);
    if (noted) range(RangeKind::kPop);
  }
  events.push_back({EventKind::kMark, 0, 0, 0, 0, 0, time()});
  return file;
}

}  // namespace hotpack_test
