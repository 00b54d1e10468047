#include "runtime/persist/stats_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

namespace hotpack {
namespace {

constexpr size_t kFileBytes = sizeof(StatsFileHeader) + kStatsSlots * sizeof(StatsSlot);

void CopyProgramName(char* out, size_t size) {
  const int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, out, size - 1);
  if (fd >= 0) close(fd);
  if (length < 0) length = 0;
  while (length > 0 && out[length - 1] == '\n') --length;
  out[length] = '\0';
}

StatsSlot* Slots(StatsFileHeader* header) { return reinterpret_cast<StatsSlot*>(header + 1); }

}  // namespace

StatsFileHeader* CreateStatsFile(const char* directory, const char* suffix) {
  char path[4096];
  const int length = snprintf(path, sizeof(path), "%s/stats.%d%s", directory, static_cast<int>(getpid()), suffix);
  if (length < 0 || static_cast<size_t>(length) >= sizeof(path)) return nullptr;
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return nullptr;
  // Uses posix_fallocate instead of ftruncate: a full disk must cause an error here, not SIGBUS at the first write.
  void* mapping = MAP_FAILED;
  if (posix_fallocate(fd, 0, kFileBytes) == 0) {
    mapping = mmap(nullptr, kFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (mapping == MAP_FAILED) {
    unlink(path);
    return nullptr;
  }
  auto* header = new (mapping) StatsFileHeader{};
  header->version = kStatsVersion;
  header->slot_bytes = sizeof(StatsSlot);
  header->pid = getpid();
  CopyProgramName(header->program, sizeof(header->program));
  for (uint32_t i = 0; i < kStatsSlots; ++i) Slots(header)[i].stats.steady_iteration = -1;
  std::atomic_ref<uint64_t>(header->magic).store(kStatsMagic, std::memory_order_release);
  return header;
}

StatsSlot* TakeStatsSlot(StatsFileHeader* header) {
  if (header == nullptr) return nullptr;
  const uint32_t slot = header->arenas.fetch_add(1);
  return slot < kStatsSlots ? &Slots(header)[slot] : nullptr;
}

bool ReadStatsFile(const std::string& path, ProcessStats* process) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rb"), fclose);
  if (!file) return false;
  std::vector<char> bytes(kFileBytes);
  if (fread(bytes.data(), 1, kFileBytes, file.get()) != kFileBytes) return false;
  const auto* header = reinterpret_cast<const StatsFileHeader*>(bytes.data());
  if (header->magic != kStatsMagic || header->version != kStatsVersion) return false;
  if (header->slot_bytes != sizeof(StatsSlot)) return false;
  process->pid = header->pid;
  process->program.assign(header->program, strnlen(header->program, sizeof(header->program)));
  process->arenas = header->arenas.load();
  process->failed = header->failed;
  const uint32_t count = std::min(process->arenas, kStatsSlots);
  StatsSlot slots[kStatsSlots] = {};
  std::memcpy(slots, bytes.data() + sizeof(StatsFileHeader), sizeof(slots));
  hotpack_stats stats[kStatsSlots] = {};
  std::transform(slots, slots + count, stats, [](const StatsSlot& slot) { return slot.stats; });
  process->stats = Combine(stats, count);
  process->current = {};
  for (uint32_t i = 0; i < count; ++i) {
    process->current.held += slots[i].current.held;
    process->current.live += slots[i].current.live;
    process->current.driver_calls += slots[i].current.driver_calls;
  }
  const StatsSlot* busiest = std::max_element(
      slots, slots + count, [](const StatsSlot& a, const StatsSlot& b) { return a.stats.requests < b.stats.requests; });
  process->load.clear();
  if (count > 0 && busiest->load != LoadColumns{}) process->load.assign(busiest->load.begin(), busiest->load.end());
  process->stats.passed_through += header->passed_through.load();
  process->current.driver_calls += header->passed_through.load();
  return true;
}

bool IsOtherStatsVersion(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "rb"), fclose);
  alignas(StatsFileHeader) char bytes[sizeof(StatsFileHeader)];
  if (!file || fread(bytes, 1, sizeof(bytes), file.get()) != sizeof(bytes)) return false;
  const auto* header = reinterpret_cast<const StatsFileHeader*>(bytes);
  return header->magic == kStatsMagic && (header->version != kStatsVersion || header->slot_bytes != sizeof(StatsSlot));
}

std::vector<ProcessStats> ReadStatsDirectory(const std::string& directory) {
  std::vector<ProcessStats> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return processes;
  while (const dirent* entry = readdir(dir.get())) {
    if (std::strncmp(entry->d_name, "stats.", 6) != 0) continue;
    ProcessStats process;
    if (ReadStatsFile(directory + "/" + entry->d_name, &process)) processes.push_back(process);
  }
  std::sort(processes.begin(), processes.end(), [](const ProcessStats& a, const ProcessStats& b) {
    if (a.stats.requests != b.stats.requests) return a.stats.requests > b.stats.requests;
    return a.pid < b.pid;
  });
  return processes;
}

hotpack_stats Combine(const hotpack_stats* stats, size_t count) {
  hotpack_stats sum = {};
  const hotpack_stats* busiest = nullptr;
  for (const hotpack_stats* s = stats; s != stats + count; ++s) {
#define HOTPACK_STAT(name) sum.name += s->name;
#include "runtime/stats_table.inc"
#undef HOTPACK_STAT
    if (busiest == nullptr || s->requests > busiest->requests) busiest = s;
  }
  sum.steady_iteration = -1;
  if (busiest != nullptr) {
    sum.iterations = busiest->iterations;
    sum.steady_iteration = busiest->steady_iteration;
    sum.driver_memory_calls_steady = busiest->driver_memory_calls_steady;
    sum.ns_per_request = busiest->ns_per_request;
    sum.no_plan_reason = sum.planned > 0 ? uint64_t{HOTPACK_NO_PLAN_NONE} : busiest->no_plan_reason;
  }
  return sum;
}

}  // namespace hotpack
