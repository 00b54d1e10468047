// HOTPACK_PLAN: the file that an arena's plan is kept in, and what is said about it on stderr.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/memory/cuda_device_memory.h"
#include "runtime/persist/saved_plan.h"

namespace hotpack {

// One an arena; never destroyed, because its planner may be saving when the process ends. Says at most one line about
// reading, one about a plan that does not fit, and one about writing.
class PlanStore : public PlanSink {
 public:
  PlanStore(std::string path, std::string device, uint64_t device_bytes)
      : path_(std::move(path)), device_(std::move(device)), device_bytes_(device_bytes) {}

  // The plan of an earlier run; null if there is none, or none that can be used, with one line then. Call once.
  std::shared_ptr<const SavedPlan> Load();
  void Save(const SavedPlan& plan) override;  // waits for the disk
  void OnRejected() override;

 private:
  const std::string path_;
  const std::string device_;
  const uint64_t device_bytes_;
  std::mutex mutex_;  // one save at a time, so that the last one stays
  bool keep_ = true;  // false: nothing is saved any more
  std::atomic<bool> warned_{false};
};

// The store of a new arena: null without HOTPACK_PLAN, or where memory for it is not to be had. The context is current.
PlanStore* NewPlanStore(const CudaDriver& driver, const ContextMemory& memory);
// The context's arena is no more: its name is free for the next.
void ClosePlanStore(CUcontext context);
// In a forked child: no arena has a store.
void ForgetPlanStores();

// Name and size of a device as plans have them. Driver calls.
std::string DeviceName(const CudaDriver& driver, int device);

// 0 or an errno value: see hotpack_save_plan.
int SavePlans(const char* path);

}  // namespace hotpack
