#include "runtime/persist/plan_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "packer/pack.h"
#include "packer/validator.h"
#include "runtime/base/file_replace.h"
#include "runtime/memory/arena.h"

namespace hotpack {
namespace {

constexpr uint8_t kMagic[8] = {0x89, 'h', 'o', 't', 'p', 'l', 'a', 'n'};
constexpr uint16_t kVersion = 1;
constexpr size_t kHeaderBytes = 512, kScriptBytes = 40, kEntryBytes = 16, kRequestBytes = 8;
constexpr size_t kProgramMax = 256, kDeviceMax = 128;
constexpr uint32_t kMaxScripts = 64;
constexpr uint64_t kMaxEntries = uint64_t{1} << 22;  // of one script
// Positions of the header's fields.
constexpr size_t kVersionAt = 8, kHeaderBytesAt = 10, kScriptsAt = 12, kFileBytesAt = 16, kChecksumAt = 24,
                 kToolAt = 28, kCreatedAt = 32, kChunkAt = 40, kDeviceBytesAt = 48, kLivePeakAt = 56, kBeforeAt = 64,
                 kRequestsAt = 72, kOpeningScriptAt = 76, kProgramLengthAt = 80, kDeviceLengthAt = 84, kProgramAt = 88,
                 kDeviceAt = kProgramAt + kProgramMax, kHeldWithoutAt = kDeviceAt + kDeviceMax,
                 kLiveWithoutAt = kHeldWithoutAt + 8, kZeroAt = kLiveWithoutAt + 8;
static_assert(kZeroAt <= kHeaderBytes);
static_assert(kHeaderBytes + kScriptBytes + kMaxEntries * kEntryBytes + kMaxOpening * kRequestBytes <=
              kMaxPlanFileBytes);

// CRC-32C (Castagnoli), reflected: polynomial 0x82F63B78.
struct CrcTable {
  uint32_t entry[256];
  constexpr CrcTable() : entry{} {
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0x82F63B78u : 0);
      entry[i] = value;
    }
  }
};
constexpr CrcTable kCrc;

uint32_t Crc(uint32_t crc, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) crc = (crc >> 8) ^ kCrc.entry[(crc ^ data[i]) & 0xFF];
  return crc;
}

// Computes the checksum of the whole file, with zeros at the checksum's position.
uint32_t Checksum(const uint8_t* data, size_t size) {
  constexpr uint8_t kZeros[4] = {};
  uint32_t crc = Crc(~0u, data, kChecksumAt);
  crc = Crc(crc, kZeros, sizeof(kZeros));
  return ~Crc(crc, data + kChecksumAt + 4, size - kChecksumAt - 4);
}

template <typename T>
void Put(uint8_t* at, T value) {  // little endian on any machine
  for (size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i));
}
template <typename T>
T Get(const uint8_t* at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(at[i]) << (8 * i);
  return static_cast<T>(value);
}

uint8_t* PutScript(uint8_t* at, const Script& script) {
  Put(at, script.size());
  Put(at + 4, script.profile.period);
  Put(at + 8, script.profile.unroll);
  Put(at + 12, uint32_t{0});
  Put(at + 16, script.height_bytes);
  Put(at + 24, PeakUnits(script.profile) * kBlockUnit);
  Put(at + 32, script.lower_bound_bytes);
  at += kScriptBytes;
  for (uint32_t i = 0; i < script.size(); ++i, at += kEntryBytes) {
    const ProfileBlock& block = script.profile.blocks[i];
    Put(at, block.units);
    Put(at + 4, block.planned ? block.age : 0);
    Put(at + 8, block.planned ? block.min_age : 0);
    Put(at + 12, script.entries[i].offset);
  }
  return at;
}

// Reads one entry of a script of `n`. Returns false if it is invalid.
bool GetBlock(const uint8_t* at, uint32_t n, ProfileBlock* block, uint32_t* offset) {
  block->units = Get<uint32_t>(at);
  block->age = Get<uint32_t>(at + 4);
  block->min_age = Get<uint32_t>(at + 8);
  *offset = Get<uint32_t>(at + 12);
  block->planned = block->age != 0;
  if (block->units == 0 || block->units > kMaxRequestBytes / kBlockUnit) return false;
  if (!block->planned) return block->min_age == 0 && *offset == kNone;
  if (block->age > n || block->min_age == 0 || block->min_age > block->age) return false;
  return *offset + uint64_t{block->units} <= kMaxArenaBytes / kBlockUnit;
}

// Counts the blocks live at the cycle's beginning.
void CountCarried(Profile* profile) {
  const uint64_t n = profile->blocks.size();
  for (uint64_t i = 0; i < n; ++i) {
    const ProfileBlock& block = profile->blocks[i];
    if (!block.planned || i + block.age <= n) continue;
    ++profile->carried_blocks;
    profile->carried_units += block.units;
  }
}

// Reads the script at `at`, with `left` bytes from there on. Advances both past it.
std::shared_ptr<const Script> GetScript(const uint8_t** at, size_t* left) {
  if (*left < kScriptBytes) return nullptr;
  const uint8_t* head = *at;
  const uint32_t n = Get<uint32_t>(head);
  if (n == 0 || n > kMaxEntries || (*left - kScriptBytes) / kEntryBytes < n) return nullptr;
  Profile profile;
  profile.period = Get<uint32_t>(head + 4);
  profile.unroll = Get<uint32_t>(head + 8);
  if (profile.period == 0 || profile.unroll == 0 || uint64_t{profile.period} * profile.unroll != n) return nullptr;
  if (Get<uint32_t>(head + 12) != 0) return nullptr;
  profile.blocks.resize(n);
  std::vector<uint32_t> places(n);
  for (uint32_t i = 0; i < n; ++i) {
    if (!GetBlock(head + kScriptBytes + i * kEntryBytes, n, &profile.blocks[i], &places[i])) return nullptr;
  }
  std::vector<uint32_t> index;
  const Instance instance = ToInstance(profile, &index);
  if (index.empty() || CheckInstance(instance) != PackStatus::kOk) return nullptr;
  Placement placement;
  for (uint32_t i : index) {
    placement.offsets.push_back(static_cast<Offset>(places[i] * kBlockUnit));
    placement.height =
        std::max(placement.height, placement.offsets.back() + instance.blocks[placement.offsets.size() - 1].size);
  }
  const auto height = Get<uint64_t>(head + 16), load = Get<uint64_t>(head + 24), bound = Get<uint64_t>(head + 32);
  if (static_cast<uint64_t>(placement.height) != height || load > bound || bound > height) return nullptr;
  if (PeakUnits(profile) * kBlockUnit != load || !Validate(instance, placement).empty()) return nullptr;
  CountCarried(&profile);
  *at += kScriptBytes + n * kEntryBytes;
  *left -= kScriptBytes + n * kEntryBytes;
  return std::make_shared<const Script>(
      CompileScript(profile, index, placement.offsets, {}, 0, static_cast<Bytes>(bound)));
}

// Reads the rest of the file, after the scripts.
bool GetOpening(const uint8_t* header, const uint8_t* at, size_t left, SavedPlan* plan) {
  Opening& opening = plan->opening;
  const uint32_t count = Get<uint32_t>(header + kRequestsAt);
  opening.before = Get<uint64_t>(header + kBeforeAt);
  opening.script = Get<uint32_t>(header + kOpeningScriptAt);
  if (count > kMaxOpening || left != count * kRequestBytes || opening.script >= plan->scripts.size()) return false;
  if (count > 0 && opening.before >= count) return false;
  const Script& script = *plan->scripts[opening.script];
  for (uint32_t k = 0; k < count; ++k, at += kRequestBytes) {
    const uint32_t units = Get<uint32_t>(at), entry = Get<uint32_t>(at + 4);
    if (units == 0 || (k < opening.before && entry != kNone) || (k == opening.before && entry == kNone)) return false;
    if (entry != kNone && (entry >= script.size() || script.entries[entry].offset == kNone)) return false;
    opening.units.push_back(units);
    opening.entries.push_back(entry);
  }
  return true;
}

bool GetText(const uint8_t* header, size_t length_at, size_t at, size_t most, std::string* text) {
  const uint32_t length = Get<uint32_t>(header + length_at);
  if (length > most) return false;
  text->assign(reinterpret_cast<const char*>(header + at), length);
  return true;
}

// Closes the file in its destructor.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// Reads up to `size` bytes from the beginning; fewer at the end of the file. Returns -1 with errno set on error.
ssize_t ReadUpTo(int fd, uint8_t* data, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, data + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(done);
}

// Opens a regular file. Does not block on a pipe without a writer.
int OpenRegular(const char* path, struct stat* info) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -1;
  if (fstat(fd, info) == 0 && S_ISREG(info->st_mode)) return fd;
  errno = S_ISDIR(info->st_mode) ? EISDIR : EINVAL;
  const int saved = errno;
  close(fd);
  errno = saved;
  return -1;
}

// Returns 0 if the file at `path` may be replaced by a plan: there is no file, an empty file, or a plan. Otherwise
// returns an errno value (EEXIST: another file).
int MayReplace(const char* path) {
  struct stat info;
  const File file(OpenRegular(path, &info));
  if (file.fd() < 0) return errno == ENOENT ? 0 : errno;
  uint8_t head[sizeof(kMagic)];
  const ssize_t got = ReadUpTo(file.fd(), head, sizeof(head));
  if (got < 0) return errno;
  return got == 0 || IsPlanFile(head, static_cast<size_t>(got)) ? 0 : EEXIST;
}

}  // namespace

const char* PlanFileText(PlanFileStatus status) {
  switch (status) {
    case PlanFileStatus::kOk:
      return "a plan";
    case PlanFileStatus::kCannotRead:
      return "it cannot be read";
    case PlanFileStatus::kNotAPlan:
      return "it is no plan file";
    case PlanFileStatus::kVersion:
      return "it is of another version of the format";
    case PlanFileStatus::kDamaged:
      return "it is damaged";
    case PlanFileStatus::kInvalid:
      return "what it says is no plan";
  }
  return "";
}

bool IsPlanFile(const uint8_t* data, size_t size) {
  return size >= sizeof(kMagic) && memcmp(data, kMagic, sizeof(kMagic)) == 0;
}

std::vector<uint8_t> EncodePlan(const SavedPlan& plan) {
  size_t size = kHeaderBytes + plan.opening.units.size() * kRequestBytes;
  for (const auto& script : plan.scripts) size += kScriptBytes + script->size() * kEntryBytes;
  std::vector<uint8_t> bytes(size, 0);
  uint8_t* header = bytes.data();
  memcpy(header, kMagic, sizeof(kMagic));
  Put(header + kVersionAt, kVersion);
  Put(header + kHeaderBytesAt, static_cast<uint16_t>(kHeaderBytes));
  Put(header + kScriptsAt, static_cast<uint32_t>(plan.scripts.size()));
  Put(header + kFileBytesAt, uint64_t{size});
  Put(header + kToolAt, plan.tool_version);
  Put(header + kCreatedAt, plan.created_ns);
  Put(header + kChunkAt, plan.chunk_bytes);
  Put(header + kDeviceBytesAt, plan.device_bytes);
  Put(header + kLivePeakAt, plan.live_peak_bytes);
  Put(header + kHeldWithoutAt, plan.held_without_bytes);
  Put(header + kLiveWithoutAt, plan.live_without_bytes);
  Put(header + kBeforeAt, plan.opening.before);
  Put(header + kRequestsAt, static_cast<uint32_t>(plan.opening.units.size()));
  Put(header + kOpeningScriptAt, plan.opening.script);
  const size_t program = std::min(plan.program.size(), kProgramMax), device = std::min(plan.device.size(), kDeviceMax);
  Put(header + kProgramLengthAt, static_cast<uint32_t>(program));
  Put(header + kDeviceLengthAt, static_cast<uint32_t>(device));
  memcpy(header + kProgramAt, plan.program.data(), program);
  memcpy(header + kDeviceAt, plan.device.data(), device);
  uint8_t* at = header + kHeaderBytes;
  for (const auto& script : plan.scripts) at = PutScript(at, *script);
  for (size_t k = 0; k < plan.opening.units.size(); ++k, at += kRequestBytes) {
    Put(at, plan.opening.units[k]);
    Put(at + 4, plan.opening.entries[k]);
  }
  Put(header + kChecksumAt, Checksum(bytes.data(), size));
  return bytes;
}

PlanFileStatus DecodePlan(const uint8_t* data, size_t size, SavedPlan* plan) {
  if (!IsPlanFile(data, size)) return PlanFileStatus::kNotAPlan;
  if (size < kHeaderBytes || size > kMaxPlanFileBytes) return PlanFileStatus::kDamaged;
  if (Get<uint16_t>(data + kVersionAt) != kVersion) return PlanFileStatus::kVersion;
  if (Get<uint64_t>(data + kFileBytesAt) != size || Get<uint16_t>(data + kHeaderBytesAt) != kHeaderBytes) {
    return PlanFileStatus::kDamaged;
  }
  if (Get<uint32_t>(data + kChecksumAt) != Checksum(data, size)) return PlanFileStatus::kDamaged;
  SavedPlan read;
  read.tool_version = Get<uint32_t>(data + kToolAt);
  read.created_ns = Get<uint64_t>(data + kCreatedAt);
  read.chunk_bytes = Get<uint64_t>(data + kChunkAt);
  read.device_bytes = Get<uint64_t>(data + kDeviceBytesAt);
  read.live_peak_bytes = Get<uint64_t>(data + kLivePeakAt);
  read.held_without_bytes = Get<uint64_t>(data + kHeldWithoutAt);
  read.live_without_bytes = Get<uint64_t>(data + kLiveWithoutAt);
  if (!GetText(data, kProgramLengthAt, kProgramAt, kProgramMax, &read.program) ||
      !GetText(data, kDeviceLengthAt, kDeviceAt, kDeviceMax, &read.device)) {
    return PlanFileStatus::kInvalid;
  }
  const uint32_t scripts = Get<uint32_t>(data + kScriptsAt);
  if (scripts == 0 || scripts > kMaxScripts) return PlanFileStatus::kInvalid;
  const uint8_t* at = data + kHeaderBytes;
  size_t left = size - kHeaderBytes;
  for (uint32_t i = 0; i < scripts; ++i) {
    read.scripts.push_back(GetScript(&at, &left));
    if (read.scripts.back() == nullptr) return PlanFileStatus::kInvalid;
  }
  if (!GetOpening(data, at, left, &read)) return PlanFileStatus::kInvalid;
  *plan = std::move(read);
  return PlanFileStatus::kOk;
}

PlanFileStatus ReadPlanFile(const char* path, SavedPlan* plan) {
  struct stat info;
  const File file(OpenRegular(path, &info));
  if (file.fd() < 0) return PlanFileStatus::kCannotRead;
  if (info.st_size < 0 || static_cast<uint64_t>(info.st_size) > kMaxPlanFileBytes) {
    uint8_t head[sizeof(kMagic)];
    const ssize_t got = ReadUpTo(file.fd(), head, sizeof(head));
    return got > 0 && IsPlanFile(head, static_cast<size_t>(got)) ? PlanFileStatus::kDamaged : PlanFileStatus::kNotAPlan;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(info.st_size));
  const ssize_t got = ReadUpTo(file.fd(), bytes.data(), bytes.size());
  if (got < 0) return PlanFileStatus::kCannotRead;
  return DecodePlan(bytes.data(), static_cast<size_t>(got), plan);
}

int WritePlanFile(const char* path, const SavedPlan& plan) {
  if (const int error = MayReplace(path)) return error;
  const std::vector<uint8_t> bytes = EncodePlan(plan);
  if (bytes.size() > kMaxPlanFileBytes) return EFBIG;
  return ReplaceFile(path, bytes.data(), bytes.size());
}

}  // namespace hotpack
