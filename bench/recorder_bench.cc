// The cost of an event in the recorder: alone, and on top of a request served by script.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "bench/benchmark_main.h"
#include "bench/script_pairs.h"
#include "bench/serving_job.h"
#include "profiler/trace_writer.h"

namespace hotpack::bench {
namespace {

constexpr int kLayers = 64;
constexpr int64_t kFixed = 256 * 10'000;               // pairs that fit into one file
constexpr uint64_t kLimitBytes = uint64_t{256} << 20;  // of a file, before a new one begins
constexpr double kMaxBytes = 40;                       // per event, by profiler/trace_writer.h

// A temporary file that exists as long as this object.
class Scratch {
 public:
  Scratch() {
    std::string path = std::filesystem::temp_directory_path() / "hotpack-bench-XXXXXX";
    const int file = mkstemp(path.data());
    if (file >= 0) close(file);
    path_ = path;
  }
  ~Scratch() { unlink(path_.c_str()); }
  std::unique_ptr<TraceWriter> Writer(benchmark::State& state) const {
    TraceStatus status = TraceStatus::kOk;
    std::unique_ptr<TraceWriter> writer = TraceWriter::Create(path_.c_str(), kLimitBytes, &status);
    if (writer == nullptr) state.SkipWithError("the trace cannot be written");
    return writer;
  }
  uint64_t Bytes() const { return std::filesystem::file_size(path_); }

 private:
  std::string path_;
};

// Counts the file's bytes per event. Reports an error if they exceed the promise, or if nothing was written.
void CountBytes(benchmark::State& state, const Scratch& file, TraceWriter& writer) {
  const auto events = static_cast<double>(writer.EventCount());
  writer.Close();
  const double each = static_cast<double>(file.Bytes()) / events;
  state.counters["bytes_an_event"] = each;
  constexpr double kMany = 10'000;  // events from which on the file's header is negligible
  if (events >= kMany && (each < 1 || each > kMaxBytes)) state.SkipWithError("an event does not take 1 to 40 bytes");
}

// Times the writer alone: an allocation and a release with `live` other blocks in between.
void AppendPair(benchmark::State& state) {
  const Scratch file;
  std::unique_ptr<TraceWriter> writer = file.Writer(state);
  const auto live = static_cast<uint64_t>(state.range(0));
  uint64_t id = 0;
  for (auto _ : state) {
    ++id;
    bool written = writer->Append(
        {.kind = EventKind::kAllocate, .stream = 0, .id = id, .bytes = 512 * (1 + id % 1000), .time_ns = 100 * id});
    if (id > live)
      written = writer->Append(
          {.kind = EventKind::kRelease, .stream = 0, .id = id - live, .bytes = 0, .time_ns = 100 * id + 50});
    if (written) continue;
    state.PauseTiming();  // the file is full
    writer = file.Writer(state);
    id = 0;
    state.ResumeTiming();
    if (writer == nullptr) return;
  }
  CountBytes(state, file, *writer);
}
BENCHMARK(AppendPair)->Arg(1)->Arg(1000)->ArgName("live")->Iterations(kFixed);

// Time a request and its release served by script: without a recording, with one, and with the index of live blocks
// that the launch collector needs. A pair is two events.
void PairUnrecorded(benchmark::State& state) {
  ServingJob job(kLayers);
  PlayByScript(state, job);
}
BENCHMARK(PairUnrecorded);

void RecordedPair(benchmark::State& state, bool launches) {
  const Scratch file;
  const std::unique_ptr<TraceWriter> writer = file.Writer(state);
  if (writer == nullptr) return;
  EngineOptions options;
  options.trace = writer.get();
  options.note_launches = launches;
  ServingJob job(kLayers, options);
  PlayByScript(state, job);
  // Events beyond the file's limit are not written, and would cost nothing.
  if (writer->EventCount() < 2 * static_cast<uint64_t>(state.iterations()))
    state.SkipWithError("the file was full before the end");
  CountBytes(state, file, *writer);
}
void PairRecorded(benchmark::State& state) { RecordedPair(state, false); }
void PairRecordedWithIndex(benchmark::State& state) { RecordedPair(state, true); }
BENCHMARK(PairRecorded)->Iterations(kFixed);
BENCHMARK(PairRecordedWithIndex)->Iterations(kFixed);

}  // namespace
}  // namespace hotpack::bench

int main(int argc, char** argv) { return hotpack::bench::RunBenchmarks(argc, argv); }
