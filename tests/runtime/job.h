// A job that requests memory from an engine, and checks each result: mapped, aligned, disjoint from all other live
// blocks.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runtime/engine/engine.h"
#include "tests/runtime/fake_device_memory.h"

namespace hotpack {

class Job {
 public:
  static constexpr uint64_t kMiB = 1 << 20;

  // Chunks of 64 KiB, so that small jobs have many.
  explicit Job(uint64_t device_bytes = 4096 * kMiB, EngineOptions options = {}, uint64_t chunk = 64 << 10)
      : device_(device_bytes, chunk), engine_(std::make_unique<Engine>(&device_, options)) {}
  ~Job() {
    engine_.reset();
    EXPECT_EQ(device_.FirstFault(), "");
  }

  // Returns 0 if there is no memory.
  DeviceAddress TryAsk(uint64_t bytes, EngineStatus* status = nullptr) {
    engine_->WaitPlan(-1);  // so that plans are followed from the same request each time
    DeviceAddress address = 0;
    EngineStatus answer = engine_->Allocate(bytes, 0, &address);
    if (status != nullptr) *status = answer;
    if (answer != EngineStatus::kOk) return 0;
    EXPECT_EQ(address % 512, 0u);
    EXPECT_TRUE(device_.Accessible(address, bytes)) << "a block without pages";
    EXPECT_TRUE(engine_->Owns(address));
    auto next = live_.lower_bound(address);
    EXPECT_TRUE(next == live_.end() || next->first >= address + bytes) << "overlaps the next";
    EXPECT_TRUE(next == live_.begin() || std::prev(next)->first + std::prev(next)->second <= address)
        << "overlaps the one before";
    live_[address] = bytes;
    return address;
  }
  DeviceAddress Ask(uint64_t bytes) {
    EngineStatus status = EngineStatus::kOk;
    DeviceAddress address = TryAsk(bytes, &status);
    EXPECT_EQ(status, EngineStatus::kOk) << bytes << " bytes";
    return address;
  }
  void Give(DeviceAddress address) {
    if (address == 0) return;
    EXPECT_EQ(live_.erase(address), 1u);
    EXPECT_EQ(engine_->Release(address, 0), EngineStatus::kOk);
  }
  void Give(std::vector<DeviceAddress>* addresses) {
    for (DeviceAddress address : *addresses) Give(address);
    addresses->clear();
  }
  void Touch(uint64_t bytes) { Give(Ask(bytes)); }
  void GiveAll() {
    while (!live_.empty()) Give(live_.begin()->first);
  }

  // The share of one iteration's requests that is planned. Waits until planning is idle.
  struct Share {
    uint64_t requests, planned;
    bool Full() const { return requests == planned; }
  };
  Share Play(const std::function<void()>& iteration) {
    hotpack_stats before = engine_->Stats();
    iteration();
    hotpack_stats after = engine_->Stats();
    engine_->WaitPlan(-1);
    shares_.push_back({after.requests - before.requests, after.planned - before.planned});
    EXPECT_EQ(after.requests, after.planned + after.dynamic + after.displaced);
    return shares_.back();
  }
  std::string History() const {  // "0/30 0/30 30/30 ..."
    std::string text;
    for (const Share& share : shares_)
      text += std::to_string(share.planned) + "/" + std::to_string(share.requests) + " ";
    return text;
  }
  void Report(const char* program) {
    uint64_t requests = 0, planned = 0;
    for (size_t k = shares_.size() / 2; k < shares_.size(); ++k) {
      requests += shares_[k].requests;
      planned += shares_[k].planned;
    }
    hotpack_stats stats = engine_->Stats();
    std::printf(
        "%-34s planned in the second half: %6.2f %%  steady iteration %lld  plan/bound %.4f  reserved/peak %.3f\n",
        program, requests == 0 ? 0.0 : 100.0 * static_cast<double>(planned) / static_cast<double>(requests),
        static_cast<long long>(stats.steady_iteration),
        stats.plan_lower_bound == 0
            ? 0.0
            : static_cast<double>(stats.plan_height) / static_cast<double>(stats.plan_lower_bound),
        stats.live_peak == 0 ? 0.0 : static_cast<double>(stats.reserved_steady) / static_cast<double>(stats.live_peak));
  }

  FakeDeviceMemory& device() { return device_; }
  Engine& engine() { return *engine_; }
  void Destroy() { engine_.reset(); }
  const std::map<DeviceAddress, uint64_t>& live() const { return live_; }
  const std::vector<Share>& shares() const { return shares_; }

 private:
  FakeDeviceMemory device_;
  std::unique_ptr<Engine> engine_;
  std::map<DeviceAddress, uint64_t> live_;  // address → bytes
  std::vector<Share> shares_;
};

// A training step of a plain network: activations live until their backward use, gradients until the next step.
class Net {
 public:
  explicit Net(Job* job, int layers = 20, uint64_t scale = 1) : job_(job), layers_(layers), scale_(scale) {}

  // Changes of a step.
  struct Change {
    int insert_at = -1;       // another request, before this layer
    int grow_at = -1;         // this layer's activation is half as large again
    uint64_t grow_bytes = 0;  // ... or that large
    int shrink_at = -1;       // ... a tenth smaller
    int skip_at = -1;         // this layer has no workspace
    int keep_at = -1;         // this layer's activation is kept until `kept` is released
    // Four layers each release their activations in any order, at any moment.
    std::mt19937_64* permute = nullptr;
    std::function<void(int layer)> at;  // called before each layer of the forward pass
  };

  void Step() { Step(Change()); }
  void Step(const Change& change) {
    std::vector<DeviceAddress> activations, loose;
    DeviceAddress x = job_->Ask(Size(1, 500));
    for (int l = 0; l < layers_; ++l) {
      if (change.at) change.at(l);
      if (l == change.insert_at) loose.push_back(job_->Ask(Size(l, 3333)));
      uint64_t bytes = Size(l, 100);
      if (l == change.grow_at) bytes = change.grow_bytes != 0 ? change.grow_bytes : bytes + bytes / 2;
      if (l == change.shrink_at) bytes -= bytes / 10;
      activations.push_back(job_->Ask(bytes));
      if (l != change.skip_at) job_->Touch(Size(l, 777));
    }
    job_->Give(&gradients_);  // zero_grad
    DeviceAddress flow = job_->Ask(Size(layers_, 60));
    for (int l = layers_ - 1; l >= 0; --l) {
      gradients_.push_back(job_->Ask(Size(l, 20)));
      DeviceAddress next = job_->Ask(Size(l, 60));
      job_->Give(flow);
      flow = next;
      if (l == change.keep_at) {
        kept.push_back(activations[l]);
      } else if (change.permute != nullptr) {
        loose.push_back(activations[l]);
        std::shuffle(loose.begin(), loose.end(), *change.permute);
        while (!loose.empty() && (l % 4 == 0 || (*change.permute)() % 2 == 0)) {
          job_->Give(loose.back());
          loose.pop_back();
        }
      } else {
        job_->Give(activations[l]);
      }
    }
    job_->Give(flow);
    if (change.permute != nullptr) std::shuffle(loose.begin(), loose.end(), *change.permute);
    job_->Give(&loose);
    job_->Give(x);
  }
  void ZeroGrad() { job_->Give(&gradients_); }
  uint64_t Size(int layer, uint64_t salt) const {  // 1 to 256 KiB times the scale, different for each
    uint64_t mixed = (static_cast<uint64_t>(layer) * 1000003 + salt) * 0x9E3779B97F4A7C15u;
    return ((mixed >> 40) % (256 << 10) + 1024) * scale_;
  }

  std::vector<DeviceAddress> kept;

 private:
  Job* job_;
  int layers_;
  uint64_t scale_;
  std::vector<DeviceAddress> gradients_;
};

// The forward pass alone, of another network or another batch: no activation outlives the next layer's.
inline void Evaluate(Job* job, int layers = 12) {
  DeviceAddress x = job->Ask(450 << 10);
  for (int l = 0; l < layers; ++l) {
    DeviceAddress next = job->Ask((150 + 13 * l) << 10);
    job->Touch((90 + 5 * l) << 10);
    job->Give(x);
    x = next;
  }
  job->Give(x);
}

}  // namespace hotpack
