#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/cupti/state.h"

namespace cupti_standin {

State& The() {
  static State* state = new State;
  return *state;
}

uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Number(const char* word, uint64_t otherwise) {
  const auto found = The().words.find(word);
  return found == The().words.end() ? otherwise : strtoull(found->second.c_str(), nullptr, 10);
}
bool Has(const char* word) { return The().words.count(word) != 0; }

bool Foreign() { return The().subscriber == reinterpret_cast<CUpti_SubscriberHandle>(0x20); }

Buffer TakeBuffer() {
  Buffer buffer = The().buffer;
  The().buffer = {};
  return buffer;
}

void Complete(const Buffer& buffer) {
  if (buffer.data == nullptr) return;
  CUpti_BuffersCallbackCompleteFunc complete;
  {
    std::lock_guard lock(The().mutex);
    complete = The().complete;
    --The().figures.buffers_out;
    The().figures.delivered += buffer.used / kRecordBytes;
  }
  const auto call = [&] { complete(nullptr, 0, buffer.data, buffer.bytes, buffer.used); };
  if (Has("thread")) {
    std::thread(call).join();
  } else {
    call();
  }
}

namespace {

constexpr uint64_t kWorkNs = 100;  // less than a launch takes: the device is never far behind
static_assert(sizeof(CUpti_ActivityKernel10) <= kRecordBytes);

void Configure(const char* words) {
  State& state = The();
  for (std::string rest = words != nullptr ? words : ""; !rest.empty();) {
    const size_t comma = rest.find(',');
    const std::string word = rest.substr(0, comma);
    const size_t equal = word.find('=');
    state.words[word.substr(0, equal)] = equal == std::string::npos ? "" : word.substr(equal + 1);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
  }
  state.to_drop = Number("drop", 0);
  if (Has("taken")) {
    state.owner = state.words["taken"];
    state.subscriber = reinterpret_cast<CUpti_SubscriberHandle>(0x10);
  }
}

// Events that a submission may cause: another subscriber, or the end.
void MeetFate() {
  State& state = The();
  if (state.subscriber == nullptr) return;
  if (state.figures.submissions == Number("lose", UINT64_MAX)) {
    state.owner = "CUPTI for somebody else";
    state.subscriber = reinterpret_cast<CUpti_SubscriberHandle>(0x20);
    state.callback = nullptr;
  }
  if (state.figures.submissions == Number("end", UINT64_MAX)) {
    state.ended = true;
    state.callback = nullptr;
    state.kinds.clear();
    state.calls.clear();
    state.subscriber = nullptr;
  }
}

// Room for one record, all zero; null: it is dropped. A full buffer is given back first. Takes and gives back the lock.
uint8_t* NewRecord(std::unique_lock<std::mutex>& lock) {
  State& state = The();
  if (state.to_drop > 0) {
    --state.to_drop;
    ++state.dropped;
    return nullptr;
  }
  // Whatever gives the lock away is followed by another look: other threads have submissions too.
  while (state.buffer.data == nullptr || state.buffer.used + kRecordBytes > state.buffer.bytes) {
    Buffer other = TakeBuffer();  // full
    if (other.data == nullptr) {
      const auto request = state.request;
      size_t most = 0;
      lock.unlock();
      if (request != nullptr) request(&other.data, &other.bytes, &most);
      lock.lock();
      if (other.data != nullptr) {
        memset(other.data, 0, other.bytes);
        ++state.figures.buffers_out;
      }
      if (state.buffer.data == nullptr) {
        state.buffer = other;
        if (other.data != nullptr) continue;
        ++state.dropped;
        return nullptr;
      }
    }
    lock.unlock();
    Complete(other);
    lock.lock();
  }
  uint8_t* record = state.buffer.data + state.buffer.used;
  state.buffer.used += kRecordBytes;
  ++state.figures.records;
  return record;
}

CUpti_ActivityKind KindOf(Work work) {
  switch (work) {
    case Work::kKernel:
      return CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    case Work::kCopy:
      return CUPTI_ACTIVITY_KIND_MEMCPY;
    case Work::kSet:
      return CUPTI_ACTIVITY_KIND_MEMSET;
    case Work::kGraph:
      return CUPTI_ACTIVITY_KIND_GRAPH_TRACE;
  }
  return CUPTI_ACTIVITY_KIND_INVALID;
}

void Fill(uint8_t* room, Work work, const char* name, uint32_t correlation, uint64_t start, uint64_t end) {
  switch (work) {
    case Work::kKernel: {
      auto* record = reinterpret_cast<CUpti_ActivityKernel10*>(room);
      record->kind = KindOf(work);
      record->name = name;
      record->correlationId = correlation;
      record->start = start;
      record->end = end;
      return;
    }
    case Work::kCopy: {
      auto* record = reinterpret_cast<CUpti_ActivityMemcpy6*>(room);
      record->kind = KindOf(work);
      record->copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
      record->correlationId = correlation;
      record->start = start;
      record->end = end;
      return;
    }
    case Work::kSet: {
      auto* record = reinterpret_cast<CUpti_ActivityMemset4*>(room);
      record->kind = KindOf(work);
      record->correlationId = correlation;
      record->start = start;
      record->end = end;
      return;
    }
    case Work::kGraph: {
      auto* record = reinterpret_cast<CUpti_ActivityGraphTrace2*>(room);
      record->kind = KindOf(work);
      record->correlationId = correlation;
      record->start = start;
      record->end = end;
      return;
    }
  }
}

// Like CUPTI's own device memory: by a driver function that it looked up itself.
void AllocateForItself() {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  using Allocate = CUresult (*)(CUdeviceptr*, size_t*, size_t, size_t, unsigned);
  const auto allocate = driver != nullptr ? reinterpret_cast<Allocate>(dlsym(driver, "cuMemAllocPitch_v2")) : nullptr;
  CUdeviceptr address = 0;
  size_t pitch = 0;
  if (allocate != nullptr) allocate(&address, &pitch, 12345, 3, 4);
}

void WriteLog() {
  const char* path = getenv("CUPTI_STANDIN_LOG");
  // Of the program, not of whatever else inherits the environment.
  FILE* file = path != nullptr && The().figures.submissions > 0 ? fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  const Figures& f = The().figures;
  const std::pair<const char*, uint64_t> lines[] = {{"subscribed", f.subscribed},
                                                    {"unsubscribed", f.unsubscribed},
                                                    {"kinds_on", f.kinds_on},
                                                    {"calls_watched", f.calls_watched},
                                                    {"buffers_out", f.buffers_out},
                                                    {"submissions", f.submissions},
                                                    {"callbacks", f.callbacks},
                                                    {"records", f.records},
                                                    {"delivered", f.delivered},
                                                    {"flushes", f.flushes},
                                                    {"forced_flushes", f.forced_flushes},
                                                    {"disturbed", f.disturbed},
                                                    {"finalized", f.finalized}};
  for (const auto& [name, value] : lines) fprintf(file, "%s %llu\n", name, static_cast<unsigned long long>(value));
  fclose(file);
}

__attribute__((constructor)) void Begin() { Configure(getenv("CUPTI_STANDIN")); }
__attribute__((destructor)) void Finish() { WriteLog(); }

}  // namespace

Submission::Submission(CUpti_CallbackId call, const char* function, const void* parameters, Work work, const char* name,
                       bool captured)
    : work_(work), name_(name), captured_(captured) {
  std::unique_lock lock(The().mutex);
  State& state = The();
  ++state.figures.submissions;
  correlation_ = ++state.last_correlation;
  MeetFate();
  if (Has("allocate") && !state.allocated && state.kinds.count(KindOf(work)) != 0) {
    state.allocated = true;
    lock.unlock();
    AllocateForItself();
    lock.lock();
  }
  if (state.callback == nullptr || state.calls.count(call) == 0) return;
  ++state.figures.callbacks;
  const auto callback = state.callback;
  void* user = state.user;
  lock.unlock();
  CUpti_CallbackData data = {};
  data.callbackSite = CUPTI_API_ENTER;
  data.functionName = function;
  data.functionParams = parameters;
  // Of other calls it may be anything.
  data.symbolName = work == Work::kKernel ? name : reinterpret_cast<const char*>(8);
  data.correlationId = correlation_;
  callback(user, CUPTI_CB_DOMAIN_DRIVER_API, call, &data);
}

Submission::~Submission() {
  if (!captured_) Record();
}

void Submission::Record() {
  std::unique_lock lock(The().mutex);
  State& state = The();
  if (state.kinds.count(KindOf(work_)) == 0) return;
  uint8_t* room = NewRecord(lock);
  if (room == nullptr) return;
  const uint64_t start = std::max(Now(), state.busy_until);
  const uint64_t end = start + kWorkNs + Number("late", 0) * 1'000'000;
  if (!Has("late")) state.busy_until = end;
  state.buffer.complete_ns = std::max(state.buffer.complete_ns, end);
  Fill(room, work_, name_, correlation_, start, end);
}

void NoteMemory(CUdeviceptr address, uint64_t bytes, bool released) {
  std::unique_lock lock(The().mutex);
  State& state = The();
  const uint32_t correlation = ++state.last_correlation;
  if (state.kinds.count(CUPTI_ACTIVITY_KIND_MEMORY2) == 0) return;
  auto* record = reinterpret_cast<CUpti_ActivityMemory4*>(NewRecord(lock));
  if (record == nullptr) return;
  record->kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  record->memoryOperationType =
      released ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  record->memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record->correlationId = correlation;
  record->address = address;
  record->bytes = bytes;
  record->timestamp = Now();
}

void cupti_standin_reset(const char* words) {
  std::lock_guard lock(The().mutex);
  State& state = The();
  state.words.clear();
  state.figures = {};
  state.ended = state.allocated = false;
  state.callback = nullptr;
  state.subscriber = nullptr;
  state.kinds.clear();
  state.calls.clear();
  free(state.buffer.data);  // the client's, which has lost it
  state.buffer = {};
  state.busy_until = 0;
  state.dropped = 0;
  Configure(words);
}

Figures cupti_standin_figures() {
  std::lock_guard lock(The().mutex);
  return The().figures;
}

void cupti_standin_launch(const char* name, CUstream stream) {
  cuLaunchKernel_params parameters = {};
  parameters.hStream = stream;
  Submission(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel", &parameters, Work::kKernel, name, false);
}

}  // namespace cupti_standin
