// Snapshots and logs in memory: the result of each kind of entry, and that a recording survives the conversion to a
// snapshot and back.
#include <cstdint>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "tests/packer/random_instance.h"
#include "tests/support/subprocess.h"
#include "tools/formats/pickle_writer.h"
#include "tools/formats/rmm_log.h"
#include "tools/formats/snapshot_export.h"
#include "tools/formats/snapshot_import.h"

namespace hotpack {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Frame {
  std::string function, file;
  int64_t line;
};

// An entry of a history; `time_us` is the ordinal.
struct Entry {
  std::string action;
  int64_t addr;
  int64_t size;
  int64_t stream = 0;
  std::vector<Frame> frames = {{"", "a.py", 0}};
};

struct LiveBlock {
  int64_t size;
  int64_t requested;
  std::string state;
  std::vector<Frame> frames = {};
};

struct Segment {
  int64_t device;
  int64_t address;
  int64_t stream;
  std::vector<LiveBlock> blocks;
  bool old = false;  // as PyTorch 2.0 wrote them: sizes in `history`, no addresses
};

std::string Snapshot(const std::vector<std::vector<Entry>>& histories, const std::vector<Segment>& segments = {}) {
  std::string bytes;
  PickleWriter writer([&](absl::string_view piece) {
    bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  const auto pair = [&](std::string_view key, int64_t value) { writer.Key(key), writer.Integer(value); };
  const auto stack = [&](const std::vector<Frame>& frames) {
    writer.Key("frames"), writer.BeginList();
    for (const Frame& frame : frames) {
      writer.BeginDict();
      writer.Key("name"), writer.Text(frame.function);
      writer.Key("filename"), writer.Text(frame.file);
      pair("line", frame.line);
      writer.EndDict();
    }
    writer.EndList();
  };
  writer.BeginDict();
  writer.Key("segments"), writer.BeginList();
  for (const Segment& segment : segments) {
    writer.BeginDict();
    pair("device", segment.device), pair("address", segment.address), pair("stream", segment.stream);
    writer.Key("blocks"), writer.BeginList();
    int64_t address = segment.address;
    for (const LiveBlock& block : segment.blocks) {
      writer.BeginDict();
      pair("size", block.size);
      writer.Key("state"), writer.Text(block.state);
      stack(block.frames);
      if (segment.old) {
        writer.Key("history"), writer.BeginList(), writer.BeginDict();
        pair("addr", address), pair("real_size", block.requested);
        writer.EndDict(), writer.EndList();
      } else {
        pair("address", address), pair("requested_size", block.requested);
      }
      writer.EndDict();
      address += block.size;
    }
    writer.EndList(), writer.EndDict();
  }
  writer.EndList();
  writer.Key("device_traces"), writer.BeginList();
  for (const std::vector<Entry>& history : histories) {
    writer.BeginList();
    for (size_t i = 0; i < history.size(); ++i) {
      writer.BeginDict();
      writer.Key("action"), writer.Text(history[i].action);
      if (history[i].addr != 0) pair("addr", history[i].addr);
      pair("size", history[i].size), pair("stream", history[i].stream);
      pair("time_us", static_cast<int64_t>(1'000'000 + i));
      stack(history[i].frames);
      writer.EndDict();
    }
    writer.EndList();
  }
  writer.EndList(), writer.EndDict();
  EXPECT_TRUE(writer.Finish().ok());
  return bytes;
}

absl::StatusOr<ImportedSnapshot> Import(const std::string& bytes, std::optional<int> device = std::nullopt) {
  return ReadSnapshot(MemorySource(bytes), "s", device);
}

std::string ErrorOf(const std::string& bytes, std::optional<int> device = std::nullopt) {
  absl::StatusOr<ImportedSnapshot> imported = Import(bytes, device);
  return imported.ok() ? "read" : std::string(imported.status().message());
}

// "+0:512" an allocation, "-0:512" a release, "m" a mark; "/2" a stream other than 0.
std::vector<std::string> Lines(const Trace& trace) {
  std::vector<std::string> lines;
  for (const Event& event : trace.events) {
    const bool allocates = event.kind == EventKind::kAllocate;
    std::string line = allocates ? "+" : "-";
    if (!allocates && event.kind != EventKind::kRelease) {
      lines.push_back(event.kind == EventKind::kMark ? "m" : event.kind == EventKind::kInterrupt ? "i" : "r");
      continue;
    }
    line.append(std::to_string(event.id)).append(":").append(std::to_string(event.bytes));
    if (event.stream != 0) line.append("/").append(std::to_string(event.stream));
    lines.push_back(line);
  }
  return lines;
}

TEST(SnapshotImportTest, RequestedReleasesCount) {
  absl::StatusOr<ImportedSnapshot> imported = Import(Snapshot({{{"segment_alloc", 4096, 2 << 20},
                                                                {"alloc", 4096, 700},
                                                                {"alloc", 8192, 512, 0x7f0000001000},
                                                                {"free_requested", 4096, 700},
                                                                {"oom", 0, int64_t{1} << 35},
                                                                {"snapshot", 0, 0},
                                                                {"segment_map", 4096, 2 << 20},
                                                                {"alloc", 16384, 1024, 0x7f0000002000},
                                                                {"free_completed", 4096, 700},
                                                                {"alloc", 4096, 5},
                                                                {"something_new", 4096, 1},
                                                                {"free_requested", 16384, 1024, 0x7f0000002000},
                                                                {"free_completed", 16384, 1024, 0x7f0000002000}}}));
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_THAT(Lines(imported->trace), ElementsAre("+0:700", "+1:512/1", "-0:700", "+2:1024/2", "+3:5", "-2:1024/2"));
  EXPECT_EQ(imported->allocations, 4u);
  EXPECT_EQ(imported->failed, 1u);
  EXPECT_EQ(imported->live_before, 0u);
  EXPECT_EQ(imported->began_ns, 1'000'000'000u);
  EXPECT_EQ(imported->trace.events[2].time_ns, 3000u);
}

TEST(SnapshotImportTest, StreamsKeepApart) {
  const int64_t pointer = 0x55d000001000;
  absl::StatusOr<ImportedSnapshot> imported = Import(Snapshot({{{"alloc", 1, 10, pointer},
                                                                {"alloc", 2, 11, 1},
                                                                {"alloc", 3, 12, pointer + 1},
                                                                {"alloc", 4, 13, 3},
                                                                {"alloc", 5, 14, pointer + 2},
                                                                {"free_requested", 1, 10, pointer}}}));
  ASSERT_TRUE(imported.ok());
  EXPECT_THAT(Lines(imported->trace), ElementsAre("+0:10/2", "+1:11/1", "+2:12/4", "+3:13/3", "+4:14/5", "-0:10/2"));
}

TEST(SnapshotImportTest, WhatWasLiveBeforeTheHistoryIsAllocatedFirst) {
  const std::vector<Entry> history = {{"free_completed", 100, 10},  // asked for before the history: not live any more
                                      {"alloc", 200, 20},
                                      {"free_requested", 300, 30, 7},
                                      {"free_completed", 300, 30, 7},
                                      {"alloc", 300, 40}};
  const std::vector<Segment> segments = {{0,
                                          200,
                                          0,
                                          {{50, 20, "active_allocated"},
                                           {50, 0, "inactive"},
                                           {60, 40, "active_allocated"},
                                           {70, 65, "active_allocated"},
                                           {512, 500, "active_pending_free"}}},
                                         {0, 5000, 9, {{512, 510, "active_allocated"}}},
                                         {1, 9000, 0, {{512, 511, "active_allocated"}}}};
  for (const bool old : {false, true}) {
    std::vector<Segment> as_written = segments;
    for (Segment& segment : as_written) segment.old = old;
    absl::StatusOr<ImportedSnapshot> imported = Import(Snapshot({history}, as_written));
    ASSERT_TRUE(imported.ok()) << imported.status();
    EXPECT_THAT(Lines(imported->trace), ElementsAre("+0:30/7", "+1:65", "+2:510/9", "+3:20", "-0:30/7", "+4:40"));
    EXPECT_EQ(imported->live_before, 3u);
    EXPECT_EQ(imported->allocations, 2u);
  }
}

// Each block's frames become its stack, the innermost first; equal ones are one name.
TEST(SnapshotImportTest, FramesBecomeStacks) {
  const std::vector<Frame> forward = {{"at::empty_cuda", "??", 0},
                                      {"??", "/lib/libtorch.so", 4711},
                                      {"_PyEval_EvalFrameDefault", "??", 0},
                                      {"forward", "/models/net.py", 12},
                                      {"free", "train.py", 7}};
  const std::vector<Frame> much(100, Frame{std::string(100, 'f'), "file.py", 1});
  const absl::StatusOr<ImportedSnapshot> imported =
      Import(Snapshot({{{"alloc", 0x1000, 512, 0, forward},
                        {"alloc", 0x2000, 512, 0, {}},
                        {"free_requested", 0x1000, 512, 0, {{"elsewhere", "x.py", 1}}},
                        {"alloc", 0x1000, 1024, 0, forward},
                        {"alloc", 0x4000, 512, 0, {{"two\nlines", "", 0}}},
                        {"alloc", 0x5000, 512, 0, {{std::string(600, 'x'), "y.py", 3}}},
                        {"alloc", 0x6000, 512, 0, much}}},
                      {{0, 0x9000, 0, {{512, 512, "active_allocated", {{"load", "weights.py", 3}}}}}}));
  ASSERT_TRUE(imported.ok()) << imported.status();
  std::vector<std::string> stacks;
  for (const BlockStack& stack : imported->notes.stacks) {
    stacks.push_back(std::to_string(stack.id) + " " + imported->notes.names[stack.stack]);
  }
  ASSERT_EQ(stacks.size(), 6u);
  EXPECT_EQ(stacks[0], "0 load (weights.py:3)") << "what was live before comes first";
  EXPECT_EQ(stacks[1], "1 at::empty_cuda\nforward (/models/net.py:12)\nfree (train.py:7)");
  EXPECT_EQ(stacks[2], "3 at::empty_cuda\nforward (/models/net.py:12)\nfree (train.py:7)");
  EXPECT_EQ(stacks[3], "4 two lines");
  EXPECT_EQ(stacks[4], "5 " + std::string(512, 'x') + " (y.py:3)");
  EXPECT_EQ(imported->notes.names.size(), 5u);
  const std::string& longest = imported->notes.names[imported->notes.stacks.back().stack];
  EXPECT_THAT(longest, ::testing::EndsWith(" (file.py:1)"));
  EXPECT_LE(longest.size(), 4096u);
  EXPECT_GT(longest.size(), 3900u);
}

TEST(SnapshotImportTest, HistoriesWithoutSomeActions) {
  // skip_actions=["free_requested"]: then the completion is all there is.
  absl::StatusOr<ImportedSnapshot> completed =
      Import(Snapshot({{{"alloc", 1, 8}, {"free_completed", 1, 8}, {"free_completed", 2, 9}}}));
  ASSERT_TRUE(completed.ok());
  EXPECT_THAT(Lines(completed->trace), ElementsAre("+0:9", "+1:8", "-1:8", "-0:9"));
  // Neither: the address says when the block before is gone.
  absl::StatusOr<ImportedSnapshot> none = Import(Snapshot({{{"alloc", 1, 8}, {"alloc", 2, 9}, {"alloc", 1, 10}}}));
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(Lines(none->trace), ElementsAre("+0:8", "+1:9", "-0:8", "+2:10"));
  EXPECT_EQ(none->missed_releases, 1u);
}

TEST(SnapshotImportTest, TakesTheLongestHistoryOrTheOneAskedFor) {
  const std::string bytes = Snapshot({{{"alloc", 1, 8}}, {}, {{"alloc", 1, 9}, {"free_requested", 1, 9}}});
  absl::StatusOr<ImportedSnapshot> longest = Import(bytes), first = Import(bytes, 0);
  ASSERT_TRUE(longest.ok() && first.ok());
  EXPECT_EQ(longest->device, 2);
  EXPECT_THAT(longest->entries, ElementsAre(1, 0, 2));
  EXPECT_THAT(Lines(longest->trace), ElementsAre("+0:9", "-0:9"));
  EXPECT_THAT(Lines(first->trace), ElementsAre("+0:8"));
  EXPECT_EQ(ErrorOf(bytes, 1), "s: there is no history of device 1 in it");
  EXPECT_EQ(ErrorOf(bytes, 3), "s: there is no history of device 3 in it");
}

TEST(SnapshotImportTest, RefusesWhatIsNoHistory) {
  EXPECT_EQ(
      ErrorOf(Snapshot({{}, {}})),
      "s: it has no history of allocations; record one with torch.cuda.memory._record_memory_history() at the start "
      "of the program");
  EXPECT_THAT(ErrorOf(Snapshot({})), HasSubstr("_record_memory_history()"));
  EXPECT_THAT(ErrorOf(Snapshot({{{"segment_alloc", 1, 2 << 20}}})), HasSubstr("_record_memory_history()"));
  EXPECT_THAT(ErrorOf("\x80\x02]."), HasSubstr("_record_memory_history()"));  // torch.cuda.memory_snapshot()
  EXPECT_EQ(ErrorOf("\x80\x02}."), "s: this is a pickle, but no memory snapshot: it has no device_traces");
  EXPECT_EQ(ErrorOf("\x80\x02N."), "s: this is a pickle, but no memory snapshot");
  EXPECT_EQ(ErrorOf(Snapshot({{{"alloc", 0, 8}}})), "s: an entry \"alloc\" has no addr");
  EXPECT_EQ(ErrorOf(Snapshot({{{"alloc", 1, -8}}})), "s: an entry \"alloc\" has -8 bytes, not 0 to 1099511627776");
  EXPECT_EQ(ErrorOf(Snapshot({{{"alloc", 1, (int64_t{1} << 40) + 1}}})),
            "s: an entry \"alloc\" has 1099511627777 bytes, not 0 to 1099511627776");
}

// A recording of any kind of events, ids in the order of the allocations.
Trace Drawn(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  Trace trace;
  std::vector<Event> live;
  uint64_t next = 0, time = 0;
  const uint64_t length = 1 + below(400), streams = 1 + below(4), appetite = 1 + below(9);
  for (uint64_t i = 0; i < length; ++i) {
    time += 1000 * below(50);
    if (below(20) == 0 && i > 0) {
      const EventKind kinds[] = {EventKind::kMark, EventKind::kInterrupt, EventKind::kResume, EventKind::kExpect};
      trace.events.push_back({.kind = kinds[below(4)], .time_ns = time});
    } else if (live.empty() || below(10) < appetite) {
      Event event = {.stream = static_cast<uint32_t>(below(streams) * (below(2) == 0 ? 1 : 1'000'000'000)),
                     .id = next++,
                     .bytes = 1 + (random() >> (64 - 1 - below(40))),
                     .time_ns = time};
      trace.events.push_back(event);
      live.push_back(event);
    } else {
      const size_t which = below(live.size());
      Event event = live[which];
      event.kind = EventKind::kRelease;
      event.time_ns = time;
      trace.events.push_back(event);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }
  return trace;
}

std::string Exported(const Trace& trace, uint64_t began_ns = 1'700'000'000'000'000'000) {
  std::string bytes;
  ExportedSnapshot exported;
  absl::Status status = WriteSnapshot(
      trace, began_ns,
      [&](absl::string_view piece) {
        bytes.append(piece.data(), piece.size());
        return absl::OkStatus();
      },
      &exported);
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TEST(SnapshotRoundTripTest, SizesStreamsOrderMarksAndTimesSurvive) {
  const uint64_t seed = testing::TestSeed();
  for (uint64_t i = 0; i < 300; ++i) {
    std::mt19937_64 random(seed * 1000 + i);
    const Trace trace = Drawn(random);
    absl::StatusOr<ImportedSnapshot> again = Import(Exported(trace));
    ASSERT_TRUE(again.ok()) << again.status() << ", draw " << i << " of seed " << seed;
    ASSERT_EQ(Lines(again->trace), Lines(trace)) << "draw " << i << " of seed " << seed;
    ASSERT_EQ(again->live_before, 0u);
    for (size_t k = 0; k < trace.events.size(); ++k) {
      ASSERT_EQ(again->trace.events[k].time_ns, trace.events[k].time_ns) << "draw " << i << " of seed " << seed;
    }
  }
}

// Python's own reader and its own book-keeping. Every entry has the members that the viewers need, blocks lie inside
// the segment, no two live ones overlap, and the segment's blocks are those live at the end.
constexpr char kCheck[] = R"(
import pickle, pickletools, sys
# What the viewer in the browser reads of a pickle.
known = set('APPEND APPENDS BINFLOAT BINGET BININT BININT1 BININT2 BINPUT BINUNICODE DICT EMPTY_DICT '
            'EMPTY_LIST EMPTY_TUPLE FRAME LIST LONG1 LONG_BINGET LONG_BINPUT MARK MEMOIZE NEWFALSE NEWTRUE NONE '
            'PROTO SETITEM SETITEMS SHORT_BINUNICODE STOP TUPLE TUPLE1 TUPLE2 TUPLE3'.split())
for path in sys.argv[1:]:
    with open(path, 'rb') as file: operations = list(pickletools.genops(file))
    assert {operation.name for operation, _, _ in operations} <= known
    assert all(not isinstance(value, int) or abs(value) < 2**53 for _, value, _ in operations)  # JavaScript's numbers
    with open(path, 'rb') as file: s = pickle.load(file)
    assert sorted(s) == ['device_traces', 'segments'] and len(s['device_traces']) == 1
    with open(path + '.txt') as file: expected = file.read().split()
    live, seen = {}, []
    segment = s['segments'][0] if s['segments'] else None
    history = s['device_traces'][0]
    assert (segment is None) == (not any(e['action'] == 'alloc' for e in history))
    for i, e in enumerate(history):
        assert e['frames'] == [] and e['pool_id'] == (0, 0) and e['time_us'] >= 0 and e['stream'] >= 0
        if e['action'] == 'segment_alloc':
            assert i == 0 and (e['addr'], e['size']) == (segment['address'], segment['total_size'])
        elif e['action'] == 'alloc':
            rounded = -(-e['size'] // 512) * 512
            assert segment['address'] <= e['addr'] and e['addr'] + rounded <= segment['address'] + segment['total_size']
            assert all(e['addr'] + rounded <= a or a + r <= e['addr'] for a, (r, _) in live.items())
            live[e['addr']] = (rounded, e['size'])
            seen.append('+%d/%d' % (e['size'], e['stream']))
        elif e['action'] == 'free_requested':
            assert live.pop(e['addr'])[1] == e['size']
            assert (history[i + 1]['action'], history[i + 1]['addr']) == ('free_completed', e['addr'])
            seen.append('-%d/%d' % (e['size'], e['stream']))
        else:
            assert e['action'] in ('free_completed', 'snapshot'), e
    assert seen == expected
    if segment:
        address = segment['address']
        for b in segment['blocks']:
            assert b['address'] == address and b['frames'] == []
            if b['state'] == 'active_allocated': assert live.pop(address) == (b['size'], b['requested_size'])
            else: assert b['state'] == 'inactive' and b['requested_size'] == 0
            address += b['size']
        assert address == segment['address'] + segment['total_size'] and segment['total_size'] % 2**21 == 0
    assert not live
)";

TEST(SnapshotExportTest, PythonReadsAConsistentSnapshot) {
  if (hotpack_test::RunProgram({"/bin/sh", "-c", "python3 -c 'import pickle' 2>/dev/null"}).code != 0) {
    GTEST_SKIP() << "no python3";
  }
  const uint64_t seed = testing::TestSeed();
  const hotpack_test::TemporaryDirectory folder;
  std::vector<std::string> command = {"python3", "-c", kCheck};
  for (uint64_t i = 0; i < 40; ++i) {
    std::mt19937_64 random(seed * 1000 + i);
    const Trace trace = Drawn(random);
    const std::string path = folder.path() + "/" + std::to_string(i);
    std::ofstream(path, std::ios::binary) << Exported(trace);
    std::ofstream expected(path + ".txt");
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kAllocate && event.kind != EventKind::kRelease) continue;
      expected << (event.kind == EventKind::kAllocate ? "+" : "-") << event.bytes << "/" << event.stream << "\n";
    }
    command.push_back(path);
  }
  const hotpack_test::Outcome outcome = hotpack_test::RunProgram(command);
  EXPECT_EQ(outcome.code, 0) << outcome.err << "seed " << seed;
}

absl::StatusOr<ImportedLog> Log(const std::string& text) { return ReadRmmLog(MemorySource(text), "l"); }

std::string LogError(const std::string& text) {
  absl::StatusOr<ImportedLog> log = Log(text);
  return log.ok() ? "read" : std::string(log.status().message());
}

TEST(RmmLogTest, ReadsWhatVersionsOfRmmWrite) {
  absl::StatusOr<ImportedLog> log =
      Log("Thread,Time,Action,Pointer,Size,Stream\r\n"
          "77,23:59:59.999000,allocate,0x7f0000000000,1024,0x7f11\n"
          "78,23:59:59:999500,allocate,0x7f0000001000,0,0x2\n"
          "78,00:00:00.000500,allocate failure,(nil),99999999999999,0x2\n"
          "78,00:00:00.001000,allocate,0x7f0000002000,300,0x55d000001000\n"
          "77,00:00:00.000900,free,0x7f0000000000,1024,0x7f11\n"
          "77,00:00:00.002000,deallocate,0x7f0000009000,5,(nil)\n"
          "77,00:00:00.003000,alloc");
  ASSERT_TRUE(log.ok()) << log.status();
  EXPECT_THAT(Lines(log->trace), ElementsAre("+0:5", "+1:1024/32529", "+2:300/1", "-1:1024/32529", "-0:5"));
  EXPECT_EQ(log->allocations, 2u);
  EXPECT_EQ(log->failed, 1u);
  EXPECT_EQ(log->live_before, 1u);
  EXPECT_TRUE(log->is_cut);
  std::vector<uint64_t> times, threads;
  for (const Event& event : log->trace.events) times.push_back(event.time_ns), threads.push_back(event.thread);
  EXPECT_THAT(times, ElementsAre(0, 0, 2'000'000, 2'000'000, 3'000'000));  // over midnight; never back
  EXPECT_THAT(threads, ElementsAre(0, 0, 1, 0, 0));
  absl::StatusOr<ImportedLog> seconds =
      Log("1,1634567890.123456,allocate,4096,8,0\n1,1634567890.5,free,4096,8,0\n1,1634567892,free,512,8,0\n");
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_EQ(seconds->trace.events.back().time_ns, 1'876'544'000u);
}

TEST(RmmLogTest, RefusesWithThePlace) {
  const std::string good = "1,00:00:00.0,allocate,0x10,8,0x0\n";
  EXPECT_EQ(LogError(good), "read");
  EXPECT_EQ(LogError(""), "l:1:1: there are no allocations in it");
  EXPECT_EQ(LogError("Thread,Time,Action,Pointer,Size,Stream\n"), "l:1:1: there are no allocations in it");
  EXPECT_EQ(LogError(good + "1,2\n"), "l:2:4: 2 columns, 6 expected: Thread,Time,Action,Pointer,Size,Stream");
  EXPECT_EQ(LogError(good + "x,00:00:00.0,free,0x10,8,0x0\n"), "l:2:1: the thread is no number");
  EXPECT_EQ(LogError(good + "1,00:61:00.0,free,0x10,8,0x0\n"),
            "l:2:3: the time is neither HH:MM:SS.ffffff nor seconds");
  EXPECT_EQ(LogError(good + "1,00:00:00.0,frees,0x10,8,0x0\n"),
            "l:2:14: the action is not allocate, free or allocate failure");
  EXPECT_EQ(LogError(good + "1,00:00:00.0,free,x10,8,0x0\n"), "l:2:19: the pointer is no address");
  EXPECT_EQ(LogError(good + "1,00:00:00.0,free,0x10,-8,0x0\n"),
            "l:2:24: the size is no whole number from 0 to 1099511627776");
  EXPECT_EQ(LogError(good + "1,00:00:00.0,free,0x10,8,0x0,\n"), "l:2:26: the stream is no address");
  EXPECT_EQ(LogError(good + std::string(5000, '1') + "\n"), "l:2:1: the line is longer than 4096 bytes");
}

// The same perceptron as an event CSV (by tests/data/make_traces.py, which writes both).
TEST(RmmLogTest, TheLogOfAKnownRun) {
  absl::StatusOr<ByteSource> source = FileSource(HOTPACK_SOURCE_DIR "/tests/data/mlp-adam.rmm.log");
  ASSERT_TRUE(source.ok());
  absl::StatusOr<ImportedLog> log = ReadRmmLog(*std::move(source), "l");
  absl::StatusOr<TraceFile> known = LoadTrace(HOTPACK_SOURCE_DIR "/tests/data/mlp-adam.trace");
  ASSERT_TRUE(log.ok() && known.ok());
  std::erase_if(known->trace.events, [](const Event& event) { return event.kind == EventKind::kMark; });
  ASSERT_EQ(log->trace.events.size(), known->trace.events.size());
  for (size_t i = 0; i < known->trace.events.size(); ++i) {
    const Event &a = log->trace.events[i], &b = known->trace.events[i];
    EXPECT_EQ(std::tuple(a.kind, a.id, a.bytes, a.thread), std::tuple(b.kind, b.id, b.bytes, b.thread)) << i;
    EXPECT_EQ(a.stream == 2, b.stream == 0) << i;  // the per-thread default stream has the handle 2
  }
}

}  // namespace
}  // namespace hotpack
