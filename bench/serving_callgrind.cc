// Serves exactly PAIRS pairs by script inside ServePairs(), for an instruction count by callgrind (README.md here).
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "bench/serving_job.h"

// Has C linkage, so that callgrind's --toggle-collect finds it by its plain name.
extern "C" __attribute__((noinline)) bool ServePairs(hotpack::bench::ServingJob* job, int64_t steps) {
  for (int64_t step = 0; step < steps; ++step) {
    if (!job->PlayStep()) return false;
  }
  return true;
}

int main(int argc, char** argv) {
  constexpr int kLayers = 64;
  hotpack::bench::ServingJob job(kLayers);
  char* end = nullptr;
  const int64_t pairs = argc == 2 ? std::strtoll(argv[1], &end, 10) : 0;
  if (argc != 2 || *end != '\0' || pairs <= 0 || pairs % job.PairsPerStep() != 0) {
    std::fprintf(stderr, "serving_callgrind: give the number of pairs, a multiple of %lld\n",
                 static_cast<long long>(job.PairsPerStep()));
    return 2;
  }
  if (!job.WarmUp() || !ServePairs(&job, pairs / job.PairsPerStep()) || !job.AllPlanned()) {
    std::fprintf(stderr, "serving_callgrind: the step was not served by script\n");
    return 1;
  }
  std::printf("%lld pairs served by script\n", static_cast<long long>(pairs));
  return 0;
}
