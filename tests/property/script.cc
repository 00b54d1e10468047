#include "tests/property/script.h"

#include <algorithm>
#include <numeric>

namespace property {
namespace {

using Kind = ScriptStep::Kind;

class Drawing {
 public:
  Drawing(const Settings& settings, bool small, Random* random) : settings_(settings), random_(random) {
    script_.slots = small ? 3 + random->Int(6) : 3 + random->Int(random->Chance(300) ? 60 : 20);
    one_stream_ = random->Chance(400);
    stream_ = random->Next();
    ways_ = random->Int(4);
  }

  Script Draw() {
    std::vector<int> live, carried;
    for (int slot = 0; slot < script_.slots; ++slot) {
      if (random_->Chance(80)) carried.push_back(slot);
    }
    int next = 0;
    while (next < script_.slots || !live.empty()) {
      const bool allocate = next < script_.slots && (live.empty() || random_->Chance(600));
      if (random_->Chance(60)) worker_ = random_->Int(4);
      // A block carried to here is released some time before its successor's request, or just after.
      if (allocate) {
        if (Has(carried, next) && random_->Chance(700)) Add(Kind::kRelease, next);
        Add(Kind::kAllocate, next);
        live.push_back(next++);
      } else if (random_->Chance(500)) {
        const size_t i = random_->Chance(500) ? live.size() - 1 : random_->Below(live.size());
        if (!Has(carried, live[i])) Add(Kind::kRelease, live[i]);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
      }
      if (!live.empty() && random_->Chance(600)) AddUse(live);
      if (random_->Chance(20)) Add(Kind::kEdge, 0);
      if (random_->Chance(10)) Add(Kind::kWait, 0);
      if (random_->Chance(20)) Add(Kind::kLaunch, 0);
    }
    Divide();
    return script_;
  }

 private:
  static bool Has(const std::vector<int>& all, int one) { return std::find(all.begin(), all.end(), one) != all.end(); }

  ScriptStep& Add(Kind kind, int slot) {
    ScriptStep step;
    step.kind = kind;
    step.slot = slot;
    step.stream = one_stream_ ? stream_ : random_->Next();
    step.to = random_->Next();
    step.worker = worker_;
    step.bytes = random_->Bytes(settings_.bytes_log2);
    step.async = ways_ == 1 || (ways_ > 1 && random_->Chance(500));
    step.how = ways_ == 0 ? Job::How::kPlain : ways_ == 1 ? Job::How::kAsync : static_cast<Job::How>(random_->Int(6));
    script_.steps.push_back(step);
    return script_.steps.back();
  }

  void Divide() {
    for (size_t begin = 0; begin < script_.steps.size();) {
      const size_t end = std::min(script_.steps.size(), begin + 1 + random_->Below(40));
      script_.sections.push_back({static_cast<ScriptSection::Kind>(random_->Int(4)), begin, end});
      begin = end;
    }
  }

  void AddUse(const std::vector<int>& live) {
    const int other = random_->Of(live), another = random_->Of(live), slot = random_->Of(live);
    ScriptStep& step = Add(Kind::kUse, slot);
    step.others[0] = other;
    step.others[1] = another;
  }

  const Settings& settings_;
  Random* random_;
  Script script_;
  bool one_stream_ = false;
  uint64_t stream_ = 0;
  int ways_ = 0;  // 0: cuMemAlloc and cuMemFree alone; 1: stream-ordered alone; else all
  int worker_ = 0;
};

}  // namespace

Script DrawScript(const Settings& settings, bool small, Random* random) {
  return Drawing(settings, small, random).Draw();
}

Player::Player(const Script* script, int context, Job* job, Random* random)
    : script_(script),
      context_(context),
      job_(job),
      random_(random),
      blocks_(static_cast<size_t>(script->slots), Job::kNone),
      larger_(static_cast<size_t>(script->slots), 0) {}

void Player::Begin(int deviations) {
  order_.resize(script_->steps.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  next_ = 0;
  length_ = kUsual;
  deviations_ = deviations;
}

void Player::BeginVaried(int deviations) {
  using SectionKind = ScriptSection::Kind;
  order_.clear();
  for (size_t i = 0; i < script_->sections.size(); ++i) {
    const ScriptSection& section = script_->sections[i];
    int times = 1;
    if (section.kind == SectionKind::kOptional) times = random_->Chance(600) ? 1 : 0;
    if (section.kind == SectionKind::kLoop) times = random_->Int(5);
    for (int turn = 0; turn < times; ++turn) {
      for (size_t step = section.begin; step < section.end; ++step) order_.push_back(step);
    }
    if (section.kind == SectionKind::kAlternative && random_->Chance(500)) ++i;  // without the other one
  }
  next_ = 0;
  length_ = kUsual / 2 + random_->Below(kUsual);
  deviations_ = deviations;
}

void Player::Grow() { larger_[random_->Below(larger_.size())] += random_->Bytes(20); }

std::vector<int> Player::Remains() const {
  std::vector<int> remains;
  for (const int block : blocks_) {
    if (job_->Live(block)) remains.push_back(block);
  }
  return remains;
}

void Player::PlayRun() {
  const int worker = NextWorker();
  while (!Ended() && NextWorker() == worker) {
    const ScriptStep& step = script_->steps[order_[next_++]];
    if (deviations_ > 0 && random_->Chance(deviations_)) {
      Deviate(step);
    } else {
      Play(step);
    }
  }
}

void Player::Play(const ScriptStep& step) {
  int& block = blocks_[static_cast<size_t>(step.slot)];
  const int stream = Stream(step.stream);
  switch (step.kind) {
    case Kind::kAllocate: {
      const int before = block;
      const uint64_t length = step.slot % 3 == 0 ? kUsual : length_;  // some sizes never differ
      const uint64_t bytes = std::max<uint64_t>(1, step.bytes * length / kUsual);
      block = job_->Allocate(step.how, context_, stream, bytes + larger_[static_cast<size_t>(step.slot)]);
      // Carried over, and its successor is there: gone now, as in `x = f(x)`.
      if (before != Job::kNone && !job_->Release(before, stream, step.async) && !job_->Release(before, stream, false) &&
          block == Job::kNone) {
        block = before;
      }
      break;
    }
    case Kind::kRelease:
      if (job_->Release(block, stream, step.async)) block = Job::kNone;
      break;
    case Kind::kUse: {
      const int blocks[3] = {block, blocks_[static_cast<size_t>(step.others[0])],
                             blocks_[static_cast<size_t>(step.others[1])]};
      job_->Use(blocks, 3, stream);
      break;
    }
    case Kind::kEdge:
      if (stream != Job::kNone) job_->Edge(stream, Stream(step.to));
      break;
    case Kind::kWait:
      if (stream != Job::kNone) job_->SynchronizeStream(stream);
      break;
    case Kind::kLaunch:
      job_->LaunchGraph(stream);
      break;
  }
}

// The step is left out, comes twice, has another size, or another stream.
void Player::Deviate(const ScriptStep& step) {
  ScriptStep changed = step;
  switch (random_->Int(4)) {
    case 0:
      return;
    case 1:
      changed.bytes = 1 + random_->Below(2 * step.bytes);
      break;
    case 2:
      changed.stream = random_->Next();
      break;
    case 3:
      Play(step);
      break;
  }
  Play(changed);
}

}  // namespace property
