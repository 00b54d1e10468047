// Notes in trace files: round trips through the writer that runs with the job and through that of `hotpack import`,
// cuts, mutations, and errors on malformed notes. Properties of events are in trace_file_test.cc.
#include <fstream>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "profiler/trace_format.h"
#include "profiler/trace_record.h"
#include "profiler/trace_writer.h"
#include "tests/profiler/trace_samples.h"
#include "tools/recording/trace_output.h"

namespace hotpack {
namespace {

using hotpack::testing::CommonPrefix;
using hotpack::testing::NotesDiffer;
using hotpack::testing::SampleNotes;
using hotpack::testing::SampleTrace;
using hotpack::testing::TempPath;
using hotpack::testing::TestSeed;
using ::testing::StartsWith;

std::unique_ptr<TraceWriter> Create(const std::string& path, uint64_t limit = uint64_t{1} << 30) {
  TraceStatus status;
  auto writer = TraceWriter::Create(path.c_str(), limit, &status);
  EXPECT_EQ(status, TraceStatus::kOk);
  return writer;
}

std::string Contents(const std::string& path) {
  absl::StatusOr<std::string> contents = ReadWholeFile(path);
  EXPECT_TRUE(contents.ok()) << contents.status();
  unlink(path.c_str());
  return contents.ok() ? *contents : "";
}

// As a job's collectors do it: each note at its moment, the work of launches in another order at the end.
std::string WriteAsItRuns(std::mt19937_64& random, const Trace& trace, const Notes& notes) {
  const std::string path = TempPath("notes");
  auto writer = Create(path);
  for (const std::string& name : notes.names) EXPECT_NE(writer->AppendName(name), kNoName);
  size_t launch = 0, range = 0, memory = 0, stack = 0;
  std::vector<LaunchWork> works;
  auto at = [&](uint64_t position) {
    for (; launch < notes.launches.size() && notes.launches[launch].position == position; ++launch) {
      const Launch& note = notes.launches[launch];
      EXPECT_EQ(writer->LaunchCount(), launch);
      EXPECT_TRUE(writer->Append(note, notes.launch_blocks.data() + note.first_block));
      if (note.end_ns != 0)
        works.push_back({launch, note.start_ns, note.end_ns, random() % 2 == 0 ? kNoName : note.name});
    }
    for (; memory < notes.memory.size() && notes.memory[memory].position == position; ++memory) {
      EXPECT_TRUE(writer->Append(notes.memory[memory]));
    }
    for (; range < notes.ranges.size() && notes.ranges[range].position == position; ++range) {
      EXPECT_TRUE(writer->Append(notes.ranges[range]));
    }
  };
  absl::flat_hash_map<uint64_t, NameOrdinal> stacks;
  for (const BlockStack& each : notes.stacks) stacks[each.id] = each.stack;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    at(i);
    const Event& event = trace.events[i];
    EXPECT_TRUE(writer->Append(event));
    if (event.kind == EventKind::kAllocate && stacks.contains(event.id)) {
      EXPECT_TRUE(writer->Append(BlockStack{event.id, stacks[event.id]}));
      ++stack;
    }
  }
  at(trace.events.size());
  EXPECT_EQ(stack, notes.stacks.size());
  std::shuffle(works.begin(), works.end(), random);
  for (const LaunchWork& work : works) EXPECT_TRUE(writer->Append(work));
  writer->Close();
  return Contents(path);
}

void Sort(Notes* notes) {
  std::sort(notes->stacks.begin(), notes->stacks.end(),
            [](const BlockStack& a, const BlockStack& b) { return a.id < b.id; });
}

TEST(TraceNotesTest, RoundTripAsTheJobRuns) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 40; ++round) {
    const Trace trace = SampleTrace(random, random() % 600, {});
    Notes notes = SampleNotes(random, trace);
    absl::StatusOr<TraceFile> file = ParseTraceFile(WriteAsItRuns(random, trace, notes), "f");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(CommonPrefix(file->trace, trace), trace.events.size());
    EXPECT_EQ(file->trace.events.size(), trace.events.size());
    Sort(&notes);
    EXPECT_EQ(NotesDiffer(file->notes, notes), "");
  }
}

TEST(TraceNotesTest, RoundTripThroughTheFileOutput) {
  std::mt19937_64 random(TestSeed());
  const std::string path = TempPath("output");
  for (int round = 0; round < 40; ++round) {
    const Trace trace = SampleTrace(random, random() % 600, {});
    Notes notes = SampleNotes(random, trace);
    ASSERT_TRUE(WriteRecording(trace, notes, 7, path).ok());
    absl::StatusOr<TraceFile> file = ParseTraceFile(Contents(path), "f");
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(CommonPrefix(file->trace, trace), trace.events.size());
    EXPECT_EQ(file->trace.events.size(), trace.events.size());
    Sort(&notes);
    EXPECT_EQ(NotesDiffer(file->notes, notes), "");
  }
}

TEST(TraceNotesTest, AFileWithoutNotesStaysOfVersion1) {
  std::mt19937_64 random(TestSeed());
  const Trace trace = SampleTrace(random, 50, {});
  EXPECT_EQ(WriteAsItRuns(random, trace, {})[trace_format::kVersionAt], 1);
  const std::string path = TempPath("version");
  ASSERT_TRUE(WriteRecording(trace, {}, 7, path).ok());
  EXPECT_EQ(Contents(path)[trace_format::kVersionAt], 1);
  Notes notes;
  notes.ranges.push_back({.name = kNoName, .kind = RangeKind::kMark});
  EXPECT_EQ(WriteAsItRuns(random, trace, notes)[trace_format::kVersionAt], 2);
}

TEST(TraceNotesTest, LongNamesAreCutBetweenCharacters) {
  const std::string path = TempPath("names");
  auto writer = Create(path);
  const std::string euro = "\xE2\x82\xAC";
  EXPECT_EQ(writer->AppendName(std::string(4095, 'a') + euro + "x"), 0u);
  EXPECT_EQ(writer->AppendName(std::string(4093, 'a') + euro + "x"), 1u);
  EXPECT_EQ(writer->AppendName(std::string(5000, '\xBF')), 2u);  // no UTF-8 at all
  EXPECT_EQ(writer->AppendName("bell\a\nline"), 3u);
  writer->Close();
  EXPECT_EQ(writer->AppendName("late"), kNoName);
  absl::StatusOr<TraceFile> file = ParseTraceFile(Contents(path), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->notes.names[0], std::string(4095, 'a'));
  EXPECT_EQ(file->notes.names[1], std::string(4093, 'a') + euro);
  EXPECT_GE(file->notes.names[2].size(), 4092u);
  EXPECT_EQ(file->notes.names[3], "bell?\nline");
}

TEST(TraceNotesTest, WhatIsNoUtf8IsReadAsQuestionMarks) {
  const struct {
    std::string written, read;
  } names[] = {{"caf\xE9!", "caf?!"},  // Latin-1
               {"\xC2\xA2 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF",
                "\xC2\xA2 \xE2\x82\xAC \xF0\x9F\x98\x80 \xF4\x8F\xBF\xBF"},
               {"\xC0\xAF \xE0\x9F\xBF \xF0\x8F\xBF\xBF", "?? ??? ????"},  // longer than need be
               {"\xED\xA0\x80 \xF4\x90\x80\x80 \xFF", "??? ???? ?"},       // surrogates, beyond the last, never
               {"\xED\x9F\xBF\xEE\x80\x80", "\xED\x9F\xBF\xEE\x80\x80"},
               {"cut \xE2\x82", "cut ??"}};
  const std::string path = TempPath("utf8");
  auto writer = Create(path);
  for (const auto& name : names) EXPECT_NE(writer->AppendName(name.written), kNoName);
  writer->Close();
  absl::StatusOr<TraceFile> file = ParseTraceFile(Contents(path), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->notes.names.size(), std::size(names));
  for (size_t i = 0; i < std::size(names); ++i) EXPECT_EQ(file->notes.names[i], names[i].read) << i;
}

TEST(TraceNotesTest, TheLimitEndsARecordingAtAWholeNote) {
  const std::string path = TempPath("limit");
  auto writer = Create(path, 20'000);
  int written = 0;
  while (writer->AppendName(std::string(4096, 'n')) != kNoName) ++written;
  EXPECT_EQ(written, 4);
  EXPECT_FALSE(writer->Append(Event{.kind = EventKind::kMark}));
  absl::StatusOr<TraceFile> file = ParseTraceFile(Contents(path), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->notes.names.size(), 4u);
  EXPECT_EQ(file->origin.end, TraceOrigin::End::kLimitReached);
}

// A committed length inside the records of notes gives the whole records before it, or is refused by a byte of the
// file.
TEST(TraceNotesTest, CutAtEveryRecord) {
  std::mt19937_64 random(TestSeed());
  const Trace trace = SampleTrace(random, 60, {});
  Notes notes = SampleNotes(random, trace);
  notes.names.resize(3);
  notes.names.resize(5, "short");
  const std::string whole = WriteAsItRuns(random, trace, notes);
  size_t read = 0;
  for (uint64_t length = trace_format::kHeaderBytes; length <= whole.size(); ++length) {
    std::string cut = whole.substr(0, length);
    memcpy(cut.data() + trace_format::kCommittedAt, &length, sizeof(length));
    absl::StatusOr<TraceFile> file = ParseTraceFile(cut, "f");
    if (!file.ok()) {
      EXPECT_THAT(std::string(file.status().message()), ::testing::EndsWith("the last record is incomplete"));
      continue;
    }
    ++read;
    EXPECT_LE(file->notes.launches.size(), notes.launches.size());
  }
  const size_t records = trace.events.size() + notes.names.size() + notes.ranges.size() + notes.memory.size() +
                         notes.stacks.size() + notes.launches.size();
  EXPECT_GT(read, records);
}

// Whatever the bytes are: valid notes, or one line that names a byte of the file.
TEST(TraceNotesTest, RandomMutations) {
  std::mt19937_64 random(TestSeed());
  int refused = 0, taken = 0;
  std::string whole;
  for (int round = 0; round < 10000; ++round) {
    if (round % 200 == 0) {
      const Trace trace = SampleTrace(random, 1 + random() % 60, {});
      Notes notes = SampleNotes(random, trace);
      notes.names[3] = "shorter";
      whole = WriteAsItRuns(random, trace, notes);
    }
    std::string bytes = whole;
    for (unsigned changes = 1 + static_cast<unsigned>(random() % 3); changes > 0; --changes) {
      const size_t at = 256 + random() % (bytes.size() - 256);
      bytes[at] = static_cast<char>(random() % 2 == 0 ? random() : bytes[at] ^ (1u << random() % 8));
    }
    absl::StatusOr<TraceFile> file = ParseTraceFile(bytes, "f");
    if (!file.ok()) {
      ++refused;
      ASSERT_THAT(std::string(file.status().message()), StartsWith("f: byte "));
      ASSERT_LE(std::stoull(std::string(file.status().message()).substr(8)), bytes.size());
      continue;
    }
    ++taken;
    const Notes& notes = file->notes;
    auto good_name = [&](NameOrdinal name) { return name == kNoName || name < notes.names.size(); };
    size_t next = 0;
    absl::flat_hash_set<uint64_t> live;
    for (uint64_t i = 0; i <= file->trace.events.size(); ++i) {
      for (; next < notes.launches.size() && notes.launches[next].position == i; ++next) {
        const Launch& launch = notes.launches[next];
        ASSERT_TRUE(good_name(launch.name));
        ASSERT_LE(launch.start_ns, launch.end_ns);
        ASSERT_LE(launch.first_block + launch.blocks, notes.launch_blocks.size());
        for (uint64_t b = 0; b < launch.blocks; ++b)
          ASSERT_TRUE(live.contains(notes.launch_blocks[launch.first_block + b]));
      }
      if (i == file->trace.events.size()) break;
      const Event& event = file->trace.events[i];
      if (event.kind == EventKind::kAllocate) live.insert(event.id);
      if (event.kind == EventKind::kRelease) live.erase(event.id);
    }
    ASSERT_EQ(next, notes.launches.size());
    for (const RangeEdge& edge : notes.ranges) ASSERT_TRUE(good_name(edge.name));
    for (size_t i = 0; i < notes.stacks.size(); ++i) ASSERT_TRUE(i == 0 || notes.stacks[i - 1].id < notes.stacks[i].id);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 500);
}

// A closed file of version 2 with these bytes for records.
std::string FileOf(const std::string& records) {
  const std::string path = TempPath("file");
  Create(path)->Close();
  std::string contents = Contents(path) + records;
  const uint64_t committed = contents.size();
  memcpy(contents.data() + trace_format::kCommittedAt, &committed, sizeof(committed));
  contents[trace_format::kVersionAt] = 2;
  return contents;
}

std::string ErrorOf(const std::string& records) {
  absl::StatusOr<TraceFile> file = ParseTraceFile(FileOf(records), "f");
  return file.ok() ? "" : std::string(file.status().message());
}

// A record from bytes that may be zero.
template <size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return std::string(text, kSize - 1);
}

TEST(TraceNotesTest, TheDocumentedExample) {
  const std::string path = TempPath("example");
  auto writer = Create(path);
  writer->Append(Event{.kind = EventKind::kAllocate, .id = 0, .bytes = 9728});
  EXPECT_EQ(writer->AppendName("gemm"), 0u);
  const uint64_t block = 0;
  writer->Append(Launch{.time_ns = 300, .blocks = 1, .name = 0}, &block);
  writer->Append(LaunchWork{0, 1000, 1500});
  writer->Append(RangeEdge{.time_ns = 300, .kind = RangeKind::kPop});
  writer->Close();
  EXPECT_EQ(Contents(path).substr(trace_format::kHeaderBytes),
            Bytes("\x61\x13\x06\x01\x04gemm\x16\x02\xD8\x04\x01\x01\x00\x06\x03\x01\xD0\x0F\xF4\x03\x00\x06\x04\x02"));
}

TEST(TraceNotesTest, MalformedRecords) {
  const std::string alloc0("\x61\x13"), name0("\x06\x01\x01n"), launch0 = Bytes("\x06\x02\x00\x00");
  EXPECT_EQ(ErrorOf(alloc0 + name0 + Bytes("\x06\x02\x01\x01\x00") + "\x06\x05" + Bytes("\x00\x01")), "");
  EXPECT_EQ(ErrorOf("\x26\x01"), "f: byte 256: no record begins with 38");
  EXPECT_EQ(ErrorOf("\x86\x01"), "f: byte 256: no record begins with 134");
  EXPECT_EQ(ErrorOf(Bytes("\x06\x00")), "f: byte 257: no note is of kind 0");
  EXPECT_EQ(ErrorOf("\x06\x07"), "f: byte 257: no note is of kind 7");
  EXPECT_EQ(ErrorOf("\x06"), "f: byte 256: the last record is incomplete");
  EXPECT_EQ(ErrorOf("\x06\x01\x02n"), "f: byte 256: the last record is incomplete");
  EXPECT_EQ(ErrorOf("\x06\x01\x81\x20"), "f: byte 258: the name's length is 4097, more than 4096");
  EXPECT_EQ(ErrorOf(Bytes("\x06\x02\x01\x00")), "f: byte 258: the name is 1, more than 0");
  EXPECT_EQ(ErrorOf(Bytes("\x06\x02\x00\x81\x20")), "f: byte 259: the number of blocks is 4097, more than 4096");
  EXPECT_EQ(ErrorOf(alloc0 + Bytes("\x06\x02\x00\x01\x02")),
            "f: byte 262: block 18446744073709551615 is named but is not live");
  EXPECT_EQ(ErrorOf(alloc0 + Bytes("\x02\x00\x06\x02\x00\x01\x00")), "f: byte 264: block 0 is named but is not live");
  EXPECT_EQ(ErrorOf(launch0 + Bytes("\x06\x03\x00\x00\x00\x00")), "f: byte 262: there is no launch 0 before it");
  EXPECT_EQ(ErrorOf(launch0 + Bytes("\x06\x03\x02\x00\x00\x00")), "f: byte 262: there is no launch 2 before it");
  EXPECT_EQ(ErrorOf(launch0 + Bytes("\x06\x03\x01\x01\x01\x00")), "f: byte 264: the work ends before it starts");
  EXPECT_EQ(ErrorOf(Bytes("\x06\x04\x00")), "f: byte 258: no edge of a range is of kind 0");
  EXPECT_EQ(ErrorOf("\x06\x04\x06"), "f: byte 258: no edge of a range is of kind 6");
  EXPECT_EQ(ErrorOf("\x06\x04\x05\x01"), "f: byte 259: the name is 1, more than 0");
  EXPECT_EQ(ErrorOf(alloc0 + Bytes("\x06\x05\x00\x00\x06\x05\x00\x00")), "f: byte 262: block 0 has a second stack");
  EXPECT_EQ(ErrorOf("\x06\x06\x02"), "f: byte 258: memory is given (0) or taken back (1), not 2");
}

TEST(TraceNotesTest, Version1HasNoNotes) {
  std::string contents = FileOf("\x06\x01\x01n");
  contents[trace_format::kVersionAt] = 1;
  absl::StatusOr<TraceFile> file = ParseTraceFile(contents, "f");
  EXPECT_EQ(file.status().message(), "f: byte 256: no record begins with 6");
}

}  // namespace
}  // namespace hotpack
