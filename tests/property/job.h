// A CUDA program that is correct by construction. Before each operation it establishes the order that CUDA requires of
// a program, and it omits incorrect operations. Its caller need not know the rules.
//
// The rules (cuda.h; CUDA programming guide, "Stream ordered memory allocator", "Stream capture"):
//  1. Memory of cuMemAlloc may be used at once on every stream of its context, later streams included. cuMemFree may
//     free it with work on it pending (the driver waits). It is never used after that.
//  2. Memory of cuMemAllocAsync(s) is used on another stream only after that stream waited for s. cuMemFreeAsync(s)
//     comes after every use, by events. cuMemFree of such memory comes only after the host has seen all its uses end.
//  3. Memory that a graph names lives until the last launch of the graph.
//  4. During captures it makes no call that they forbid, and submits no work to the legacy stream.
// It establishes no other order: the rest is hotpack's task.
//
// Every driver call may fail, and a failed call has no effect. The program does not rely on an order that failed, and a
// block whose release failed stays live.
#pragma once

#define __CUDA_API_VERSION_INTERNAL 1  // every variant under its exact name (_v2, _ptsz)
#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "tests/property/random.h"

namespace property {

struct Counts {
  uint64_t operations = 0;  // actions: an allocation, a release, a launch, a copy, an order between two streams, …
  uint64_t allocations = 0, releases = 0, uses = 0, edges = 0, streams = 0, captures = 0, launches = 0;  // … of these
  uint64_t refused = 0;  // driver calls that failed
  uint64_t out_of_memory = 0;
  // hotpack's figures of the destroyed contexts.
  uint64_t requests = 0, planned = 0, displaced = 0, passed_through = 0, plans = 0;

  void Add(const Counts& other);
};

struct Settings {
  int workers = 1;  // threads that take turns
  int devices = 1;
  bool shares_process = false;  // other jobs run at the same time: it does nothing that would disturb their captures
  bool per_thread_streams = true;
  bool legacy_stream = true;
  bool captures = true;
  int bytes_log2 = 23;  // largest block
};

class Job {
 public:
  enum class How : uint8_t { kPlain, kPitch, kAsync, kAsyncPerThread, kFromPool, kHotpack };
  static constexpr int kNone = -1;

  Job(const Settings& settings, Random* random);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  // Selects worker `worker` as the acting thread. Call it before anything else on that thread.
  void Act(int worker) { worker_ = worker; }

  bool AddContext(bool primary, int device);  // false: the driver refused
  void DestroyContext(int context);           // with all that is in it
  int contexts() const { return static_cast<int>(contexts_.size()); }
  bool ContextAlive(int context) const { return contexts_[context].handle != nullptr; }
  int SomeContext();  // an existing one; kNone: there is none

  int AddStream(int context);  // kNone: refused
  void DestroyStream(int stream);
  // Returns a stream of the context to which the acting worker may submit work, chosen by `hint`. The same hint gives
  // the same choice while the streams stay the same. kNone: none now.
  int SomeStream(int context, uint64_t hint);

  // Returns a block's number, or kNone (refused, or not allowed now). `stream` may be kNone for the two ways that take
  // none.
  int Allocate(How how, int context, int stream, uint64_t bytes);
  bool Live(int block) const { return block != kNone && blocks_[block].address != 0; }
  // Returns false if the block is still live (not allowed now, or refused).
  bool Release(int block, int stream, bool async);
  int BlockContext(int block) const { return blocks_[block].context; }
  // Passes a block of cuMemAlloc to another job, which frees it, with any work pending on it. Returns 0 if the block
  // cannot be passed.
  CUdeviceptr GiveAway(int block);
  bool FreeForeign(int context, CUdeviceptr address);

  // Work on up to four blocks: a launch, a memset, a copy, a library's call.
  void Use(const int* blocks, int count, int stream);
  void Touch(int block, int stream) { Use(&block, 1, stream); }
  bool Edge(int from, int to);  // `to` waits for all work of `from` so far
  void SynchronizeStream(int stream);
  void SynchronizeContext(int context);
  void Ask();  // queries without effect: free memory, the range of a block, whether an event has completed

  // Captures: job_graphs.cc.
  bool BeginCapture(int stream);
  void CaptureStep();  // one more node of a capture that the acting worker has begun
  void EndCapture();   // the acting worker's oldest
  bool Capturing() const { return !captures_.empty(); }
  bool CapturingOn(int context) const;
  void LaunchGraph(int stream);
  void DestroyGraph();

  void ReleaseAll();  // every block that it may release
  const Counts& counts() const { return counts_; }
  bool wrong_answers() const { return wrong_answers_; }
  int live_blocks() const { return static_cast<int>(live_.size()); }
  int SomeBlock() { return live_.empty() ? kNone : live_[random_->Below(live_.size())]; }

 private:
  struct Capture;
  struct Graph;
  struct Context {
    CUcontext handle = nullptr;
    CUdevice device = 0;
    bool primary = false;
    CUfunction kernel = nullptr;
    std::vector<CUevent> events;  // for reuse
    int captures = 0;
    bool stuck = false;  // a capture that could not be ended
  };
  enum class Kind : uint8_t { kLegacy, kPerThread, kUser };
  struct Stream {
    CUstream handle = nullptr;
    int context = 0;
    Kind kind = Kind::kUser;
    int worker = kNone;  // the worker whose per-thread stream it is
    bool alive = true;
    Capture* capture = nullptr;
  };
  struct Block {
    CUdeviceptr address = 0;  // 0: released
    uint64_t bytes = 0;
    How how = How::kPlain;
    int context = 0;
    int home = kNone;          // allocated in this stream's order, unknown to the host; else kNone
    std::vector<int> ordered;  // other streams than `home` that come after the allocation
    std::vector<int> uses;     // streams with uses that may still run, as far as the host knows
    bool lost_use = false;     // … and one of a destroyed stream
    int pins = 0;              // graphs that name it
  };
  struct Capture {
    int stream = kNone, context = 0, worker = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    std::vector<int> pinned;
    bool has_memory = false;
  };
  struct Graph {
    int context = 0;
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    std::vector<int> pinned;
    std::vector<int> streams;  // launched on
    bool has_memory = false;
  };

  // Returns whether the call succeeded. Counts failures.
  bool Ok(CUresult result);
  void NoteStats(int sign);
  bool Enter(int context);  // makes it current on the acting worker
  bool UnsafeCallAllowed() const;
  bool Usable(int stream) const;  // whether the acting worker may submit work to it now
  bool ContextMayWait(int context) const;
  void Seen(int stream);                // the host knows that all its work so far has ended
  bool Visible(int block, int stream);  // makes the stream come after the block's allocation
  bool OrderUses(int block, int stream);
  void NoteUse(int block, int stream);
  bool Submit(const int* blocks, int count, int stream, bool nodes);
  CUevent TakeEvent(int context);
  void ReturnEvent(int context, CUevent event);
  void Forget(int block);
  int NewBlock(const Block& block);
  bool FreeAsync(const Block& block, const Stream& stream);
  void DestroyGraphAt(size_t index);
  void Unpin(const std::vector<int>& blocks);

  Settings settings_;
  Random* random_;
  int worker_ = 0;
  Counts counts_;
  bool wrong_answers_ = false;
  std::vector<Context> contexts_;
  std::vector<Stream> streams_;
  std::vector<Block> blocks_;
  std::vector<int> live_;
  std::vector<int> free_numbers_;
  std::vector<CUcontext> current_;  // of each worker
  std::vector<std::unique_ptr<Capture>> captures_;
  std::vector<Graph> graphs_;
};

}  // namespace property
