// Runs random programs on the simulated device, one after the other or several at a time:
//   random_program SEED OPERATIONS [THREADS [PROGRAMS [varied|alike]]]
// Prints the actions and hotpack's figures. Exit code 97 if the checker has reports (simgpu/README.md), 5 if a result
// was wrong. The actions follow from SEED alone, so a failure is repeated by running it again.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "runtime/include/hotpack.h"
#include "simgpu/checker.h"
#include "tests/property/hotpack_calls.h"
#include "tests/property/program.h"

namespace {

void Print(const property::Counts& c) {
  printf("operations %" PRIu64 " allocations %" PRIu64 " releases %" PRIu64 " uses %" PRIu64 " edges %" PRIu64
         " streams %" PRIu64 " captures %" PRIu64 " graph_launches %" PRIu64 " refused %" PRIu64
         " out_of_memory %" PRIu64,
         c.operations, c.allocations, c.releases, c.uses, c.edges, c.streams, c.captures, c.launches, c.refused,
         c.out_of_memory);
  printf(" reports %" PRIu64 " requests %" PRIu64 " planned %" PRIu64 " displaced %" PRIu64 " passed_through %" PRIu64
         " plans %" PRIu64 "\n",
         simgpuReports(), c.requests, c.planned, c.displaced, c.passed_through, c.plans);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "random_program SEED OPERATIONS [THREADS [PROGRAMS [varied|alike]]]\n");
    return 2;
  }
  const uint64_t seed = strtoull(argv[1], nullptr, 10), operations = strtoull(argv[2], nullptr, 10);
  const int threads = argc > 3 ? atoi(argv[3]) : 1, programs = argc > 4 ? atoi(argv[4]) : 1;
  const bool varied = argc > 5 && strcmp(argv[5], "varied") == 0;
  int devices = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS) return 3;
  property::ProgramResult sum;
  property::Exchange exchange;
  CUcontext kept = nullptr;  // threads share a context, and it stays: so do hotpack's figures of it
  if (threads > 1 && cuDevicePrimaryCtxRetain(&kept, 0) != CUDA_SUCCESS) return 3;
  for (int p = 0; p < programs; ++p) {
    std::vector<property::ProgramResult> results(static_cast<size_t>(threads));
    std::vector<std::thread> others;
    for (int t = 0; t < threads; ++t) {
      property::ProgramOptions options;
      options.seed = (seed * 1000 + static_cast<uint64_t>(p)) * 64 + static_cast<uint64_t>(t);
      options.operations = operations / static_cast<uint64_t>(threads * programs);
      options.devices = devices;
      options.varied = varied;
      options.exchange = threads > 1 ? &exchange : nullptr;
      options.captures = threads == 1 || (seed + static_cast<uint64_t>(p)) % 2 == 0;
      property::ProgramResult* result = &results[static_cast<size_t>(t)];
      if (t + 1 == threads) {
        *result = property::RunProgram(options);
      } else {
        others.emplace_back([options, result] { *result = property::RunProgram(options); });
      }
    }
    for (std::thread& other : others) other.join();
    for (const property::ProgramResult& result : results) {
      sum.counts.Add(result.counts);
      sum.wrong_answers |= result.wrong_answers;
    }
  }
  hotpack_stats stats = {};
  if (threads > 1 && property::Hotpack().get_stats != nullptr &&
      property::Hotpack().get_stats(&stats, sizeof(stats)) == 0) {
    sum.counts.requests = stats.requests;
    sum.counts.planned = stats.planned;
    sum.counts.displaced = stats.displaced;
    sum.counts.passed_through = stats.passed_through;
    sum.counts.plans = stats.reoptimizations + 1;
  }
  Print(sum.counts);
  return sum.wrong_answers ? 5 : 0;
}
