#include "tests/property/program.h"

#include <algorithm>
#include <functional>

#include "tests/property/hotpack_calls.h"
#include "tests/property/script.h"
#include "tests/property/workers.h"

namespace property {

void Exchange::Give(CUdeviceptr address) {
  std::lock_guard<std::mutex> lock(mutex_);
  addresses_.push_back(address);
}

CUdeviceptr Exchange::Take() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (addresses_.empty()) return 0;
  const CUdeviceptr address = addresses_.back();
  addresses_.pop_back();
  return address;
}

namespace {

Settings DrawSettings(const ProgramOptions& options, Random* random) {
  Settings settings;
  const bool alone = options.exchange == nullptr;
  settings.workers = alone && random->Chance(500) ? 2 + random->Int(2) : 1;
  settings.devices = options.devices;
  settings.shares_process = !alone;
  settings.per_thread_streams = random->Chance(500);
  settings.captures = options.captures && (!alone || random->Chance(600));
  settings.legacy_stream = random->Chance(850);
  settings.bytes_log2 = 10 + random->Int(14);
  return settings;
}

class Program {
 public:
  explicit Program(const ProgramOptions& options)
      : options_(options),
        random_(options.seed),
        settings_(DrawSettings(options, &random_)),
        job_(settings_, &random_),
        workers_(settings_.workers),
        settle_(random_.Chance(700)),
        late_streams_(random_.Chance(600)) {}

  ProgramResult Run();

 private:
  bool Done() const { return job_.counts().operations >= options_.operations; }
  void Disorder(int steps);
  void DisorderStep();
  void ChangeContexts();
  void Phase();
  void PlayIteration(Player* player, int deviations);
  void Wait();

  ProgramOptions options_;
  Random random_;
  Settings settings_;
  Job job_;
  Workers workers_;
  bool settle_;             // plans are waited for: the run can be repeated exactly
  bool late_streams_;       // the first stream appears after some phases
  std::vector<int> loose_;  // blocks of no iteration
  struct Known {
    Script script;
    int context;
  };
  std::vector<Known> known_;
};

void Program::Wait() {
  if (Hotpack().wait_plan != nullptr && (settle_ || random_.Chance(100))) Hotpack().wait_plan(-1);
}

void Program::ChangeContexts() {
  if (job_.SomeContext() == Job::kNone || (job_.contexts() < 8 && random_.Chance(300))) {
    job_.AddContext(random_.Chance(300), random_.Int(settings_.devices));
  } else if (random_.Chance(300)) {
    const int context = job_.SomeContext();
    std::erase_if(loose_, [&](int block) { return !job_.Live(block); });
    job_.DestroyContext(context);
  }
}

// Blocks that belong to no iteration, streams, events, captures, in any order.
void Program::DisorderStep() {
  const int context = job_.SomeContext();
  if (context == Job::kNone) {
    job_.AddContext(random_.Chance(500), random_.Int(settings_.devices));
    if (job_.SomeContext() == Job::kNone && options_.small) return;
    return;
  }
  const int stream = job_.SomeStream(context, random_.Next());
  switch (random_.Int(16)) {
    case 0:
    case 1:
    case 2: {
      if (loose_.size() >= 60) break;
      const auto how = static_cast<Job::How>(random_.Int(6));
      const int block = job_.Allocate(how, context, stream, random_.Bytes(settings_.bytes_log2));
      if (block != Job::kNone) loose_.push_back(block);
      break;
    }
    case 3:
    case 4:
    case 5: {
      if (loose_.empty()) break;
      const size_t i = random_.Below(loose_.size());
      const int block = loose_[i];
      if (options_.exchange != nullptr && random_.Chance(300)) {
        if (const CUdeviceptr address = job_.GiveAway(block); address != 0) options_.exchange->Give(address);
      } else {
        const int on = job_.Live(block) ? job_.SomeStream(job_.BlockContext(block), random_.Next()) : Job::kNone;
        job_.Release(block, on, random_.Chance(500));
      }
      if (job_.Live(block)) break;
      loose_[i] = loose_.back();
      loose_.pop_back();
      break;
    }
    case 6:
    case 7:
    case 8: {
      const int blocks[3] = {job_.SomeBlock(), job_.SomeBlock(), job_.SomeBlock()};
      job_.Use(blocks, 1 + random_.Int(3), stream);
      break;
    }
    case 9:
      if (stream != Job::kNone) job_.Edge(stream, job_.SomeStream(context, random_.Next()));
      break;
    case 10:
      if (stream != Job::kNone && random_.Chance(500)) job_.SynchronizeStream(stream);
      if (random_.Chance(100)) job_.SynchronizeContext(context);
      break;
    case 11:
      job_.Ask();
      break;
    case 12:
      if (job_.Capturing() && random_.Chance(700)) {
        job_.CaptureStep();
      } else {
        job_.BeginCapture(stream);
      }
      break;
    case 13:
      job_.EndCapture();
      break;
    case 14:
      job_.LaunchGraph(stream);
      if (random_.Chance(100)) job_.DestroyGraph();
      break;
    case 15:
      if (options_.exchange != nullptr && random_.Chance(500)) {
        const CUdeviceptr address = options_.exchange->Take();
        if (address != 0 && !job_.FreeForeign(context, address)) options_.exchange->Give(address);
      } else if (late_streams_ && job_.counts().operations < options_.operations / 2) {
        break;
      } else if (random_.Chance(350)) {
        job_.AddStream(context);
      } else if (random_.Chance(350) && stream != Job::kNone) {
        job_.DestroyStream(stream);
      }
      break;
  }
}

void Program::Disorder(int steps) {
  while (steps > 0) {
    const int run = std::min(steps, 1 + random_.Int(12));
    const int worker = random_.Int(settings_.workers);
    workers_.Run(worker, [&] {
      job_.Act(worker);
      for (int i = 0; i < run; ++i) DisorderStep();
    });
    steps -= run;
  }
  job_.Act(0);
}

void Program::PlayIteration(Player* player, int deviations) {
  if (options_.varied) {
    player->BeginVaried(deviations);
  } else {
    player->Begin(deviations);
  }
  while (!player->Ended()) {
    const int worker = player->NextWorker() % settings_.workers;
    workers_.Run(worker, [&] {
      job_.Act(worker);
      player->PlayRun();
    });
  }
  job_.Act(0);
}

// An iteration again and again: exactly the same, or with now and then another step, size or order; with marks or
// without; now and then interrupted. Varied: each time with other sections and sizes, and with marks.
void Program::Phase() {
  const int context = job_.SomeContext();
  if (context == Job::kNone) return;
  if (known_.size() < 2 || random_.Chance(500)) {
    if (known_.size() >= 6) known_.erase(known_.begin());
    known_.push_back({DrawScript(settings_, options_.small, &random_), context});
  }
  const Known known = random_.Of(known_);
  const int on = job_.ContextAlive(known.context) ? known.context : context;
  Player player(&known.script, on, &job_, &random_);
  const bool marks = options_.varied || random_.Chance(300);
  const int deviations = random_.Chance(500) ? 0 : 1 + random_.Int(60);
  const int repeats = options_.small ? 4 + random_.Int(3) : 3 + random_.Int(options_.varied ? 50 : 25);
  for (int i = 0; i < repeats && !Done() && job_.ContextAlive(on); ++i) {
    const bool interrupted = Hotpack().interrupt != nullptr && random_.Chance(30);
    if (marks && Hotpack().step != nullptr) Hotpack().step();
    if (interrupted) Hotpack().interrupt();
    if (random_.Chance(40)) player.Grow();
    PlayIteration(&player, deviations);
    if (interrupted) Hotpack().resume();
    Wait();
    if (deviations > 0 && random_.Chance(100)) Disorder(1 + random_.Int(6));
  }
  // Blocks that the last iteration carries are released now, or live on among the others.
  for (const int block : player.Remains()) {
    if (!random_.Chance(500) || !job_.Release(block, job_.SomeStream(on, random_.Next()), random_.Chance(500))) {
      loose_.push_back(block);
    }
  }
}

ProgramResult Program::Run() {
  job_.AddContext(options_.exchange != nullptr || random_.Chance(500), 0);
  if (!settings_.legacy_stream && !settings_.per_thread_streams && job_.SomeContext() != Job::kNone) {
    job_.AddStream(job_.SomeContext());
  }
  // A driver that refuses everything ends it too.
  for (int round = 0; !Done() && round < 100000 && (!options_.small || job_.counts().refused < 400); ++round) {
    Disorder(random_.Int(options_.small ? 20 : 200));
    Phase();
    if (random_.Chance(options_.small ? 300 : 80) && options_.exchange == nullptr) ChangeContexts();
  }
  for (int worker = 0; worker < settings_.workers; ++worker) {  // each ends its own captures
    workers_.Run(worker, [&] {
      job_.Act(worker);
      while (job_.Capturing()) {
        const uint64_t before = job_.counts().operations;
        job_.EndCapture();
        if (job_.counts().operations == before) break;
      }
    });
  }
  job_.Act(0);
  job_.ReleaseAll();
  if (options_.exchange != nullptr && job_.SomeContext() != Job::kNone) {
    while (const CUdeviceptr address = options_.exchange->Take()) {
      if (!job_.FreeForeign(job_.SomeContext(), address)) break;
    }
  }
  for (int context = 0; context < job_.contexts(); ++context) job_.DestroyContext(context);
  return {job_.counts(), job_.wrong_answers()};
}

}  // namespace

ProgramResult RunProgram(const ProgramOptions& options) { return Program(options).Run(); }

}  // namespace property
