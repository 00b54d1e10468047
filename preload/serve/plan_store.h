// HOTPACK_PLAN: the file that holds an arena's plan, and the lines about it on stderr.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/memory/cuda_device_memory.h"
#include "runtime/persist/saved_plan.h"

namespace hotpack {

// One per arena. Never destroyed, because the arena's plan worker may be saving when the process ends. Logs at most one
// line each about reading, about a plan that does not fit, and about writing.
class PlanStore : public PlanSink {
 public:
  PlanStore(std::string path, std::string device, uint64_t device_bytes)
      : path_(std::move(path)), device_(std::move(device)), device_bytes_(device_bytes) {}

  // Returns the plan of an earlier run. Null if there is none; null with one line if it is unusable. Call once.
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

// Returns the store of a new arena. Null without HOTPACK_PLAN, or out of memory. The context is current.
PlanStore* NewPlanStore(const CudaDriver& driver, const ContextMemory& memory);
// Frees the name of the context's ended arena for the next.
void ClosePlanStore(CUcontext context);
// In a forked child: removes the store of every arena.
void ForgetPlanStores();

// Returns name and size of a device in the format of plans. Makes driver calls.
std::string DeviceName(const CudaDriver& driver, int device);

// Returns 0 or an errno value: see hotpack_save_plan.
int SavePlans(const char* path);

}  // namespace hotpack
