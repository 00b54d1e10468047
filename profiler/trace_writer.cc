#include "profiler/trace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "profiler/trace_format.h"
#include "profiler/trace_record.h"

namespace hotpack {
namespace {

using namespace trace_format;

constexpr uint64_t kStepBytes = uint64_t{1} << 20;
constexpr uint64_t kPageBytes = 4096;  // mapping offsets; a larger system page is handled by rounding to it below

uint64_t PageBytes() {
  long page = sysconf(_SC_PAGESIZE);
  return page > 0 ? std::max(kPageBytes, static_cast<uint64_t>(page)) : kPageBytes;
}

template <typename T>
void Put(unsigned char* base, size_t at, T value) {
  memcpy(base + at, &value, sizeof(value));
}

// Reads the program's path, cut to the space in the header.
uint32_t ReadProgram(unsigned char* out) {
  ssize_t length = readlink("/proc/self/exe", reinterpret_cast<char*>(out), kProgramMax);
  return length > 0 ? static_cast<uint32_t>(length) : 0;
}

// Programs close unknown descriptors, above all low ones: moves ours out of the way.
int MoveUp(int fd) {
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, 512);
  if (moved < 0) return fd;
  close(fd);
  return moved;
}

// Opens a new regular file at `path`, replacing an existing one. Returns -1 with errno set on failure.
int OpenNew(const char* path) {
  struct stat info;
  if (lstat(path, &info) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
      errno = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
      return -1;
    }
    if (S_ISREG(info.st_mode) && access(path, W_OK) != 0) return -1;
    if (unlink(path) != 0) return -1;
  }
  int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return fd < 0 ? -1 : MoveUp(fd);
}

}  // namespace

struct TraceWriter::State {
  int fd = -1;
  dev_t device = 0;  // of the file; tells whether `fd` is still this file's
  ino_t inode = 0;
  uint64_t limit = 0;
  uint64_t page = kPageBytes;

  unsigned char* header = nullptr;  // the first page, mapped throughout
  unsigned char* window = nullptr;  // records are written here: kStepBytes of the file from window_begin
  uint64_t window_begin = 0;        // a multiple of the page size
  uint64_t window_end = 0;          // space is claimed up to here
  unsigned char* alive = nullptr;   // a page that fork wipes: 0 in a child
  uint64_t position = 0;            // position of the next record
  uint64_t events = 0;
  uint64_t launches = 0;
  NameOrdinal names = 0;
  std::unique_ptr<unsigned char[]> note;  // room for one note's record, once there are notes
  bool open = false;

  TraceRecordEncoder encoder;

  ~State();
  TraceStatus Open(const char* path);
  TraceStatus Grow(size_t record_bytes);
  bool Write(const unsigned char* record, size_t length);
  void WriteHeader();
  void Commit();
  void Stop(uint32_t state);
  bool InChild() const { return alive == nullptr || *alive == 0; }
};

TraceWriter::State::~State() {
  if (window != nullptr) munmap(window, kStepBytes);
  if (header != nullptr) munmap(header, page);
  if (alive != nullptr) munmap(alive, page);
}

// Claims the next kStepBytes of the file, up to the limit, and maps them: space for at least one record. Keeps the old
// window on failure.
TraceStatus TraceWriter::State::Grow(size_t record_bytes) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_dev != device || info.st_ino != inode) {
    fd = -1;  // the program closed it, and the number now names another file
    return TraceStatus::kNoSpace;
  }
  uint64_t begin = position & ~(page - 1);
  uint64_t end = std::min(begin + kStepBytes, limit);
  // Beyond this limit posix_fallocate would raise SIGXFSZ.
  struct rlimit files;
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
    end = std::min<uint64_t>(end, files.rlim_cur);
  }
  if (end <= window_end || end < position + record_bytes) return TraceStatus::kTooLarge;
  int error;
  do {
    error = posix_fallocate(fd, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  } while (error == EINTR);
  if (error != 0) {
    errno = error;
    return TraceStatus::kNoSpace;
  }
  void* mapped = mmap(nullptr, kStepBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) return TraceStatus::kNoSpace;
  if (window != nullptr) munmap(window, kStepBytes);
  window = static_cast<unsigned char*>(mapped);
  window_begin = begin;
  window_end = end;
  return TraceStatus::kOk;
}

void TraceWriter::State::WriteHeader() {
  memcpy(header, kMagic, sizeof(kMagic));
  Put(header, kVersionAt, kVersion);
  Put(header, kHeaderBytesAt, static_cast<uint16_t>(kHeaderBytes));
  Put(header, kStateAt, static_cast<uint32_t>(kRecording));
  struct timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  Put(header, kCreatedAt, static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec));
  Put(header, kProcessAt, static_cast<uint32_t>(getpid()));
  Put(header, kProgramLengthAt, ReadProgram(header + kProgramAt));
}

// One aligned store: readers see only complete records, during the run and after a crash.
void TraceWriter::State::Commit() {
  __atomic_store_n(reinterpret_cast<uint64_t*>(header + kCommittedAt), position, __ATOMIC_RELEASE);
}

TraceStatus TraceWriter::State::Open(const char* path) {
  page = PageBytes();
  fd = OpenNew(path);
  if (fd < 0) return TraceStatus::kCannotOpen;
  struct stat info;
  if (fstat(fd, &info) != 0) return TraceStatus::kCannotOpen;
  device = info.st_dev;
  inode = info.st_ino;

  void* guard = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (guard == MAP_FAILED) return TraceStatus::kNoSpace;
  alive = static_cast<unsigned char*>(guard);
  *alive = 1;
  madvise(guard, page, MADV_WIPEONFORK);  // before Linux 4.14 only the caller keeps a child from appending

  position = kHeaderBytes;
  TraceStatus status = Grow(kMaxRecordBytes);
  if (status != TraceStatus::kOk) return status;
  void* mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return TraceStatus::kNoSpace;
  header = static_cast<unsigned char*>(mapped);
  WriteHeader();
  Commit();
  open = true;
  return TraceStatus::kOk;
}

// Ends the recording: stores the reason, and gives back the space claimed beyond the last record.
void TraceWriter::State::Stop(uint32_t state) {
  if (!open) return;
  open = false;
  Put(header, kStateAt, state);
  struct stat info;
  bool ours = fd >= 0 && fstat(fd, &info) == 0 && info.st_dev == device && info.st_ino == inode;
  if (!ours) return;
  int ignored [[maybe_unused]] = ftruncate(fd, static_cast<off_t>(position));
  close(fd);
  fd = -1;
}

TraceWriter::TraceWriter() = default;
TraceWriter::~TraceWriter() { Close(); }

std::unique_ptr<TraceWriter> TraceWriter::Create(const char* path, uint64_t limit_bytes, TraceStatus* status) {
  *status = TraceStatus::kTooLarge;
  if (limit_bytes < kMinLimitBytes) return nullptr;
  *status = TraceStatus::kNoSpace;
  std::unique_ptr<TraceWriter> writer(new (std::nothrow) TraceWriter);
  if (writer == nullptr) return nullptr;
  writer->state_.reset(new (std::nothrow) State);
  if (writer->state_ == nullptr) return nullptr;
  State& state = *writer->state_;
  state.limit = std::min<uint64_t>(limit_bytes, INT64_MAX - kStepBytes);
  *status = state.Open(path);
  if (*status == TraceStatus::kOk) return writer;
  int saved = errno;
  if (state.inode != 0) unlink(path);  // ours, and empty
  if (state.fd >= 0) close(state.fd);
  errno = saved;
  return nullptr;
}

// Writes a record behind the last one and commits it. Returns false if that ended the recording.
bool TraceWriter::State::Write(const unsigned char* record, size_t length) {
  if (position + length > window_end) {
    TraceStatus status = Grow(std::max(length, kMaxRecordBytes));
    if (status != TraceStatus::kOk) {
      Stop(status == TraceStatus::kTooLarge ? kLimitReached : kDiskFull);
      return false;
    }
  }
  memcpy(window + (position - window_begin), record, length);
  position += length;
  Commit();
  return true;
}

bool TraceWriter::Append(const Event& event) {
  State& state = *state_;
  if (!state.open || state.InChild()) return false;
  unsigned char record[kMaxRecordBytes];
  if (!state.Write(record, state.encoder.Encode(event, record))) return false;
  ++state.events;
  state.encoder.Accept(event);
  return true;
}

// encode(out) -> size_t writes the record.
template <typename Encode>
bool TraceWriter::AppendNote(Encode encode) {
  State& state = *state_;
  if (!state.open || state.InChild()) return false;
  if (state.note == nullptr) {
    state.note = std::make_unique<unsigned char[]>(kMaxNoteBytes);
    Put(state.header, kVersionAt, kVersionWithNotes);  // before the first note counts
  }
  return state.Write(state.note.get(), encode(state.note.get()));
}

template <typename Note>
bool TraceWriter::AppendOne(const Note& note) {
  if (!AppendNote([&](unsigned char* out) { return state_->encoder.Encode(note, out); })) return false;
  state_->encoder.Accept(note);
  return true;
}

NameOrdinal TraceWriter::AppendName(std::string_view name) {
  const std::string_view kept = CutName(name);
  if (state_->names == kNoName) return kNoName;
  if (!AppendNote([&](unsigned char* out) { return state_->encoder.EncodeName(kept, out); })) return kNoName;
  return state_->names++;
}

bool TraceWriter::Append(const Launch& launch, const uint64_t* blocks) {
  if (!AppendNote([&](unsigned char* out) { return state_->encoder.Encode(launch, blocks, out); })) return false;
  state_->encoder.Accept(launch);
  ++state_->launches;
  return true;
}

bool TraceWriter::Append(const LaunchWork& work) { return AppendOne(work); }
bool TraceWriter::Append(const RangeEdge& edge) { return AppendOne(edge); }
bool TraceWriter::Append(const BlockStack& stack) { return AppendOne(stack); }
bool TraceWriter::Append(const DriverMemory& memory) { return AppendOne(memory); }
uint64_t TraceWriter::LaunchCount() const { return state_->launches; }

void TraceWriter::Close() {
  if (state_ == nullptr || !state_->open) return;
  if (state_->InChild()) {
    state_->open = false;  // the file belongs to the parent
    if (state_->fd >= 0) close(state_->fd);
    return;
  }
  state_->Stop(kClosed);
}

uint64_t TraceWriter::EventCount() const { return state_->events; }

}  // namespace hotpack
