#include "preload/serve/plan_store.h"

#include <errno.h>
#include <limits.h>
#include <time.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <new>
#include <vector>

#include "preload/process/driver_access.h"
#include "preload/process/log.h"
#include "preload/process/options.h"
#include "preload/serve/plan_path.h"
#include "runtime/persist/plan_file.h"
#include "runtime/process/arena_table.h"

namespace hotpack {
namespace {

// Names in use. `mutex` is never held across a driver or file call.
struct Taken {
  CUcontext context;  // null: free again
  std::string base;   // the name without its number
  int ordinal;
  Taken* next;
};
struct Names {
  std::mutex mutex;
  Taken* first = nullptr;  // never freed
};
constinit Names names;

// Returns the lowest ordinal that no live arena has under this name.
int TakeOrdinal(CUcontext context, const std::string& base) {
  std::lock_guard<std::mutex> lock(names.mutex);
  for (int ordinal = 1;; ++ordinal) {
    Taken* found = nullptr;
    for (Taken* taken = names.first; taken != nullptr; taken = taken->next) {
      if (taken->ordinal == ordinal && taken->base == base) found = taken;
    }
    if (found != nullptr && found->context != nullptr) continue;
    if (found == nullptr) {
      names.first = new Taken{context, base, ordinal, names.first};
    } else {
      found->context = context;
    }
    return ordinal;
  }
}

// The program may change its directory before it saves.
std::string Absolute(const std::string& path) {
  char here[PATH_MAX];
  if (path.front() == '/' || getcwd(here, sizeof(here)) == nullptr) return path;
  return std::string(here) + "/" + path;
}

std::string ProgramPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string();
}

uint64_t Now() {
  struct timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

int WriteSigned(const std::string& path, const std::string& device, SavedPlan plan) {
  plan.program = ProgramPath();
  plan.device = device;
  plan.created_ns = Now();
  return WritePlanFile(path.c_str(), plan);
}

}  // namespace

std::shared_ptr<const SavedPlan> PlanStore::Load() try {
  auto plan = std::make_shared<SavedPlan>();
  const PlanFileStatus status = ReadPlanFile(path_.c_str(), plan.get());
  if (status == PlanFileStatus::kCannotRead && errno == ENOENT) return nullptr;  // the first run
  if (status == PlanFileStatus::kCannotRead) {
    Log("no plan: cannot read %s: %s", path_.c_str(), strerror(errno));
    keep_ = false;
    return nullptr;
  }
  if (status == PlanFileStatus::kNotAPlan) {
    keep_ = false;
    Log("no plan: %s is no plan file; it is left alone", path_.c_str());
    return nullptr;
  }
  if (status != PlanFileStatus::kOk) {
    Log("the plan in %s is not used: %s", path_.c_str(), PlanFileText(status));
    return nullptr;
  }
  for (const auto& script : plan->scripts) {
    if (script->height_bytes <= device_bytes_) continue;
    Log("the plan in %s is not used: it needs %llu MiB, and the device has %llu", path_.c_str(),
        static_cast<unsigned long long>(script->height_bytes >> 20),
        static_cast<unsigned long long>(device_bytes_ >> 20));
    return nullptr;
  }
  const uint64_t alignment = GetOptions().alignment;
  if (!IsAligned(*plan, alignment)) {
    Log("the plan in %s is not used: its blocks are not aligned to %llu bytes (HOTPACK_ALIGNMENT)", path_.c_str(),
        static_cast<unsigned long long>(alignment));
    return nullptr;
  }
  return plan;
} catch (const std::bad_alloc&) {
  return nullptr;
}

void PlanStore::Save(const SavedPlan& plan) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!keep_) return;
  const int error = WriteSigned(path_, device_, plan);
  if (error == 0 || warned_.exchange(true)) return;
  Log("no plan is saved: cannot write %s: %s", path_.c_str(), strerror(error));
}

void PlanStore::OnRejected() {
  Log("the plan in %s does not fit what this program asks for and is not used", path_.c_str());
}

std::string DeviceName(const CudaDriver& driver, int device) {
  char name[128] = "";
  if (driver.DeviceGetName == nullptr || driver.DeviceGetName(name, sizeof(name), device) != CUDA_SUCCESS) return "";
  name[sizeof(name) - 1] = '\0';
  return name;
}

PlanStore* NewPlanStore(const CudaDriver& driver, const ContextMemory& memory) try {
  const char* pattern = GetOptions().plan;
  if (pattern == nullptr) return nullptr;
  const std::string base = ExpandPlanPath(pattern, memory.device());
  if (base.empty()) {
    Log("no plan: HOTPACK_PLAN is too long");
    return nullptr;
  }
  const int ordinal = TakeOrdinal(memory.context(), base);
  return new PlanStore(NumberedPlanPath(Absolute(base), ordinal), DeviceName(driver, memory.device()),
                       memory.TotalBytes());
} catch (const std::bad_alloc&) {
  return nullptr;
}

void ClosePlanStore(CUcontext context) {
  std::lock_guard<std::mutex> lock(names.mutex);
  for (Taken* taken = names.first; taken != nullptr; taken = taken->next) {
    if (taken->context == context) taken->context = nullptr;
  }
}

void ForgetPlanStores() { new (&names) Names; }  // a lost thread may hold the mutex

int SavePlans(const char* path) try {
  const char* pattern = path != nullptr ? path : GetOptions().plan;
  if (pattern == nullptr || pattern[0] == '\0') return EINVAL;
  const CudaDriver* driver = Driver();
  std::map<std::string, int> seen;
  int result = ENODATA;
  Arenas().ForEach([&](ContextArena* arena) {
    const std::string base = ExpandPlanPath(pattern, arena->memory->device());
    const std::string name = NumberedPlanPath(base, ++seen[base]);
    const std::shared_ptr<const SavedPlan> plan = arena->engine->PlanToSave();
    if (plan == nullptr) return;
    const std::string device = driver != nullptr ? DeviceName(*driver, arena->memory->device()) : "";
    const int error = base.empty() ? ENAMETOOLONG : WriteSigned(name, device, *plan);
    if (error != 0 || result == ENODATA) result = error;
  });
  return result;
} catch (const std::bad_alloc&) {
  return ENOMEM;
}

}  // namespace hotpack
