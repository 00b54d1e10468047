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
  uint64_t operations = 0;  // things done: an allocation, a release, a launch, a copy, an order between two streams, …
  uint64_t allocations = 0, releases = 0, uses = 0, edges = 0, streams = 0, captures = 0, launches = 0;  // … of these
  uint64_t refused = 0;  // driver calls that failed
  uint64_t out_of_memory = 0;
  // What hotpack says of the contexts that were destroyed.
  uint64_t requests = 0, planned = 0, displaced = 0, passed_through = 0, plans = 0;

  void Add(const Counts& other);
};

struct Settings {
  int workers = 1;  // threads that take turns
  int devices = 1;
  bool shares_process = false;  // other jobs run at the same time: nothing is done that would disturb their captures
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

  // The thread that acts from here on is worker `worker`. Must be told before anything else on that thread.
  void Act(int worker) { worker_ = worker; }

  bool AddContext(bool primary, int device);  // false: the driver refused
  void DestroyContext(int context);           // with all that is in it
  int contexts() const { return static_cast<int>(contexts_.size()); }
  bool ContextAlive(int context) const { return contexts_[context].handle != nullptr; }
  int SomeContext();  // a living one; kNone: there is none

  int AddStream(int context);  // kNone: refused
  void DestroyStream(int stream);
  // A stream of the context that the acting worker may give work to; `hint` chooses, the same choice for the same hint
  // while the streams stay the same. kNone: none now.
  int SomeStream(int context, uint64_t hint);

  // A block's number, or kNone (refused; or not allowed now). `stream` may be kNone for the two that name none.
  int Allocate(How how, int context, int stream, uint64_t bytes);
  bool Live(int block) const { return block != kNone && blocks_[block].address != 0; }
  // False: the block is still live (not allowed now, or refused).
  bool Release(int block, int stream, bool async);
  int BlockContext(int block) const { return blocks_[block].context; }
  // Memory of cuMemAlloc changes hands: what the one job gives away, whatever work is pending on it, another one frees.
  // 0: not a block that can be given away.
  CUdeviceptr GiveAway(int block);
  bool FreeForeign(int context, CUdeviceptr address);

  // Work on up to four blocks: a launch, a memset, a copy, a library's call.
  void Use(const int* blocks, int count, int stream);
  void Touch(int block, int stream) { Use(&block, 1, stream); }
  bool Edge(int from, int to);  // `to` waits for what `from` has to do now
  void SynchronizeStream(int stream);
  void SynchronizeContext(int context);
  void Ask();  // questions that change nothing: free memory, the range of a block, whether an event has come

  // Captures: job_graphs.cc.
  bool BeginCapture(int stream);
  void CaptureStep();  // one more node of a capture that the acting worker has begun
  void EndCapture();   // the acting worker's oldest
  bool Capturing() const { return !captures_.empty(); }
  bool CapturingOn(int context) const;
  void LaunchGraph(int stream);
  void DestroyGraph();

  void ReleaseAll();  // every block that can be
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
    std::vector<CUevent> events;  // made before, to be used again
    int captures = 0;
    bool stuck = false;  // a capture that could not be ended
  };
  enum class Kind : uint8_t { kLegacy, kPerThread, kUser };
  struct Stream {
    CUstream handle = nullptr;
    int context = 0;
    Kind kind = Kind::kUser;
    int worker = kNone;  // whose per-thread stream
    bool alive = true;
    Capture* capture = nullptr;
  };
  struct Block {
    CUdeviceptr address = 0;  // 0: released
    uint64_t bytes = 0;
    How how = How::kPlain;
    int context = 0;
    int home = kNone;          // allocated in this stream's order, and the host does not know that it was; else kNone
    std::vector<int> ordered;  // streams that come after the allocation, besides `home`
    std::vector<int> uses;     // streams with uses that the host does not know to be finished
    bool lost_use = false;     // … and one of a stream that is no more
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

  // True: success. Counts what failed.
  bool Ok(CUresult result);
  void NoteStats(int sign);
  bool Enter(int context);  // makes it current on the acting worker
  bool UnsafeCallAllowed() const;
  bool Usable(int stream) const;  // the acting worker may give it work now
  bool ContextMayWait(int context) const;
  void Seen(int stream);                // the host knows that all its work so far is finished
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
