// Programs that keep the contract of PyTorch's caching allocator, through libhotpack_torch.so on the simulated device:
// torch_contract_client MODE. The device's checker is the judge.
//
// The contract: a block that is released without record_stream returns to the pool of its own stream. So other streams'
// work may still use it. Its own stream must come after that work before it uses memory requested later, not earlier.
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hotpack.h"
#include "preload/torch/hotpack_torch.h"
#include "tests/preload/client_api.h"
#include "tests/preload/torch_pools.h"

namespace {

constexpr ssize_t kBytes = 4 << 20;

void Use(CUstream stream, void* block) { OK(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(block), 0, kBytes, stream)); }

// Orders `after`'s later work after the work submitted to `before`.
void Wait(CUstream after, CUstream before) {
  CUevent event = nullptr;
  OK(cuEventCreate(&event, 0));
  OK(cuEventRecord(event, before));
  OK(cuStreamWaitEvent(after, event, 0));
  OK(cuEventDestroy(event));
}

CUstream NewStream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

void* Malloc(CUstream stream, int device = 0) { return hotpack_torch_malloc(kBytes, device, stream); }
void Free(void* block, CUstream stream, int device = 0) { hotpack_torch_free(block, kBytes, device, stream); }

void Step() {
  hotpack_step();
  CHECK(hotpack_wait_plan(10'000) == 1);
}

// Memory of `owner` is used by `user`, and `other` gets it. `owner` waits for `user` just before it asks again.
void PoolRounds(CUstream owner, CUstream user, CUstream other, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    Wait(owner, user);
    void* block = Malloc(owner);
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
    Free(block, owner);
    void* next = Malloc(other);
    Use(other, next);
    Free(next, other);
    Step();
  }
}

hotpack_stats Stats() {
  hotpack_stats stats = {};
  hotpack_get_stats(&stats, sizeof(stats));
  return stats;
}

// MODE pool: by a default stream. unseen: by a stream that hotpack does not know.
void Pool(bool unseen) {
  const CUstream owner = NewStream(), other = NewStream();
  PoolRounds(owner, unseen ? NewStream() : nullptr, other, 30);
  const hotpack_stats stats = Stats();
  printf("served %llu planned %llu crossed %llu\n", static_cast<unsigned long long>(stats.requests),
         static_cast<unsigned long long>(stats.planned), static_cast<unsigned long long>(stats.cross_stream));
}

// For a while there is one stream that hotpack knows of, and another one uses its memory. Then a second one asks.
void Late() {
  const CUstream user = NewStream();
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(Malloc(nullptr));
    Use(nullptr, blocks.back());
    Wait(user, nullptr);
    Use(user, blocks.back());
  }
  for (void* block : blocks) Free(block, nullptr);
  const CUstream other = NewStream();
  for (void*& block : blocks) {
    block = Malloc(other);
    Use(other, block);
  }
  for (void* block : blocks) Free(block, other);
}

// The device has no memory left except a pool's idle memory, and a stream that was never named still uses that.
void Reclaimed() {
  const CUstream owner = NewStream(), user = NewStream(), other = NewStream();
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) {
    blocks.push_back(Malloc(owner));
    Use(owner, blocks.back());
    Wait(user, owner);
    Use(user, blocks.back());
  }
  for (void* block : blocks) Free(block, owner);
  for (int i = 0; i < 14; ++i) Use(other, Malloc(other));
}

// The stream that used the block, or the one that owned it, has ended when another gets the memory.
void Ended() {
  const CUstream other = NewStream();
  for (int i = 0; i < 20; ++i) {
    const CUstream user = NewStream(), owner = NewStream();
    hotpack_except_stream(owner);
    void* block = Malloc(owner);
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
    Free(block, owner);
    OK(cuStreamDestroy(user));
    OK(cuStreamDestroy(owner));
    void* next = Malloc(other);
    Use(other, next);
    Free(next, other);
    // A stream with the handle of an ended one does not inherit that one's waits.
    const CUstream again = NewStream();
    hotpack_except_stream(again);
    void* last = Malloc(again);
    Use(again, last);
    Free(last, again);
    OK(cuStreamDestroy(again));
  }
}

// A stream has waited and ended. Another one, which has not, gets its handle.
void Returned() {
  const CUstream owner = NewStream(), user = NewStream();
  void* blocks[] = {Malloc(owner), Malloc(owner)};
  for (void* block : blocks) {
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
  }
  for (void* block : blocks) Free(block, owner);
  const CUstream first = NewStream();
  hotpack_except_stream(first);
  Use(first, Malloc(first));
  OK(cuStreamDestroy(first));
  CUstream second = nullptr;
  for (int i = 0; i < 1000 && second != first; ++i) second = NewStream();
  CHECK(second == first);
  Use(second, Malloc(second));
}

// A block is used by a stream that its release does not name, but that record_stream named.
void Recorded(CUstream owner) {
  const CUstream user = NewStream();
  void* fill = hotpack_torch_malloc(60 << 20, 0, owner);  // fills a small arena
  for (int i = 0; i < 20; ++i) {
    void* block = Malloc(owner);
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
    hotpack_torch_record_stream(block, user);
    Free(block, owner);
    void* next = Malloc(owner);
    Use(owner, next);
    Free(next, owner);
  }
  hotpack_torch_free(fill, 60 << 20, 0, owner);
}

// A block of the first device is read by work on the second one's default stream, whose handle is that of the first's.
void OtherDevice() {
  CUcontext contexts[2];
  for (int i = 0; i < 2; ++i) OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
  OK(cuCtxSetCurrent(contexts[0]));
  void* target = Malloc(nullptr, 1);
  for (int i = 0; i < 4; ++i) {
    void* block = Malloc(nullptr);
    Use(nullptr, block);
    CUevent ready = nullptr;
    OK(cuEventCreate(&ready, 0));
    OK(cuEventRecord(ready, nullptr));
    OK(cuCtxSetCurrent(contexts[1]));
    OK(cuStreamWaitEvent(nullptr, ready, 0));
    OK(cuMemcpyPeerAsync(reinterpret_cast<CUdeviceptr>(target), contexts[1], reinterpret_cast<CUdeviceptr>(block),
                         contexts[0], kBytes, nullptr));
    OK(cuCtxSetCurrent(contexts[0]));
    OK(cuEventDestroy(ready));
    hotpack_torch_record_stream(block, nullptr);
    Free(block, nullptr);
    void* next = Malloc(nullptr);
    Use(nullptr, next);
    Free(next, nullptr);
  }
}

// A library captures `stream` without PyTorch's knowledge; `work` is PyTorch's meanwhile. The graph must come out
// whole, and no other stream may be drawn into it.
void Captured(CUstream stream, CUstream bystander, const std::function<void()>& work) {
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  work();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(cuStreamIsCapturing(bystander, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  OK(cuStreamIsCapturing(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 3; ++i) OK(cuGraphLaunch(executable, stream));
  OK(cuStreamSynchronize(stream));
  OK(cuGraphExecDestroy(executable));
  OK(cuGraphDestroy(graph));
}

// The capturing stream asks for memory that another stream has released.
void CapturedRequest() {
  const CUstream stream = NewStream(), other = NewStream();
  for (int i = 0; i < 4; ++i) {
    void* mine = Malloc(stream);
    Use(stream, mine);
    Free(mine, stream);
    void* block = Malloc(other);
    Use(other, block);
    Free(block, other);
    std::vector<void*> kept;
    Captured(stream, other, [&] {
      for (int k = 0; k < 3; ++k) {
        kept.push_back(Malloc(stream));
        Use(stream, kept.back());
      }
    });
    for (void* each : kept) Free(each, stream);
  }
}

// A tensor of the capturing stream dies; another stream asks for memory.
void CapturedRelease() {
  const CUstream stream = NewStream(), other = NewStream();
  void* first = Malloc(other);
  Use(other, first);
  Free(first, other);
  for (int i = 0; i < 4; ++i) {
    void* block = Malloc(stream);
    Use(stream, block);
    void* own = Malloc(stream);
    Use(stream, own);
    std::vector<void*> kept;
    Captured(stream, other, [&] {
      Use(stream, own);
      Free(block, stream);
      for (int k = 0; k < 3; ++k) {
        kept.push_back(Malloc(other));
        Use(other, kept.back());
      }
    });
    for (void* each : kept) Free(each, other);
    Free(own, stream);
  }
}

// While one thread captures, another one's memory is used again and again.
void CapturedElsewhere() {
  constexpr ssize_t kLarge = 64 << 20;
  const CUstream stream = NewStream(), other = NewStream();
  void* block = Malloc(other);
  Use(other, block);
  Free(block, other);
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  hotpack_torch_begin_allocate_to_pool(0, {1, 0}, [stream](CUstream asked) { return asked == stream; });
  OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  void* captured = Malloc(stream);
  Use(stream, captured);
  std::thread([&] {
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < 400; ++i) {
      void* each = hotpack_torch_malloc(kLarge, 0, other);
      Use(other, each);
      hotpack_torch_free(each, kLarge, 0, other);
    }
  }).join();
  CUgraph graph = nullptr;
  OK(cuStreamEndCapture(stream, &graph));
  hotpack_torch_end_allocate_to_pool(0, {1, 0});
  hotpack_torch_stats stats = {};
  CHECK(hotpack_torch_get_stats(0, &stats, sizeof(stats)) == 0);
  // A plan that became ready meanwhile would need kLarge of new pages: none move while a stream captures.
  CHECK(stats.reserved_bytes.peak <= kLarge + (16u << 20));
  Free(captured, stream);
  OK(cuGraphDestroy(graph));
  hotpack_torch_release_pool(0, {1, 0});
}

// Ends the capture on `stream`. It has one node, and `other` was not drawn into it.
void EndCaptureAlone(CUstream stream, CUstream other) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  OK(cuStreamIsCapturing(other, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraph graph = nullptr;
  size_t nodes = 0;
  OK(cuStreamEndCapture(stream, &graph));
  OK(cuGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 1);
  OK(cuGraphDestroy(graph));
}

// One thread begins a capture on a stream while another one releases a block that the stream has used. SIMGPU_DELAY
// makes both take their time.
void CapturedMeanwhile() {
  constexpr int kRounds = 400;
  const CUstream owner = NewStream(), user = NewStream();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  void* const captured = Malloc(user);
  void* block = nullptr;
  std::atomic<int> released{0}, captures{0};
  std::thread releasing([&] {
    OK(cuCtxSetCurrent(context));
    for (int i = 0; i < kRounds; ++i) {
      while (captures.load() <= i) std::this_thread::yield();
      Free(block, owner);
      released.store(i + 1);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    block = Malloc(owner);
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
    hotpack_torch_record_stream(block, user);
    captures.store(i + 1);
    std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
    OK(cuStreamBeginCapture(user, CU_STREAM_CAPTURE_MODE_RELAXED));
    Use(user, captured);
    while (released.load() <= i) std::this_thread::yield();
    EndCaptureAlone(user, owner);
  }
  releasing.join();
  Free(captured, user);
}

// A block waits for the end of a capture on its user's stream. That stream is captured again, announced, while another
// thread's requests and releases give the block back.
void CapturedAgain() {
  constexpr int kRounds = 400;
  const CUstream owner = NewStream(), user = NewStream(), other = NewStream();
  CUcontext context = nullptr;
  OK(cuCtxGetCurrent(&context));
  void* const captured = Malloc(user);
  std::atomic<bool> over{false};
  std::thread asking([&] {
    OK(cuCtxSetCurrent(context));
    while (!over.load()) Free(Malloc(other), other);
  });
  for (int i = 0; i < kRounds; ++i) {
    void* const block = Malloc(owner);
    Use(owner, block);
    Wait(user, owner);
    Use(user, block);
    hotpack_torch_record_stream(block, user);
    for (const bool releases : {true, false}) {
      hotpack_torch_begin_allocate_to_pool(0, {1, 0}, [user](CUstream asked) { return asked == user; });
      std::this_thread::sleep_for(std::chrono::microseconds(i % 40 * 10));  // releases begin in between
      OK(cuStreamBeginCapture(user, CU_STREAM_CAPTURE_MODE_RELAXED));
      Use(user, captured);
      if (releases) Free(block, owner);
      EndCaptureAlone(user, owner);
      hotpack_torch_end_allocate_to_pool(0, {1, 0});
    }
  }
  over.store(true);
  asking.join();
  Free(captured, user);
  hotpack_torch_release_pool(0, {1, 0});
}

// Blocks in managed memory (HOTPACK_OVERCOMMIT) have no place in the arena.
void Overcommit() {
  const CUstream other = NewStream();
  std::vector<std::pair<void*, CUstream>> blocks;
  for (int i = 0; i < 24; ++i) {
    const CUstream stream = i % 2 == 0 ? nullptr : other;
    blocks.emplace_back(Malloc(stream), stream);
    Use(stream, blocks.back().first);
    CUmemoryPool pool = nullptr;
    cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                          reinterpret_cast<CUdeviceptr>(blocks.back().first));
  }
  for (const auto& [block, stream] : blocks) Free(block, stream);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 2);
  const std::string mode = argv[1];
  OK(cuInit(0));
  hotpack_torch_init(2);
  CUcontext context = nullptr;
  OK(cuDevicePrimaryCtxRetain(&context, 0));
  OK(cuCtxSetCurrent(context));
  if (mode == "pool" || mode == "unseen") Pool(mode == "unseen");
  if (mode == "late") Late();
  if (mode == "reclaimed") Reclaimed();
  if (mode == "ended") Ended();
  if (mode == "returned") Returned();
  if (mode == "recorded") Recorded(nullptr);
  if (mode == "recorded_on_stream") Recorded(NewStream());
  if (mode == "other_device") OtherDevice();
  if (mode == "captured_request") CapturedRequest();
  if (mode == "captured_release") CapturedRelease();
  if (mode == "captured_elsewhere") CapturedElsewhere();
  if (mode == "captured_meanwhile") CapturedMeanwhile();
  if (mode == "captured_again") CapturedAgain();
  if (mode == "overcommit") Overcommit();
  OK(cuCtxSynchronize());
  printf("done\n");
  return 0;
}
