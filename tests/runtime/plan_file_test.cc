// The plan file: a written file is read back, and no other file is accepted.
#include "runtime/persist/plan_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "runtime/memory/arena.h"
#include "tests/runtime/plan_samples.h"
#include "tests/runtime/test_seed.h"

namespace hotpack {
namespace {

using Bytes8 = std::vector<uint8_t>;

constexpr size_t kHeader = 512, kChecksumAt = 24;

class PlanFile : public testing::Test {
 protected:
  PlanFile() {
    std::string name = (std::filesystem::temp_directory_path() / "hotpack-plan-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = folder_ + "/plan";
  }
  ~PlanFile() override { std::filesystem::remove_all(folder_); }
  void WriteBytes(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }
  size_t FilesInFolder() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_, path_;
};

PlanFileStatus Decode(const Bytes8& bytes, SavedPlan* plan = nullptr) {
  SavedPlan unused;
  return DecodePlan(bytes.data(), bytes.size(), plan != nullptr ? plan : &unused);
}

// A second CRC-32C, bit by bit, so that a test can make a whole file of any contents.
void Seal(Bytes8* bytes) {
  memset(bytes->data() + kChecksumAt, 0, 4);
  uint32_t crc = ~0u;
  for (uint8_t byte : *bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1)));
  }
  crc = ~crc;
  for (int i = 0; i < 4; ++i) (*bytes)[kChecksumAt + static_cast<size_t>(i)] = static_cast<uint8_t>(crc >> (8 * i));
}

void PutU32(Bytes8* bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) (*bytes)[at + i] = static_cast<uint8_t>(value >> (8 * i));
}
uint32_t GetU32(const Bytes8& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

TEST_F(PlanFile, RoundTrip) {
  const uint64_t first = TestSeed();
  for (uint64_t seed = first; seed != first + 50; ++seed) {
    const SavedPlan plan = SamplePlan(seed, 2 + static_cast<uint32_t>(seed % 200));
    SavedPlan read;
    ASSERT_EQ(Decode(EncodePlan(plan), &read), PlanFileStatus::kOk) << seed;
    ExpectSame(plan, read);
    ASSERT_EQ(WritePlanFile(path_.c_str(), plan), 0);
    SavedPlan again;
    ASSERT_EQ(ReadPlanFile(path_.c_str(), &again), PlanFileStatus::kOk);
    ExpectSame(plan, again);
    if (HasFailure()) return;
  }
  EXPECT_EQ(FilesInFolder(), 1u);  // nothing temporary is left
}

// The format, byte by byte as docs/plan_format.md has it.
TEST_F(PlanFile, Layout) {
  SavedPlan plan;
  plan.scripts = {WithBound(ScriptOf({{3, 2, 0}, {5, 0, 0}, {4, 1, 3}}))};
  plan.opening.units = {9, 4};
  plan.opening.entries = {kNone, 2};
  plan.opening.before = 1;
  plan.program = "p";
  plan.held_without_bytes = 77;
  plan.live_without_bytes = 66;
  const Bytes8 bytes = EncodePlan(plan);
  ASSERT_EQ(bytes.size(), 512u + 40 + 3 * 16 + 2 * 8);
  EXPECT_EQ(memcmp(bytes.data(), "\x89hotplan", 8), 0);
  EXPECT_EQ(GetU32(bytes, 8), 1u | 512u << 16);
  EXPECT_EQ(GetU32(bytes, 12), 1u);
  EXPECT_EQ(GetU32(bytes, 16), bytes.size());
  EXPECT_EQ(GetU32(bytes, 64), 1u);
  EXPECT_EQ(GetU32(bytes, 72), 2u);
  EXPECT_EQ(GetU32(bytes, 80), 1u);
  EXPECT_EQ(bytes[88], 'p');
  EXPECT_EQ(GetU32(bytes, 472), 77u);
  EXPECT_EQ(GetU32(bytes, 480), 66u);
  EXPECT_EQ(GetU32(bytes, 512), 3u);        // requests
  EXPECT_EQ(GetU32(bytes, 516), 3u);        // period
  EXPECT_EQ(GetU32(bytes, 528), 7u * 512);  // height
  EXPECT_EQ(GetU32(bytes, 552), 3u);        // entry 0: units, age, min age, offset
  EXPECT_EQ(GetU32(bytes, 556), 2u);
  EXPECT_EQ(GetU32(bytes, 560), 2u);
  EXPECT_EQ(GetU32(bytes, 564), 0u);
  EXPECT_EQ(GetU32(bytes, 580), kNone);  // entry 1 is not planned
  EXPECT_EQ(GetU32(bytes, 596), 3u);
  EXPECT_EQ(GetU32(bytes, 600), 9u);
  EXPECT_EQ(GetU32(bytes, 604), kNone);
  EXPECT_EQ(GetU32(bytes, 612), 2u);
  Bytes8 sealed = bytes;
  Seal(&sealed);
  EXPECT_EQ(sealed, bytes);
}

TEST_F(PlanFile, EveryBitFlippedIsRefused) {
  const Bytes8 good = EncodePlan(SamplePlan());
  ASSERT_EQ(Decode(good), PlanFileStatus::kOk);
  for (size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes8 bad = good;
      bad[at] = static_cast<uint8_t>(bad[at] ^ (1 << bit));
      ASSERT_NE(Decode(bad), PlanFileStatus::kOk) << "byte " << at << " bit " << bit;
    }
  }
}

TEST_F(PlanFile, EveryLengthButTheRightOneIsRefused) {
  Bytes8 good = EncodePlan(SamplePlan());
  for (size_t length = 0; length < good.size(); ++length) {
    const Bytes8 torn(good.begin(), good.begin() + static_cast<ptrdiff_t>(length));
    ASSERT_NE(Decode(torn), PlanFileStatus::kOk) << length;
    ASSERT_EQ(Decode(torn) == PlanFileStatus::kNotAPlan, length < 8) << length;
  }
  good.push_back(0);
  EXPECT_EQ(Decode(good), PlanFileStatus::kDamaged);
}

TEST_F(PlanFile, OtherVersionsAreTold) {
  Bytes8 bytes = EncodePlan(SamplePlan());
  bytes[8] = 2;
  Seal(&bytes);
  EXPECT_EQ(Decode(bytes), PlanFileStatus::kVersion);
}

// Whole files whose checksum is right, and whose contents are not: each of these would be a wrong plan.
TEST_F(PlanFile, ContentsAreChecked) {
  SavedPlan plan;
  plan.scripts = {WithBound(ScriptOf({{3, 2, 0}, {5, 0, 0}, {4, 2, 3}, {3, 1, 0}}))};
  plan.opening.units = {9, 3};
  plan.opening.entries = {kNone, 3};
  plan.opening.before = 1;
  const Bytes8 good = EncodePlan(plan);
  constexpr size_t kScript = kHeader, kEntry = kHeader + 40, kOpening = kEntry + 4 * 16;
  struct Case {
    const char* what;
    size_t at;
    uint32_t value;
  };
  const Case cases[] = {
      {"no scripts", 12, 0},
      {"more scripts than there are", 12, 2},
      {"very many scripts", 12, UINT32_MAX},
      {"more requests than there are", kScript, 5},
      {"very many requests", kScript, UINT32_MAX},
      {"no requests", kScript, 0},
      {"another period", kScript + 4, 3},
      {"no period", kScript + 4, 0},
      {"another unroll", kScript + 8, 2},
      {"no unroll", kScript + 8, 0},
      {"unknown flags", kScript + 12, 1},
      {"another height", kScript + 16, 8 * 512},
      {"another load", kScript + 24, 8 * 512},
      {"a bound above the height", kScript + 32, 8 * 512},
      {"an empty block", kEntry, 0},
      {"a block larger than any", kEntry, (1u << 31) + 1},
      {"a life longer than the cycle", kEntry + 4, 5},
      {"a life of nothing", kEntry + 4, 0},
      {"a shortest life above the longest", kEntry + 8, 3},
      {"no shortest life", kEntry + 8, 0},
      {"an offset beyond the arena", kEntry + 12, kNone - 2},
      {"no offset", kEntry + 12, kNone},
      {"an overlap", kEntry + 3 * 16 + 12, 3},
      {"an offset for what is not planned", kEntry + 16 + 12, 0},
      {"an opening of another length", 72, 3},
      {"a very long opening", 72, UINT32_MAX},
      {"an opening of no script", 76, 1},
      {"an opening that never begins", 64, 2},
      {"an opening that begins before it begins", 64, 0},
      {"an entry that is not there", kOpening + 12, 4},
      {"an entry that is not planned", kOpening + 12, 1},
      {"a request for nothing", kOpening, 0},
      {"a program name longer than its field", 80, 257},
      {"a device name longer than its field", 84, 129},
  };
  ASSERT_EQ(Decode(good), PlanFileStatus::kOk);
  for (const Case& c : cases) {
    Bytes8 bad = good;
    PutU32(&bad, c.at, c.value);
    Seal(&bad);
    EXPECT_EQ(Decode(bad), PlanFileStatus::kInvalid) << c.what;
  }
  Bytes8 lower = good;  // the load and the bound may only be right together
  PutU32(&lower, kScript + 24, 0);
  PutU32(&lower, kScript + 32, 0);
  Seal(&lower);
  EXPECT_EQ(Decode(lower), PlanFileStatus::kInvalid);
}

TEST_F(PlanFile, WhatIsNoPlanIsLeftAlone) {
  SavedPlan plan = SamplePlan(), read;
  EXPECT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kCannotRead);
  EXPECT_EQ(errno, ENOENT);
  WriteBytes("my thesis");
  EXPECT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kNotAPlan);
  EXPECT_EQ(WritePlanFile(path_.c_str(), plan), EEXIST);
  WriteBytes("hot");
  EXPECT_EQ(WritePlanFile(path_.c_str(), plan), EEXIST);
  WriteBytes("");  // mktemp makes such files
  EXPECT_EQ(WritePlanFile(path_.c_str(), plan), 0);
  WriteBytes("\x89hotplan of some later version");
  EXPECT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kDamaged);
  EXPECT_EQ(WritePlanFile(path_.c_str(), plan), 0);  // ours
  EXPECT_EQ(WritePlanFile(folder_.c_str(), plan), EISDIR);
  EXPECT_EQ(ReadPlanFile(folder_.c_str(), &read), PlanFileStatus::kCannotRead);
  EXPECT_EQ(WritePlanFile((folder_ + "/missing/plan").c_str(), plan), ENOENT);
  EXPECT_EQ(WritePlanFile((path_ + "/plan").c_str(), plan), ENOTDIR);
  EXPECT_EQ(WritePlanFile("", plan), ENOENT);
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // there is no writer: reading must not wait
  EXPECT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kCannotRead);
  EXPECT_EQ(WritePlanFile(path_.c_str(), plan), EINVAL);
  EXPECT_EQ(FilesInFolder(), 1u);
}

TEST_F(PlanFile, AFileTooLargeIsNotRead) {
  WriteBytes(std::string("\x89hotplan"));
  std::filesystem::resize_file(path_, kMaxPlanFileBytes + 1);  // sparse
  SavedPlan read;
  EXPECT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kDamaged);
}

TEST_F(PlanFile, ALinkStaysALink) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(WritePlanFile(path_.c_str(), SamplePlan(1)), 0);
  std::filesystem::create_symlink("plan", link);
  ASSERT_EQ(WritePlanFile(link.c_str(), SamplePlan(2)), 0);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  SavedPlan read;
  ASSERT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kOk);
  ExpectSame(SamplePlan(2), read);
}

// Runs `body` in a child; returns how it ended.
int InChild(const std::function<void()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST_F(PlanFile, TheFileSizeLimitIsAnErrorAndNoSignal) {
  ASSERT_EQ(WritePlanFile(path_.c_str(), SamplePlan(1)), 0);
  const int status = InChild([&] {
    const struct rlimit small = {100, 100};
    setrlimit(RLIMIT_FSIZE, &small);
    _exit(WritePlanFile(path_.c_str(), SamplePlan(2)));
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EFBIG);
  SavedPlan read;
  ASSERT_EQ(ReadPlanFile(path_.c_str(), &read), PlanFileStatus::kOk);
  ExpectSame(SamplePlan(1), read);
}

// A process that saves two plans in turn is killed at any moment. Any reader then sees one of them, complete.
TEST_F(PlanFile, KilledWhileSaving) {
  const SavedPlan plans[2] = {SamplePlan(1, 3000), SamplePlan(2, 4000)};
  const Bytes8 bytes[2] = {EncodePlan(plans[0]), EncodePlan(plans[1])};
  ASSERT_EQ(WritePlanFile(path_.c_str(), plans[0]), 0);
  std::mt19937_64 random(TestSeed());
  int seen[2] = {0, 0}, left_behind = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (int i = round;; ++i) WritePlanFile(path_.c_str(), plans[i % 2]);
    }
    usleep(static_cast<useconds_t>(random() % 20000));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::ifstream file(path_, std::ios::binary);
    const Bytes8 now((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(now == bytes[0] || now == bytes[1]) << "round " << round << ": " << now.size() << " bytes";
    ++seen[now == bytes[1]];
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      if (entry.path() == path_) continue;
      ++left_behind;
      std::filesystem::remove(entry.path());
    }
  }
  EXPECT_GT(seen[0], 0);
  EXPECT_GT(seen[1], 0);
  EXPECT_GT(left_behind, 0) << "never killed in the middle: the test shows nothing";
}

}  // namespace
}  // namespace hotpack
