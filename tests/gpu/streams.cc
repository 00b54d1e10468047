// Memory passes from one stream to another while work is running. The former owner keeps writing one value for some
// milliseconds. Its block is released, and the next owner allocates one of the same size (often the same memory),
// writes another value and watches it. Reuse without order would show as the former value.
//
//   stream A  [ keep writing old ........ ]
//   host            free X, allocate Y
//   stream B                               [ write new ][ watch ...... ]   must begin after A's work if Y is X's memory
#include <algorithm>
#include <memory>

#include "tests/gpu/probe.h"
#include "tests/gpu/tally.h"

namespace hotpack::gpu {
namespace {

constexpr size_t kSizes[] = {4 * kKiB, kMiB, 8 * kMiB};

class Reuse {
 public:
  Reuse(const Probe& probe, std::string name) : probe_(probe), name_("streams." + std::move(name)) {}
  ~Reuse() { cudaDeviceSynchronize(); }

  void* StartOld(Way way, size_t bytes, cudaStream_t stream) {
    void* block = nullptr;
    HOTPACK_NEED(Allocate(way, bytes, stream, &block));
    KeepWriting(block, bytes, stream);
    old_.push_back(block);
    return block;
  }

  void KeepWriting(void* block, size_t bytes, cudaStream_t stream) {
    HOTPACK_NEED(LegacyKernels().keep_writing(static_cast<uint32_t*>(block), bytes / 4, WordOf(kOldByte),
                                              probe_.Nanoseconds(6), stream));
  }

  void StartNew(Way way, size_t bytes, cudaStream_t stream) {
    void* block = nullptr;
    HOTPACK_NEED(Allocate(way, bytes, stream, &block));
    HOTPACK_NEED(cudaMemsetAsync(block, kNewByte, bytes, stream));
    HOTPACK_NEED(LegacyKernels().watch(static_cast<const uint32_t*>(block), bytes / 4, WordOf(kNewByte),
                                       probe_.Nanoseconds(6), tally_.wrong(), stream));
    new_.push_back({block, bytes, way, stream});
  }

  // Waits for all work, looks at the new blocks and gives them back.
  void EndRound() {
    HOTPACK_NEED(cudaDeviceSynchronize());
    for (const New& block : new_) {
      tally_.Block(block.address, block.bytes, std::find(old_.begin(), old_.end(), block.address) != old_.end());
    }
    for (const New& block : new_) HOTPACK_NEED(Release(block.way, block.address, block.stream));
    HOTPACK_NEED(cudaDeviceSynchronize());
    old_.clear();
    new_.clear();
  }

  void Judge() { tally_.Judge(probe_, name_); }

 private:
  struct New {
    void* address;
    size_t bytes;
    Way way;
    cudaStream_t stream;
  };
  const Probe& probe_;
  std::string name_;
  Tally tally_;
  std::vector<void*> old_;
  std::vector<New> new_;
};

// Must come first in the process: no stream has been made when the blocks are given back.
void FirstStreamAfterRelease(const Probe& probe) {
  Reuse reuse(probe, "first_stream_after_release");
  void* plain = reuse.StartOld(Way::kMalloc, kMiB, nullptr);
  void* ordered = reuse.StartOld(Way::kAsync, kMiB, nullptr);
  HOTPACK_NEED(Release(Way::kAsync, ordered, nullptr));
  HOTPACK_NEED(Release(Way::kMalloc, plain, nullptr));
  const Stream stream;
  reuse.StartNew(Way::kMalloc, kMiB, stream);
  reuse.StartNew(Way::kAsync, kMiB, stream);
  reuse.EndRound();
  reuse.Judge();
}

// Each stream's block goes to the next stream, all at once.
void Ring(const Probe& probe, const std::string& name, Way way, const std::vector<cudaStream_t>& streams) {
  Reuse reuse(probe, name + "." + WayName(way));
  for (int round = 0; round < probe.Rounds(4); ++round) {
    for (const size_t bytes : kSizes) {
      std::vector<void*> blocks;
      for (const cudaStream_t stream : streams) blocks.push_back(reuse.StartOld(way, bytes, stream));
      for (size_t i = 0; i < streams.size(); ++i) HOTPACK_NEED(Release(way, blocks[i], streams[i]));
      for (size_t i = 0; i < streams.size(); ++i) reuse.StartNew(way, bytes, streams[(i + 1) % streams.size()]);
      reuse.EndRound();
    }
  }
  reuse.Judge();
}

void AfterEvent(cudaStream_t before, cudaStream_t after) {
  cudaEvent_t event = nullptr;
  HOTPACK_NEED(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  HOTPACK_NEED(cudaEventRecord(event, before));
  HOTPACK_NEED(cudaStreamWaitEvent(after, event, 0));
  HOTPACK_NEED(cudaEventDestroy(event));  // its resources go when it has been recorded
}

// The block is used on another stream than its own, joined by events, and given back on its own.
void EventOrdered(const Probe& probe, Way way) {
  Reuse reuse(probe, std::string("event_ordered.") + WayName(way));
  const Stream owner, user, next;
  for (int round = 0; round < probe.Rounds(4); ++round) {
    for (const size_t bytes : kSizes) {
      void* block = reuse.StartOld(way, bytes, owner);
      AfterEvent(owner, user);
      reuse.KeepWriting(block, bytes, user);
      AfterEvent(user, owner);
      HOTPACK_NEED(Release(way, block, owner));
      reuse.StartNew(way, bytes, next);
      reuse.EndRound();
    }
  }
  reuse.Judge();
}

// The stream is destroyed while its work is running; the driver lets that work finish (cudaStreamDestroy).
void StreamDestroyed(const Probe& probe, Way way) {
  Reuse reuse(probe, std::string("stream_destroyed.") + WayName(way));
  const Stream next;
  for (int round = 0; round < probe.Rounds(4); ++round) {
    for (const size_t bytes : kSizes) {
      Stream owner;
      void* block = reuse.StartOld(way, bytes, owner);
      if (way == Way::kAsync) HOTPACK_NEED(Release(way, block, owner));
      HOTPACK_NEED(owner.Destroy());
      if (way == Way::kMalloc) HOTPACK_NEED(Release(way, block, nullptr));
      reuse.StartNew(way, bytes, next);
      reuse.EndRound();
    }
  }
  reuse.Judge();
}

}  // namespace

void RunStreams(Probe& probe) {
  FirstStreamAfterRelease(probe);
  const Stream a, b, c, d, blocking(cudaStreamDefault);
  for (const Way way : {Way::kMalloc, Way::kAsync}) {
    Ring(probe, "two", way, {a, b});
    Ring(probe, "four", way, {a, b, c, d});
    Ring(probe, "with_default", way, {a, nullptr});  // both ways round: the legacy stream does not wait for a
    Ring(probe, "with_blocking", way, {a, blocking, nullptr});
    EventOrdered(probe, way);
    StreamDestroyed(probe, way);
  }
}

}  // namespace hotpack::gpu
