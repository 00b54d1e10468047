#include "tools/replay/repeat_step.h"

#include <string>

#include "tools/replay/replay_player.h"
#include "tools/replay/replay_steps.h"

namespace hotpack {
namespace {

// No real device: records the played events.
class Writer : public ReplayDevice {
 public:
  explicit Writer(Trace* trace) : trace_(trace) {}

  std::string Allocate(uint64_t bytes, uint32_t stream, uint64_t* address) override {
    *address = ++blocks_;
    Add(EventKind::kAllocate, bytes, stream, *address);
    return {};
  }
  std::string Release(const ReplayBlock& block, uint32_t stream) override {
    Add(EventKind::kRelease, block.bytes, stream, block.address);
    return {};
  }
  std::string Fill(const ReplayBlock&) override { return {}; }
  std::string Check(const ReplayBlock&) override { return {}; }
  std::string Synchronize() override { return {}; }
  uint64_t Mismatches() override { return 0; }

  void Add(EventKind kind, uint64_t bytes, uint32_t stream, uint64_t id) {
    Event event;
    event.kind = kind;
    event.bytes = bytes;
    event.stream = stream;
    event.id = id;
    trace_->events.push_back(event);
  }

 private:
  Trace* trace_;
  uint64_t blocks_ = 0;
};

// The writer for the player's hooks, which are plain functions.
thread_local Writer* current_writer = nullptr;

}  // namespace

Trace RepeatSteadyStep(const Trace& trace, uint64_t times) {
  const RecordedSteps recorded = CutIntoSteps(trace);
  if (times == 0 || !recorded.steady) return trace;
  Trace repeated;
  Writer writer(&repeated);
  current_writer = &writer;
  PlayOptions options;
  options.repeat = times;
  options.touch = false;
  ReplayHooks hooks;
  hooks.step = [] { current_writer->Add(EventKind::kMark, 0, 0, 0); };
  hooks.expect = [] { current_writer->Add(EventKind::kExpect, 0, 0, 0); };
  hooks.interrupt = [] { current_writer->Add(EventKind::kInterrupt, 0, 0, 0); };
  hooks.resume = [] { current_writer->Add(EventKind::kResume, 0, 0, 0); };
  Player player(recorded, options, hooks, &writer);
  player.Play();
  current_writer = nullptr;
  return repeated;
}

}  // namespace hotpack
