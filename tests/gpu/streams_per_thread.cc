// As streams.cc, with the default streams of two threads: stream 0 is each thread's own in this unit.
#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "this unit is compiled for per-thread default streams"
#endif
#include <future>

#include "tests/gpu/probe.h"
#include "tests/gpu/tally.h"

namespace hotpack::gpu {
namespace {

constexpr cudaStream_t kOwn = nullptr;

// Not the functions of probe.cc: for those, stream 0 is the legacy one.
void* Ask(Way way, size_t bytes, cudaStream_t stream) {
  void* block = nullptr;
  HOTPACK_NEED(way == Way::kMalloc ? cudaMalloc(&block, bytes) : cudaMallocAsync(&block, bytes, stream));
  return block;
}

void GiveBack(Way way, void* block, cudaStream_t stream) {
  HOTPACK_NEED(way == Way::kMalloc ? cudaFree(block) : cudaFreeAsync(block, stream));
}

void* UseAndGiveBack(const Probe& probe, Way way, size_t bytes, cudaStream_t stream) {
  void* block = Ask(way, bytes, stream);
  HOTPACK_NEED(PerThreadKernels().keep_writing(static_cast<uint32_t*>(block), bytes / 4, WordOf(kOldByte),
                                               probe.Nanoseconds(6), stream));
  GiveBack(way, block, stream);
  return block;
}

// Asks, writes and watches on the calling thread's stream, and waits for it.
void TakeOver(const Probe& probe, Way way, size_t bytes, const void* old, Tally* tally) {
  void* block = Ask(way, bytes, kOwn);
  HOTPACK_NEED(cudaMemsetAsync(block, kNewByte, bytes, kOwn));
  HOTPACK_NEED(PerThreadKernels().watch(static_cast<const uint32_t*>(block), bytes / 4, WordOf(kNewByte),
                                        probe.Nanoseconds(6), tally->wrong(), kOwn));
  HOTPACK_NEED(cudaStreamSynchronize(kOwn));
  HOTPACK_NEED(cudaDeviceSynchronize());  // the former owner may still be writing, if the order is wrong
  tally->Block(block, bytes, block == old);
  GiveBack(way, block, kOwn);
}

// Must come first: no per-thread stream has been used when the block is given back.
void FirstUseAfterRelease(const Probe& probe, Way way) {
  Tally tally;
  const void* old = UseAndGiveBack(probe, way, kMiB, cudaStreamLegacy);
  TakeOver(probe, way, kMiB, old, &tally);
  tally.Judge(probe, std::string("streams_per_thread.first_use_after_release.") + WayName(way));
}

void ToOtherThread(const Probe& probe, Way way) {
  Tally tally;
  for (int round = 0; round < probe.Rounds(6); ++round) {
    const void* old = UseAndGiveBack(probe, way, kMiB, kOwn);
    std::async(std::launch::async, [&] {
      HOTPACK_NEED(cudaSetDevice(0));
      TakeOver(probe, way, kMiB, old, &tally);
    }).get();
  }
  tally.Judge(probe, std::string("streams_per_thread.to_other_thread.") + WayName(way));
}

// The thread that gave back is still there (its stream too) while the main thread takes over.
void FromOtherThread(const Probe& probe, Way way) {
  Tally tally;
  for (int round = 0; round < probe.Rounds(6); ++round) {
    std::promise<const void*> given;
    std::promise<void> over;
    std::future<void> thread = std::async(std::launch::async, [&] {
      try {
        HOTPACK_NEED(cudaSetDevice(0));
        given.set_value(UseAndGiveBack(probe, way, kMiB, kOwn));
      } catch (...) {
        given.set_exception(std::current_exception());
      }
      over.get_future().wait();
    });
    try {
      TakeOver(probe, way, kMiB, given.get_future().get(), &tally);
    } catch (...) {
      over.set_value();
      throw;
    }
    over.set_value();
    thread.get();
  }
  tally.Judge(probe, std::string("streams_per_thread.from_other_thread.") + WayName(way));
}

}  // namespace

void RunStreamsPerThread(Probe& probe) {
  Probe::WarmUp(PerThreadKernels(), cudaStreamLegacy);
  // Only the first of the two is before any use; the second sees that the state in between is right.
  FirstUseAfterRelease(probe, Way::kMalloc);
  FirstUseAfterRelease(probe, Way::kAsync);
  for (const Way way : {Way::kMalloc, Way::kAsync}) {
    ToOtherThread(probe, way);
    FromOtherThread(probe, way);
  }
}

}  // namespace hotpack::gpu
