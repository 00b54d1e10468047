#include "bench/request_player.h"

#include <algorithm>
#include <chrono>

#include "runtime/include/hotpack.h"

namespace hotpack::bench {
namespace {

constexpr uint64_t kPairsPerSample = 256;  // so that reading the clock is negligible
constexpr int kWaitMs = 1000;              // most wait for a plan, after an iteration of the warm-up
constexpr int kCleanIterations = 3;        // consecutive iterations served entirely by script

double Now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Returns false if hotpack is not in this process.
bool Stats(hotpack_stats* stats) {
  *stats = {};
  return hotpack_get_stats(stats, sizeof *stats) == 0 && stats->requests > 0;
}

}  // namespace

bool RequestPlayer::Fail(const char* call, int code, uint64_t bytes) {
  error_ = std::string(call) + " of " + std::to_string(bytes) + " bytes: error " + std::to_string(code);
  return false;
}

template <bool kTouch>
bool RequestPlayer::PlayIteration() {
  const std::vector<RequestCall>& calls = sequence_.forms[form_];
  form_ = form_ + 1 == sequence_.forms.size() ? 0 : form_ + 1;
  for (const RequestCall& call : calls) {
    void*& pointer = pointers_[call.slot];
    if (call.bytes != 0) {
      const int code = allocator_.allocate(&pointer, call.bytes);
      if (code != 0) [[unlikely]]
        return Fail("a request", code, call.bytes);
      if constexpr (kTouch) {
        const int error = device_.Touch(pointer, call.bytes);
        if (error != 0) return Fail("the first use", error, call.bytes);
      }
    } else if (pointer != nullptr) [[likely]] {
      const int code = allocator_.release(pointer);
      if (code != 0) [[unlikely]]
        return Fail("a release", code, call.bytes);
      pointer = nullptr;
    }
  }
  return true;
}

bool RequestPlayer::WarmUp(const TimingOptions& options, Served* served) {
  int clean = 0;
  hotpack_stats before = {}, after = {};
  for (uint64_t i = 0; i < 10 * options.warm_up; ++i) {
    Stats(&before);
    if (!PlayIteration<true>()) return false;
    const int error = device_.Synchronize();
    if (error != 0) return Fail("the wait at an iteration's end", error, 0);
    served->warm_up = i + 1;
    served->present = Stats(&after);
    if (served->present) {
      hotpack_wait_plan(kWaitMs);
      clean = after.planned - before.planned == sequence_.pairs ? clean + 1 : 0;
      served->by_script = clean >= kCleanIterations;
    }
    if (i + 1 >= options.warm_up && (served->by_script || !served->present)) break;
  }
  return true;
}

std::vector<double> RequestPlayer::Time(const TimingOptions& options, Served* served) {
  if (!WarmUp(options, served)) return {};
  const uint64_t together = std::max<uint64_t>(1, (kPairsPerSample + sequence_.pairs - 1) / sequence_.pairs);
  hotpack_stats before = {}, after = {};
  Stats(&before);
  std::vector<double> samples;
  samples.reserve(options.iterations / together + 1);
  for (uint64_t done = 0; done < options.iterations; done += together) {
    bool played = true;
    const double begin = Now();
    for (uint64_t i = 0; i < together && played; ++i) {
      played = options.launches ? PlayIteration<true>() : PlayIteration<false>();
    }
    const double end = Now();
    if (!played) return {};
    samples.push_back((end - begin) / static_cast<double>(together * sequence_.pairs));
    // Outside of the measured time. Without it the host would wait for a long queue of launches at some point.
    if (options.launches && device_.Synchronize() != 0) return {};
  }
  Stats(&after);
  served->requests = after.requests - before.requests;
  served->planned = after.planned - before.planned;
  return samples;
}

void RequestPlayer::ReleaseAll() {
  for (void*& pointer : pointers_) {
    if (pointer != nullptr) allocator_.release(pointer);
    pointer = nullptr;
  }
}

}  // namespace hotpack::bench
