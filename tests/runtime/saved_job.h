// A training job and a store of its plans, for engines that begin with the plan of an earlier run.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/persist/plan_file.h"
#include "tests/runtime/job.h"

namespace hotpack {

constexpr uint64_t kMiB = Job::kMiB;

// Keeps the last plan, as a file would.
class Keeper : public PlanSink {
 public:
  void Save(const SavedPlan& plan) override {
    const std::vector<uint8_t> bytes = EncodePlan(plan);
    auto read = std::make_shared<SavedPlan>();
    ASSERT_EQ(DecodePlan(bytes.data(), bytes.size(), read.get()), PlanFileStatus::kOk);
    std::lock_guard lock(mutex_);
    plan_ = std::move(read);
    ++saves_;
  }
  void OnRejected() override {
    std::lock_guard lock(mutex_);
    ++not_used_;
  }
  std::shared_ptr<const SavedPlan> plan() const {
    std::lock_guard lock(mutex_);
    return plan_;
  }
  int saves() const {
    std::lock_guard lock(mutex_);
    return saves_;
  }
  int not_used() const {
    std::lock_guard lock(mutex_);
    return not_used_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const SavedPlan> plan_;
  int saves_ = 0, not_used_ = 0;
};

inline EngineOptions With(Keeper* keeper, std::shared_ptr<const SavedPlan> plan = nullptr) {
  EngineOptions options;
  options.plan = std::move(plan);
  options.sink = keeper;
  options.plan_time_limit_ns = 50'000'000;
  return options;
}

// A training job: weights, then steps. Optimizer state comes in the first one.
struct Training {
  explicit Training(Job* job_of, int layers = 20, uint64_t scale = 1) : job(job_of), net(job_of, layers, scale) {}
  void Weights(int count = 12) {
    for (int i = 0; i < count; ++i) kept.push_back(job->Ask(10000 + 7000 * static_cast<uint64_t>(i)));
  }
  // The first step, with `state` blocks that stay before each layer.
  Job::Share FirstStep(int state = 0, Net::Change change = {}) {
    change.at = [this, state](int layer) {
      for (int i = 0; i < state; ++i) kept.push_back(job->Ask(net.Size(layer, 20)));  // as large as the gradients
    };
    return job->Play([&] { net.Step(change); });
  }
  Job::Share Step() {
    return job->Play([&] { net.Step(); });
  }
  Job* job;
  Net net;
  std::vector<DeviceAddress> kept;
};

// Plays a whole run and returns the plan that it saves.
inline std::shared_ptr<const SavedPlan> RunOnce(int state = 0, int weights = 12, int layers = 20, uint64_t scale = 1) {
  Keeper keeper;
  Job job(4096 * kMiB, With(&keeper));
  Training training(&job, layers, scale);
  training.Weights(weights);
  training.FirstStep(state);
  for (int i = 0; i < 7; ++i) training.Step();
  job.engine().WaitPlan(-1);
  job.engine().Finish();
  EXPECT_NE(keeper.plan(), nullptr) << job.History();
  return keeper.plan();
}

}  // namespace hotpack
