// Event CSVs: accepted and rejected texts, the errors' words, round trips, random mutations.
#include "profiler/event_csv.h"

#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/profiler/trace_samples.h"

namespace hotpack {
namespace {

using hotpack::testing::CommonPrefix;
using hotpack::testing::SampleTrace;
using hotpack::testing::TestSeed;
using ::testing::StartsWith;

std::string ErrorOf(std::string_view rows) {
  absl::StatusOr<Trace> trace = ParseEventCsv("event,id,bytes\n" + std::string(rows), "f");
  return trace.ok() ? "" : std::string(trace.status().message());
}

TEST(EventCsvTest, ReadsEachEvent) {
  absl::StatusOr<Trace> trace = ParseEventCsv(
      "event,id,bytes\r\nmark,step,\r\nalloc,9,100\r\nalloc,4,200\nfree,9,\nmark,interrupt,\nmark,resume,\nalloc,9,"
      "300\n"
      "free,9,300\nmark,expect,\nmark,end,\n",
      "f");
  ASSERT_TRUE(trace.ok()) << trace.status();
  Trace expected;
  expected.events = {
      {.kind = EventKind::kMark},
      {.kind = EventKind::kAllocate, .id = 0, .bytes = 100},
      {.kind = EventKind::kAllocate, .id = 1, .bytes = 200},
      {.kind = EventKind::kRelease, .id = 0, .bytes = 100},
      {.kind = EventKind::kInterrupt},
      {.kind = EventKind::kResume},
      {.kind = EventKind::kAllocate, .id = 2, .bytes = 300},  // the id 9 once more
      {.kind = EventKind::kRelease, .id = 2, .bytes = 300},
      {.kind = EventKind::kExpect},
      {.kind = EventKind::kMark},
  };
  EXPECT_EQ(trace->events.size(), expected.events.size());
  EXPECT_EQ(CommonPrefix(*trace, expected), expected.events.size());
}

TEST(EventCsvTest, RoundTrip) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    Trace trace = SampleTrace(random, 1 + random() % 1000, {.sequential_ids = true, .context = false});
    absl::StatusOr<Trace> back = ParseEventCsv(FormatEventCsv(trace), "f");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->events.size(), trace.events.size());
    EXPECT_EQ(CommonPrefix(*back, trace), trace.events.size());
  }
}

TEST(EventCsvTest, Refusals) {
  EXPECT_EQ(ErrorOf("alloc,1,512\nfree,1,\n"), "");
  EXPECT_EQ(ErrorOf(""), "f:1:1: no events follow the first line");
  EXPECT_EQ(ErrorOf("alloc,1,512\nalloc,2,40"), "f:3:11: the line has no end: the file is cut");
  EXPECT_EQ(ErrorOf("alloc,1,512\n\nfree,1,\n"), "f:3:1: the line is empty");
  EXPECT_EQ(ErrorOf("alloc,1\n"), "f:2:8: 2 columns, 3 expected: event,id,bytes");
  EXPECT_EQ(ErrorOf("alloc,1,512,7\n"), "f:2:12: more than 3 columns");
  EXPECT_EQ(ErrorOf("Alloc,1,512\n"), "f:2:1: the event 'Alloc' is not alloc, free or mark");
  EXPECT_EQ(ErrorOf("alloc,,512\n"), "f:2:7: the id is missing");
  EXPECT_EQ(ErrorOf("alloc,x,512\n"), "f:2:7: the id 'x' is no whole number from 0");
  EXPECT_EQ(ErrorOf("alloc,1,\n"), "f:2:9: the size is missing");
  EXPECT_EQ(ErrorOf("alloc,1,-5\n"), "f:2:9: the size '-5' is no whole number from 0");
  EXPECT_EQ(ErrorOf("alloc,1,1e6\n"), "f:2:9: the size '1e6' is no whole number from 0");
  EXPECT_EQ(ErrorOf("alloc,1, 5\n"), "f:2:9: the size ' 5' is no whole number from 0");
  EXPECT_EQ(ErrorOf("alloc,1,0\n"), "f:2:9: an allocation of 0 bytes");
  EXPECT_EQ(ErrorOf("alloc,1,1099511627777\n"), "f:2:9: the size '1099511627777' is more than 1099511627776");
  EXPECT_EQ(ErrorOf("alloc,1,99999999999999999999999999\n"),
            "f:2:9: the size '999999999999999999999999...' is more than 1099511627776");
  EXPECT_EQ(ErrorOf("alloc,1,512\nalloc,1,512\n"), "f:3:7: block 1 is live already, since line 2");
  EXPECT_EQ(ErrorOf("free,1,\n"), "f:2:6: block 1 is freed but was never allocated");
  EXPECT_EQ(ErrorOf("alloc,1,512\nfree,1,\nmark,step,\nfree,1,\n"), "f:5:6: block 1 is freed twice, first in line 3");
  EXPECT_EQ(ErrorOf("alloc,1,512\nfree,1,511\n"), "f:3:8: block 1 has 512 bytes, not 511");
  EXPECT_EQ(ErrorOf("mark,step,5\n"), "f:2:11: a mark has no size");
  EXPECT_EQ(ErrorOf("\x1b[31m,1,2\n"), "f:2:1: the event '?[31m' is not alloc, free or mark");
}

TEST(EventCsvTest, TheFirstLine) {
  auto error = [](std::string_view contents) { return std::string(ParseEventCsv(contents, "f").status().message()); };
  EXPECT_EQ(error(""), "f:1:1: the file is empty");
  EXPECT_EQ(error("event,id"), "f:1:9: the line has no end: the file is cut");
  EXPECT_EQ(error("event,id\n"), "f:1:1: the first line is 'event,id', not event,id,bytes");
}

// Cut anywhere: the events before the cut, or one line.
TEST(EventCsvTest, CutAtEveryByte) {
  std::mt19937_64 random(TestSeed());
  Trace trace = SampleTrace(random, 100, {.sequential_ids = true, .context = false});
  std::string whole = FormatEventCsv(trace);
  int read = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    absl::StatusOr<Trace> part = ParseEventCsv(std::string_view(whole).substr(0, length), "f");
    if (part.ok()) {
      ++read;
      ASSERT_EQ(whole[length - 1], '\n');
      EXPECT_EQ(CommonPrefix(*part, trace), part->events.size());
    } else {
      EXPECT_THAT(std::string(part.status().message()), StartsWith("f:"));
    }
  }
  EXPECT_EQ(read, 99);
}

TEST(EventCsvTest, RandomMutations) {
  std::mt19937_64 random(TestSeed());
  const std::string likely = "0123456789,\n\r-allocfreemark. \0\xff";
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    static std::string whole;
    if (round % 500 == 0) {
      whole = FormatEventCsv(SampleTrace(random, 1 + random() % 50, {.sequential_ids = true, .context = false}));
    }
    std::string bytes = whole;
    for (unsigned changes = 1 + static_cast<unsigned>(random() % 3); changes > 0; --changes) {
      size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = likely[random() % likely.size()];
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, 1, likely[random() % likely.size()]);
          break;
      }
      if (bytes.empty()) bytes.assign(1, 'x');
    }
    absl::StatusOr<Trace> trace = ParseEventCsv(bytes, "f");
    if (!trace.ok()) {
      ++refused;
      ASSERT_EQ(std::string(trace.status().message()).find('\n'), std::string::npos);
      ASSERT_THAT(std::string(trace.status().message()), StartsWith("f:"));
      continue;
    }
    // A recording that was read can be written and read again.
    absl::StatusOr<Trace> back = ParseEventCsv(FormatEventCsv(*trace), "f");
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(CommonPrefix(*back, *trace), trace->events.size());
  }
  EXPECT_GT(refused, 10000);
}

TEST(EventCsvTest, PublicTraces) {
  const char* given = getenv("HOTPACK_SHARED");
  std::filesystem::path folder = given != nullptr ? given : HOTPACK_SOURCE_DIR "/../shared";
  folder /= "traces";
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "no " << folder;
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".csv") continue;
    absl::StatusOr<TraceFile> file = LoadTrace(entry.path());
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_GT(file->trace.events.size(), 600u);
    ++read;
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace hotpack
