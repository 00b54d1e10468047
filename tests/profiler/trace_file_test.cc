// The reader of trace files: round trips, cuts at every byte, random mutations, and its errors on malformed files.
#include "profiler/trace_file.h"

#include <fstream>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_format.h"
#include "profiler/trace_writer.h"
#include "tests/profiler/trace_samples.h"

namespace hotpack {
namespace {

using hotpack::testing::CommonPrefix;
using hotpack::testing::SampleTrace;
using hotpack::testing::TempPath;
using hotpack::testing::TestSeed;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// The bytes of a closed file with these events.
std::string Write(const Trace& trace) {
  std::string path = TempPath("written");
  TraceStatus status;
  auto writer = TraceWriter::Create(path.c_str(), uint64_t{1} << 30, &status);
  EXPECT_EQ(status, TraceStatus::kOk);
  for (const Event& event : trace.events) EXPECT_TRUE(writer->Append(event));
  EXPECT_EQ(writer->EventCount(), trace.events.size());
  writer->Close();
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  unlink(path.c_str());
  return *std::move(contents);
}

Event Allocation(uint64_t id, uint64_t bytes, uint16_t thread = 0) {
  return {.kind = EventKind::kAllocate, .thread = thread, .id = id, .bytes = bytes};
}
Event Release(uint64_t id, uint64_t bytes) { return {.kind = EventKind::kRelease, .id = id, .bytes = bytes}; }

std::string ErrorOf(const std::string& contents) {
  absl::StatusOr<TraceFile> file = ParseTraceFile(contents, "f");
  return file.ok() ? "" : std::string(file.status().message());
}

// A closed file with these bytes for records.
std::string FileOf(const std::string& records) {
  std::string contents = Write({});
  contents += records;
  uint64_t committed = contents.size();
  memcpy(contents.data() + trace_format::kCommittedAt, &committed, sizeof(committed));
  return contents;
}

TEST(TraceFileTest, TheDocumentedExample) {
  Trace trace;
  trace.events = {Allocation(0, 9728), Allocation(1, 700, 1), Release(0, 9728), {.kind = EventKind::kMark}};
  const std::string expected("\x61\x13\x29\x00\x01\x00\xBC\x05\x0A\x00\x00\x00\x02\x03", 14);
  EXPECT_EQ(Write(trace).substr(trace_format::kHeaderBytes), expected);
}

TEST(TraceFileTest, RoundTrip) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 50; ++round) {
    Trace trace = SampleTrace(random, random() % 2000, {});
    absl::StatusOr<TraceFile> file = ParseTraceFile(Write(trace), "f");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->trace.events.size(), trace.events.size());
    EXPECT_EQ(CommonPrefix(file->trace, trace), trace.events.size());
    EXPECT_EQ(file->origin.end, TraceOrigin::End::kClosed);
    EXPECT_EQ(file->origin.process, static_cast<uint32_t>(getpid()));
    EXPECT_THAT(file->origin.program, HasSubstr("trace_file_test"));
    EXPECT_GT(file->origin.created_ns, uint64_t{1'600'000'000} * 1'000'000'000);
  }
}

TEST(TraceFileTest, ExtremeFieldsSurvive) {
  Trace trace;
  trace.events = {
      {EventKind::kAllocate, 255, 65535, 4294967295u, UINT64_MAX, kMaxRecordedBytes, UINT64_MAX},
      {EventKind::kAllocate, 0, 0, 0, 0, kMaxRecordedBytes - 1, 0},
      {EventKind::kRelease, 0, 0, 0, UINT64_MAX, kMaxRecordedBytes, uint64_t{1} << 63},
      {EventKind::kRelease, 1, 65535, 1, 0, kMaxRecordedBytes - 1, 1},
  };
  absl::StatusOr<TraceFile> file = ParseTraceFile(Write(trace), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(CommonPrefix(file->trace, trace), trace.events.size());
}

TEST(TraceFileTest, TypicalEventsAreSmall) {
  Trace trace;
  for (uint64_t i = 0; i < 10000; ++i) {
    trace.events.push_back(Allocation(i, 512 * (1 + i % 4000)));
    if (i >= 50) trace.events.push_back(Release(i - 50, 512 * (1 + (i - 50) % 4000)));
  }
  EXPECT_LE(Write(trace).size(), trace_format::kHeaderBytes + trace.events.size() * 5 / 2);
}

TEST(TraceFileTest, CutAtEveryByte) {
  std::mt19937_64 random(TestSeed());
  Trace trace = SampleTrace(random, 400, {});
  std::string whole = Write(trace);
  for (size_t length = 0; length < whole.size(); ++length) {
    absl::StatusOr<TraceFile> file = ParseTraceFile(std::string_view(whole).substr(0, length), "f");
    if (length < trace_format::kHeaderBytes) {
      ASSERT_FALSE(file.ok());
      EXPECT_EQ(file.status().message(),
                "f: byte " + std::to_string(length) + ": the file ends in the header, which has 256 bytes");
      continue;
    }
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.status().message(), "f: byte " + std::to_string(length) + ": the file is cut: it had " +
                                           std::to_string(whole.size()) + " bytes");
  }
}

// Whatever the bytes are: a valid recording, or one line that names a byte of the file.
TEST(TraceFileTest, RandomMutations) {
  std::mt19937_64 random(TestSeed());
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    static std::string whole;
    if (round % 500 == 0) whole = Write(SampleTrace(random, 1 + random() % 200, {}));
    std::string bytes = whole;
    for (unsigned changes = 1 + static_cast<unsigned>(random() % 4); changes > 0; --changes) {
      size_t at = random() % bytes.size();
      if (random() % 3 != 0 && bytes.size() > 257) at = 256 + random() % (bytes.size() - 256);
      switch (random() % 4) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
          break;
        case 2:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, 1 + random() % 8, static_cast<char>(random()));
          break;
      }
      if (bytes.empty()) bytes.assign(1, 'x');
    }
    absl::StatusOr<TraceFile> file = ParseTraceFile(bytes, "f");
    if (!file.ok()) {
      ++refused;
      std::string message(file.status().message());
      ASSERT_THAT(message, StartsWith("f: byte "));
      ASSERT_EQ(message.find('\n'), std::string::npos);
      ASSERT_LE(std::stoull(message.substr(8)), bytes.size());
      continue;
    }
    absl::flat_hash_map<uint64_t, uint64_t> live;
    for (const Event& event : file->trace.events) {
      if (event.kind == EventKind::kAllocate) {
        ASSERT_GT(event.bytes, 0u);
        ASSERT_LE(event.bytes, kMaxRecordedBytes);
        ASSERT_TRUE(live.emplace(event.id, event.bytes).second);
      } else if (event.kind == EventKind::kRelease) {
        ASSERT_EQ(live.count(event.id), 1u);
        ASSERT_EQ(live[event.id], event.bytes);
        live.erase(event.id);
      }
    }
  }
  EXPECT_GT(refused, 5000);
}

TEST(TraceFileTest, MalformedRecords) {
  const std::string alloc0("\x61\x13", 2);
  EXPECT_EQ(ErrorOf(FileOf(alloc0)), "");
  EXPECT_EQ(ErrorOf(FileOf(std::string("\0", 1))), "f: byte 256: no record begins with 0");
  EXPECT_EQ(ErrorOf(FileOf("\x06")), "f: byte 256: no record begins with 6");
  EXPECT_EQ(ErrorOf(FileOf("\xE1\x13")), "f: byte 256: no record begins with 225");
  EXPECT_EQ(ErrorOf(FileOf(alloc0 + "\x23")), "f: byte 258: no record begins with 35");
  EXPECT_EQ(ErrorOf(FileOf(alloc0 + "\x61")), "f: byte 258: the last record is incomplete");
  EXPECT_EQ(ErrorOf(FileOf(std::string("\x61\x00", 2))), "f: byte 257: an allocation of 0 bytes");
  EXPECT_EQ(ErrorOf(FileOf(alloc0 + std::string("\x02\x00\x02\x00", 4))), "f: byte 260: block 0 is released twice");
  EXPECT_EQ(ErrorOf(FileOf(alloc0 + "\x02\x02")),
            "f: byte 258: block 18446744073709551615 is released but was never allocated");
  EXPECT_EQ(ErrorOf(FileOf(alloc0 + std::string("\x41\x00\x01", 3))),
            "f: byte 258: block 0 is allocated a second time");
  EXPECT_EQ(ErrorOf(FileOf("\x61\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")),
            "f: byte 257: the size has more than 64 bits");
  EXPECT_EQ(ErrorOf(FileOf("\x61\xff\xff\xff\xff\x7f")), "f: byte 257: the size is 34359738367, more than 2147483648");
}

TEST(TraceFileTest, MalformedHeaders) {
  auto with = [](size_t at, char value) {
    std::string contents = FileOf("");
    contents[at] = value;
    return ErrorOf(contents);
  };
  EXPECT_EQ(with(1, 'x'), "f: byte 0: this is no hotpack trace");
  EXPECT_EQ(with(8, 2), "");
  EXPECT_EQ(with(8, 3), "f: byte 8: format version 3, this hotpack reads versions 1 and 2");
  EXPECT_EQ(with(10, 1), "f: byte 10: a header of 257 bytes");
  EXPECT_EQ(with(12, 9), "f: byte 12: unknown state 9");
  EXPECT_EQ(with(17, 0), "f: byte 16: a length of 0 bytes");
  EXPECT_EQ(with(37, 4),
            std::string("f: byte 36: a program name of ") + std::to_string(1024 + (FileOf("")[36] & 0xff)) + " bytes");
}

TEST(TraceFileTest, BytesBeyondTheCommittedLengthDoNotCount) {
  absl::StatusOr<TraceFile> file = ParseTraceFile(FileOf("\x61\x13") + "garbage", "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->trace.events.size(), 1u);
}

TEST(LoadTraceTest, ErrorsAreOneLine) {
  auto message = [](const std::string& path) { return std::string(LoadTrace(path).status().message()); };
  EXPECT_EQ(message("/nonexistent/trace"), "/nonexistent/trace: No such file or directory");
  EXPECT_EQ(message("/"), "/: Is a directory");
  std::string path = TempPath("load");
  std::ofstream(path).close();
  EXPECT_EQ(message(path), path + ":1:1: the file is empty");
  std::ofstream(path) << "id,lower,upper,size\n";
  EXPECT_EQ(message(path), path + ":1:1: neither a hotpack trace nor an event CSV (event,id,bytes)");
  std::ofstream(path) << "\x89hot";
  EXPECT_EQ(message(path), path + ": byte 4: the file ends in the header, which has 256 bytes");
  unlink(path.c_str());
}

TEST(LoadTraceTest, ReadsBothFormats) {
  std::string path = TempPath("both");
  std::ofstream(path) << "event,id,bytes\nmark,step,\nalloc,7,100\nfree,7,\n";
  absl::StatusOr<TraceFile> csv = LoadTrace(path);
  ASSERT_TRUE(csv.ok()) << csv.status();
  EXPECT_EQ(csv->origin.format, TraceOrigin::Format::kEventCsv);
  std::ofstream(path, std::ios::binary) << Write(csv->trace);
  absl::StatusOr<TraceFile> binary = LoadTrace(path);
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(binary->origin.format, TraceOrigin::Format::kTraceFile);
  EXPECT_EQ(CommonPrefix(binary->trace, csv->trace), 3u);
  EXPECT_EQ(binary->trace.events.size(), 3u);
  unlink(path.c_str());
}

}  // namespace
}  // namespace hotpack
