// Serves PAIRS pairs of a job whose iterations differ, by an envelope, for an instruction count by callgrind (README.md
// here). With a recording: its last third, or the first PAIRS pairs of that. Built where callgrind's header is, it lets
// the count begin after the warm-up. `envelope_callgrind begins` says whether it does, by its exit code.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "bench/varying_job.h"
#include "profiler/trace_file.h"
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#endif

namespace {

#ifdef CALLGRIND_START_INSTRUMENTATION
constexpr bool kBegins = true;
void BeginCount() {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}
#else
constexpr bool kBegins = false;
void BeginCount() {}
#endif

constexpr int kLayers = 24, kWarmUp = 48;
constexpr double kPlanned = 90;  // of 100: less would be a count of something else

int Fail(const std::string& what, int code) {
  std::fprintf(stderr, "envelope_callgrind: %s\n", what.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "begins") return kBegins ? 0 : 1;
  char* end = nullptr;
  const int64_t pairs = argc >= 2 ? std::strtoll(argv[1], &end, 10) : -1;
  if (argc < 2 || argc > 3 || *end != '\0' || pairs < 0) return Fail("give the number of pairs [and a recording]", 2);
  hotpack::bench::VaryingSequence sequence;
  size_t warm_up = kWarmUp;
  if (argc == 3) {
    const absl::StatusOr<hotpack::TraceFile> read = hotpack::LoadTrace(argv[2]);
    if (!read.ok()) return Fail(std::string(read.status().message()), 2);
    sequence = hotpack::bench::StepsOf(read->trace);
    warm_up = sequence.steps.size() * 2 / 3;
  } else {
    sequence = hotpack::bench::MakeVaryingSteps(kLayers, kWarmUp + static_cast<int>(pairs / (4 * kLayers)) + 1);
  }
  hotpack::bench::VaryingJob job(std::move(sequence));
  if (!job.WarmUp(warm_up)) return Fail("the job was not served by an envelope", 1);
  BeginCount();
  const uint64_t played = job.Play(static_cast<uint64_t>(pairs));
  if (played > 0 && job.Planned() < kPlanned) return Fail("too few requests got a planned place", 1);
  if (argc == 2 && played != static_cast<uint64_t>(pairs)) return Fail("the job ended early", 1);
  std::printf("%llu pairs, %.2f %% of them at planned places\n", static_cast<unsigned long long>(played),
              played > 0 ? job.Planned() : 0.0);
  return 0;
}
