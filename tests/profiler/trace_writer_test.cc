// The writer's guarantees if the process crashes, the disk is full, or the program closes descriptors or forks.
#include "profiler/trace_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>
#include <stdexcept>

#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/profiler/trace_samples.h"

namespace {
std::atomic<uint64_t> heap_allocations{0};
}  // namespace

// Counts what Append must not do.
__attribute__((noinline)) void* operator new(size_t size) {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = malloc(size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void* operator new(size_t size, const std::nothrow_t&) noexcept {
  heap_allocations.fetch_add(1, std::memory_order_relaxed);
  return malloc(size);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace hotpack {
namespace {

using hotpack::testing::TempPath;

constexpr uint64_t kNoLimit = uint64_t{1} << 40;

class TraceWriterTest : public ::testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }

  std::unique_ptr<TraceWriter> Create(uint64_t limit = kNoLimit) {
    TraceStatus status;
    auto writer = TraceWriter::Create(path_.c_str(), limit, &status);
    EXPECT_EQ(status, TraceStatus::kOk);
    return writer;
  }
  // 11 bytes each, none of which can be foretold from its neighbours
  static Event Nth(uint64_t i) {
    return {.kind = EventKind::kAllocate, .id = 3 * i, .bytes = (uint64_t{1} << 39) + i, .time_ns = i * 1000};
  }
  TraceFile Load() {
    absl::StatusOr<TraceFile> file = LoadTrace(path_);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : TraceFile{};
  }
  void ExpectEvents(const TraceFile& file, uint64_t count) {
    ASSERT_EQ(file.trace.events.size(), count);
    for (uint64_t i = 0; i < count; ++i) {
      ASSERT_TRUE(hotpack::testing::SameEvent(file.trace.events[i], Nth(i))) << "event " << i;
    }
  }
  uint64_t FileSize() {
    struct stat info = {};
    EXPECT_EQ(stat(path_.c_str(), &info), 0);
    return static_cast<uint64_t>(info.st_size);
  }
  // Runs `body` in a child and returns its wait status.
  template <typename Body>
  static int InChild(Body body) {
    pid_t child = fork();
    if (child == 0) {
      body();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
  }

  std::string path_ = TempPath("writer");
};

TEST_F(TraceWriterTest, ManyWindowsAndAFileCutToItsLength) {
  constexpr uint64_t kEvents = 700'000;  // some 7 MiB: records lie across the edges of windows
  auto writer = Create();
  uint64_t before = heap_allocations.load();
  for (uint64_t i = 0; i < kEvents; ++i) ASSERT_TRUE(writer->Append(Nth(i)));
  EXPECT_EQ(heap_allocations.load(), before) << "Append allocated";
  EXPECT_EQ(FileSize() % 4096, 0u);
  writer->Close();
  EXPECT_EQ(writer->EventCount(), kEvents);
  EXPECT_FALSE(writer->Append(Nth(0))) << "closed";
  writer->Close();
  uint64_t size = FileSize();
  EXPECT_NE(size % 4096, 0u);
  TraceFile file = Load();
  EXPECT_EQ(file.origin.end, TraceOrigin::End::kClosed);
  ExpectEvents(file, kEvents);
}

TEST_F(TraceWriterTest, ReadableWhileItIsWritten) {
  auto writer = Create();
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(writer->Append(Nth(i)));
    TraceFile file = Load();
    EXPECT_EQ(file.origin.end, TraceOrigin::End::kNotClosed);
    ExpectEvents(file, i + 1);
  }
}

TEST_F(TraceWriterTest, NothingIsLostHoweverTheProcessEnds) {
  void (*ends[])() = {
      [] { _exit(3); },
      [] { raise(SIGKILL); },
      [] { abort(); },
      [] { __builtin_trap(); },
  };
  for (auto end : ends) {
    int status = InChild([&] {
      struct rlimit none = {0, 0};
      setrlimit(RLIMIT_CORE, &none);
      signal(SIGABRT, SIG_DFL);
      auto writer = Create();
      for (uint64_t i = 0; i < 150'000; ++i) writer->Append(Nth(i));
      end();
    });
    EXPECT_NE(status, 0);
    TraceFile file = Load();
    EXPECT_EQ(file.origin.end, TraceOrigin::End::kNotClosed);
    ExpectEvents(file, 150'000);
  }
}

TEST_F(TraceWriterTest, AnExceptionClosesIt) {
  try {
    auto writer = Create();
    for (uint64_t i = 0; i < 10; ++i) writer->Append(Nth(i));
    throw std::runtime_error("the program fails");
  } catch (const std::runtime_error&) {
  }
  TraceFile file = Load();
  EXPECT_EQ(file.origin.end, TraceOrigin::End::kClosed);
  ExpectEvents(file, 10);
}

TEST_F(TraceWriterTest, TheLimitEndsTheRecording) {
  for (uint64_t limit : {uint64_t{4096}, uint64_t{5001}, uint64_t{1} << 20, (uint64_t{3} << 19) + 17}) {
    auto writer = Create(limit);
    uint64_t count = 0;
    while (writer->Append(Nth(count))) ++count;
    EXPECT_FALSE(writer->Append(Nth(count)));
    EXPECT_LE(FileSize(), limit);
    EXPECT_GT(FileSize(), limit - 100) << "stopped early";
    TraceFile file = Load();
    EXPECT_EQ(file.origin.end, TraceOrigin::End::kLimitReached);
    ExpectEvents(file, count);
  }
}

TEST_F(TraceWriterTest, TheProcessFileSizeLimitRaisesNoSignal) {
  int status = InChild([&] {
    struct rlimit small = {1'500'000, 1'500'000};
    setrlimit(RLIMIT_FSIZE, &small);
    auto writer = Create();
    uint64_t count = 0;
    while (writer->Append(Nth(count))) ++count;
    _exit(count > 100'000 ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Load().origin.end, TraceOrigin::End::kLimitReached);
}

// A memory file system with a size is the full disk; needs a user namespace.
TEST_F(TraceWriterTest, AFullDiskRaisesNoSignal) {
  std::string folder = TempPath("disk");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  std::string script = "mount -t tmpfs -o size=1536k none " + folder + " && exec \"$0\" \"$@\"";
  char self[4096] = {};
  ASSERT_GT(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
  int status = InChild([&] {
    setenv("HOTPACK_TEST_DISK", folder.c_str(), 1);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    dup2(null, 2);
    execlp("unshare", "unshare", "-rm", "sh", "-c", script.c_str(), self, static_cast<char*>(nullptr));
    _exit(127);
  });
  // The helper is this program again: see main().
  rmdir(folder.c_str());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 42) {
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    ASSERT_NE(WEXITSTATUS(status), 43) << "the recording was wrong";
    GTEST_SKIP() << "no tmpfs can be mounted here";
  }
}

TEST_F(TraceWriterTest, PathsThatCannotBeWritten) {
  TraceStatus status;
  EXPECT_EQ(TraceWriter::Create("/nonexistent/trace", kNoLimit, &status), nullptr);
  EXPECT_EQ(status, TraceStatus::kCannotOpen);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(TraceWriter::Create("/tmp", kNoLimit, &status), nullptr);
  EXPECT_EQ(status, TraceStatus::kCannotOpen);
  EXPECT_EQ(errno, EISDIR);
  EXPECT_EQ(TraceWriter::Create("/dev/full", kNoLimit, &status), nullptr);
  EXPECT_EQ(status, TraceStatus::kCannotOpen);
  EXPECT_EQ(access("/dev/full", F_OK), 0);
  EXPECT_EQ(TraceWriter::Create(path_.c_str(), TraceWriter::kMinLimitBytes - 1, &status), nullptr);
  EXPECT_EQ(status, TraceStatus::kTooLarge);
  EXPECT_NE(access(path_.c_str(), F_OK), 0) << "something was written";
}

// Two processes with the same path: the later one gets the path, the earlier one continues in its own file.
TEST_F(TraceWriterTest, AFileInUseIsReplacedNotOverwritten) {
  auto first = Create();
  ASSERT_TRUE(first->Append(Nth(0)));
  auto second = Create();
  for (uint64_t i = 0; i < 150'000; ++i) ASSERT_TRUE(first->Append(Nth(i + 1)));
  first->Close();
  ASSERT_TRUE(second->Append(Nth(0)));
  second->Close();
  ExpectEvents(Load(), 1);
}

TEST_F(TraceWriterTest, AForkedChildLeavesTheFileAlone) {
  auto writer = Create();
  ASSERT_TRUE(writer->Append(Nth(0)));
  EXPECT_EQ(InChild([&] {
              if (writer->Append(Nth(1))) _exit(1);
              writer.reset();
            }),
            0);
  ASSERT_TRUE(writer->Append(Nth(1)));
  ASSERT_TRUE(writer->Append(Nth(2)));
  writer->Close();
  ExpectEvents(Load(), 3);
}

TEST_F(TraceWriterTest, AProgramThatClosesEveryDescriptor) {
  std::string other = TempPath("other");
  int status = InChild([&] {
    auto writer = Create();
    for (uint64_t i = 0; i < 10; ++i) writer->Append(Nth(i));
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    // The numbers now name files of the program.
    int own = -1;
    while (own < 600) own = open(other.c_str(), O_RDWR | O_CREAT, 0600);
    uint64_t count = 10;
    while (count < 300'000 && writer->Append(Nth(count))) ++count;
    writer->Close();
    struct stat info;
    if (fstat(own, &info) != 0 || info.st_size != 0) _exit(2);  // not grown by us
    if (write(own, "x", 1) != 1) _exit(3);                      // nor closed
    _exit(count > 50'000 && count < 300'000 ? 0 : 1);
  });
  EXPECT_EQ(status, 0);
  unlink(other.c_str());
  TraceFile file = Load();
  EXPECT_EQ(file.origin.end, TraceOrigin::End::kDiskFull);
  EXPECT_GT(file.trace.events.size(), 50'000u);
}

}  // namespace

// The part of AFullDiskRaisesNoSignal that runs on the small disk: 42 when all is well.
int OnSmallDisk(const std::string& folder) {
  std::string path = folder + "/trace";
  TraceStatus status;
  auto writer = TraceWriter::Create(path.c_str(), kNoLimit, &status);
  if (writer == nullptr) return 43;
  uint64_t count = 0;
  while (writer->Append({.kind = EventKind::kAllocate, .id = 3 * count, .bytes = (uint64_t{1} << 39) + count})) ++count;
  absl::StatusOr<TraceFile> file = LoadTrace(path);
  bool right = file.ok() && file->trace.events.size() == count && file->origin.end == TraceOrigin::End::kDiskFull &&
               count > 50'000;
  writer.reset();
  // With nothing left from the start: no file stays behind.
  std::ofstream(folder + "/filler") << std::string(2 << 20, 'x');
  std::string second = folder + "/second";
  auto none = TraceWriter::Create(second.c_str(), kNoLimit, &status);
  right = right && none == nullptr && status == TraceStatus::kNoSpace && access(second.c_str(), F_OK) != 0;
  return right ? 42 : 43;
}

}  // namespace hotpack

int main(int argc, char** argv) {
  if (const char* folder = getenv("HOTPACK_TEST_DISK")) return hotpack::OnSmallDisk(folder);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
