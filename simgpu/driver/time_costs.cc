#include "simgpu/driver/time_costs.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "simgpu/driver/state.h"

namespace simgpu {
namespace {

constexpr double kMiB = 1 << 20;

struct Cost {
  double call = 0, mib = 0;  // microseconds
};

// Where the figures come from: simgpu/README.md, Virtual time.
struct Costs {
  std::map<std::string, Cost> calls = {
      {"call", {0.2, 0}},
      {"cuCtxSynchronize", {1, 0}},
      {"cuEventQuery", {0.5, 0}},
      {"cuEventRecord", {1, 0}},
      {"cuEventSynchronize", {1, 0}},
      {"cuGraphLaunch", {2.5, 0}},
      {"cuLaunchCooperativeKernel", {3.8, 0}},
      {"cuLaunchHostFunc", {3.8, 0}},
      {"cuLaunchKernel", {3.8, 0}},
      {"cuLaunchKernelEx", {3.8, 0}},
      {"cuMemAddressReserve", {19, 0}},
      {"cuMemAlloc", {16.5, 0}},
      {"cuMemCreate", {193, 0}},
      {"cuMemFree", {16.5, 0}},
      {"cuMemMap", {1.45, 0}},
      {"cuMemSetAccess", {36, 0}},
      {"cuMemUnmap", {25.6, 0}},
      {"cuMemcpy", {6, 0}},  // each name that begins so
      {"cuMemset", {3.8, 0}},
      {"cuStreamQuery", {0.5, 0}},
      {"cuStreamSynchronize", {1, 0}},
      {"cuStreamWaitEvent", {1, 0}},
  };
  double kernel = 2.9;                                  // microseconds
  double thread = 0.016;                                // nanoseconds, in addition
  double memory = 2039;                                 // GB/s
  double pcie = 25;                                     // GB/s
  bool one_at_a_time = false;                           // kernels of a device
  std::vector<std::pair<std::string, double>> kernels;  // part of a name → microseconds
};

Costs* costs = nullptr;  // written once, at cuInit
std::mutex marks_lock;
std::vector<std::pair<std::string, uint64_t>>* marks = nullptr;
std::atomic<uint64_t> kernel_time{0}, copy_time{0}, memory_time{0};

[[noreturn]] void Refuse(const std::string& item) {
  fprintf(stderr,
          "simgpu: SIMGPU_TIME: '%s' is not 1, @FILE or NAME=NUMBER (NAME: an entry point, call, kernel, kernel:PART, "
          "thread, memory, pcie or compute)\n",
          item.c_str());
  _exit(2);
}

bool ReadNumber(const char** text, double* number) {
  char* end = nullptr;
  *number = strtod(*text, &end);
  const bool good = end != *text && *number >= 0 && *number < 1e12;
  *text = end;
  return good;
}

void Set(Costs* c, const std::string& item) {
  const size_t equals = item.find('=');
  if (equals == std::string::npos) Refuse(item);
  const std::string name = item.substr(0, equals);
  const char* text = item.c_str() + equals + 1;
  if (name == "compute") {
    if (strcmp(text, "one") != 0 && strcmp(text, "free") != 0) Refuse(item);
    c->one_at_a_time = strcmp(text, "one") == 0;
    return;
  }
  Cost cost;
  if (!ReadNumber(&text, &cost.call)) Refuse(item);
  const bool is_call = name == "call" || name.starts_with("cu");
  if (is_call && *text == '+') {
    ++text;
    if (!ReadNumber(&text, &cost.mib)) Refuse(item);
  }
  if (*text != '\0') Refuse(item);
  const bool is_rate = name == "memory" || name == "pcie";
  if (is_rate && cost.call == 0) Refuse(item);
  if (is_call) {
    c->calls[name] = cost;
  } else if (name == "kernel") {
    c->kernel = cost.call;
  } else if (name.starts_with("kernel:") && name.size() > 7) {
    c->kernels.emplace_back(name.substr(7), cost.call);
  } else if (name == "thread") {
    c->thread = cost.call;
  } else if (name == "memory") {
    c->memory = cost.call;
  } else if (name == "pcie") {
    c->pcie = cost.call;
  } else {
    Refuse(item);
  }
}

// "1", "kernel=10,cuMemCreate=29+0.5" or "@FILE", whose lines are such lists. '#' begins a comment.
void Parse(Costs* c, const std::string& all, bool files) {
  std::stringstream rest(all);
  for (std::string item; std::getline(rest, item, ',');) {
    if (item.empty() || item == "1") continue;
    if (item[0] != '@') {
      Set(c, item);
      continue;
    }
    std::ifstream file(item.substr(1));
    if (!files || !file) Refuse(item);
    for (std::string line; std::getline(file, line);) {
      line.resize(std::min(line.find('#'), line.size()));
      std::erase_if(line, [](unsigned char letter) { return isspace(letter) != 0; });
      Parse(c, line, false);
    }
  }
}

uint64_t Nanoseconds(double bytes, double gigabytes_a_second) {
  return static_cast<uint64_t>(bytes / gigabytes_a_second);
}

double Milliseconds(uint64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

bool OnDevice(const Region& region) { return region.kind != RegionKind::kForeign && region.kind != RegionKind::kHost; }

}  // namespace

void ReadTimeCosts() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char* text = getenv("SIMGPU_TIME");
    if (text == nullptr || *text == '\0' || strcmp(text, "0") == 0) return;
    auto* read = new Costs;
    Parse(read, text, true);
    costs = read;
    marks = new std::vector<std::pair<std::string, uint64_t>>;
    StartTimeMode();
  });
}

void CostOfCall(const std::string& base, CallTime* time) {
  if (!TimeMode()) return;
  auto found = costs->calls.find(base);
  for (const char* family : {"cuMemcpy", "cuMemset", "call"}) {
    if (found != costs->calls.end()) break;
    if (base.starts_with(family) || strcmp(family, "call") == 0) found = costs->calls.find(family);
  }
  time->cost = found->second.call * 1e3;
  time->cost_mib = found->second.mib * 1e3;
}

uint64_t KernelTime(const std::string& name, uint64_t threads) {
  if (!TimeMode()) return 0;
  for (const auto& [part, microseconds] : costs->kernels) {
    if (name.find(part) != std::string::npos) return static_cast<uint64_t>(microseconds * 1e3);
  }
  return static_cast<uint64_t>(costs->kernel * 1e3 + costs->thread * static_cast<double>(threads));
}

void HostTakesLibraryCall() {
  if (TimeMode()) HostTakes(static_cast<uint64_t>(costs->calls.at("cuLaunchKernel").call * 1e3));
}

void TakeKernel(Driver& d, int stream, uint64_t nanoseconds) {
  if (!TimeMode()) return;
  kernel_time.fetch_add(nanoseconds, std::memory_order_relaxed);
  d.order.Take(stream, nanoseconds, costs->one_at_a_time ? &d.compute_free : nullptr);
}

void TakeMemory(Driver& d, int stream, uint64_t bytes) {
  if (!TimeMode()) return;
  const uint64_t time = Nanoseconds(static_cast<double>(bytes), costs->memory);
  memory_time.fetch_add(time, std::memory_order_relaxed);
  d.order.Take(stream, time);
}

void TakeCopy(Driver& d, int stream, uint64_t to, uint64_t from, uint64_t bytes) {
  if (!TimeMode()) return;
  const Region source = d.memory.Find(from), target = d.memory.Find(to);
  if (OnDevice(source) && OnDevice(target) && source.device == target.device) {
    TakeMemory(d, stream, 2 * bytes);
    return;
  }
  const uint64_t time = Nanoseconds(static_cast<double>(bytes), costs->pcie);
  copy_time.fetch_add(time, std::memory_order_relaxed);
  if (!OnDevice(source) && !OnDevice(target)) return;
  Device& device = d.devices[OnDevice(source) ? source.device : target.device];
  d.order.Take(stream, time, OnDevice(source) ? &device.copies_out_free : &device.copies_in_free);
}

void MarkTime(const char* name) {
  if (!TimeMode()) return;
  const std::lock_guard<std::mutex> lock(marks_lock);
  marks->emplace_back(name, HostNow());
}

namespace {

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return quoted + '"';
}

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char text[256];
  snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

void FinishTimes(const std::vector<NamedTime>& calls) {
  if (!TimeMode()) return;
  uint64_t taken = 0;
  for (const NamedTime& call : calls) taken += call.time->taken.load();
  const char* path = getenv("SIMGPU_TIME_FILE");
  FILE* file = path == nullptr || *path == '\0' ? nullptr : fopen(path, "ae");
  if (file == nullptr) {
    fprintf(stderr,
            "simgpu: process %d: virtual time %.3f ms: kernels %.3f ms, copies %.3f ms, in driver calls %.3f ms, "
            "waited %.3f ms\n",
            static_cast<int>(getpid()), Milliseconds(Makespan()), Milliseconds(kernel_time + memory_time),
            Milliseconds(copy_time), Milliseconds(taken), Milliseconds(TotalWaited()));
    return;
  }
  std::string json = Format("{\"process\": %d, \"makespan_ms\": %.6f, \"kernels_ms\": %.6f, \"memory_ms\": %.6f, ",
                            static_cast<int>(getpid()), Milliseconds(Makespan()), Milliseconds(kernel_time),
                            Milliseconds(memory_time));
  json += Format("\"copies_ms\": %.6f, \"calls_ms\": %.6f, \"waited_ms\": %.6f, \"calls\": {", Milliseconds(copy_time),
                 Milliseconds(taken), Milliseconds(TotalWaited()));
  const char* separator = "";
  for (const NamedTime& call : calls) {
    if (call.time->calls.load() == 0) continue;
    json += separator + Quoted(call.base) +
            Format(": {\"calls\": %llu, \"ms\": %.6f, \"waited_ms\": %.6f}",
                   static_cast<unsigned long long>(call.time->calls.load()), Milliseconds(call.time->taken),
                   Milliseconds(call.time->waited));
    separator = ", ";
  }
  json += "}, \"marks\": [";
  separator = "";
  const std::lock_guard<std::mutex> lock(marks_lock);
  for (const auto& [name, moment] : *marks) {
    json += separator + ("{\"name\": " + Quoted(name)) + Format(", \"ms\": %.6f}", Milliseconds(moment));
    separator = ", ";
  }
  json += "]}\n";
  fwrite(json.data(), 1, json.size(), file);
  fclose(file);
}

}  // namespace simgpu
