// Plays a drawn program so that it keeps the contract of PyTorch's caching allocator, and no more than that:
//
//   1. A block requested on stream S is used on another stream only after that stream waited for S.
//   2. It is released when all its uses have been submitted. The allocator orders the uses on streams that it was told
//      of (record_stream) from then on. All other uses are ordered by S: memory requested on S later is used, on any
//      stream, only after them. Until then no stream waits for them.
//   3. Blocks that a graph names live as long as the graph is launched. A stream that the allocator knows lives as long
//      as the blocks that name it. It ends after a wait for all work that its pool must follow.
//
//   s1   ask X ─use─●                ask Y ··(only now: waits for s0)──○─use Y
//   s0              ○──use X──────────────────────────────────────────●
//   host                      release X
//
// Waits come as late as possible, sometimes for an event recorded long before, sometimes for one recorded now.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/property/pool_contract_allocator.h"
#include "tests/property/pool_contract_draw.h"
#include "tests/property/pool_contract_order.h"
#include "tests/property/workers.h"

namespace property {

struct ContractCounts {
  uint64_t operations = 0, requests = 0, releases = 0, uses = 0, waits = 0, captures = 0, launches = 0;
  uint64_t untold = 0;   // releases with uses on other streams for which the owner had not waited
  uint64_t told = 0;     // releases with uses on other streams of which the allocator knew
  uint64_t owed = 0;     // waits that the contract requires before memory is reused
  uint64_t skipped = 0;  // operations that were wrong or impossible
  uint64_t refused = 0;  // requests without memory
  uint64_t streams_ended = 0;
};

class ContractPlayer {
 public:
  // `contexts`: the primary context of each device. `drop`: the number of the required wait that is left out, from 1;
  // 0: none. `alone`: no other player acts at the same time, so a report comes from the last operation.
  ContractPlayer(const Drawn& drawn, Allocator* allocator, const std::vector<CUcontext>& contexts, uint64_t drop,
                 bool alone);
  ~ContractPlayer();
  ContractPlayer(const ContractPlayer&) = delete;
  ContractPlayer& operator=(const ContractPlayer&) = delete;

  // Plays all operations, or stops at the first fault.
  void Run();

  // Returns a class of faults, the same for the same reason; empty: none.
  const std::string& fault() const { return fault_; }
  const std::string& detail() const { return detail_; }
  const ContractCounts& counts() const { return counts_; }

 private:
  static constexpr int kNone = -1;
  struct Stamped {  // an event, and the moment before it
    CUevent event = nullptr;
    Moment moment{};
  };
  struct Stream {
    CUstream handle = nullptr;
    int role = 0, device = 0;
    bool alive = true, owned = false;
    bool told_of = false;  // the allocator knows its handle
    // Recorded before. The last one of an ended stream covers all its work.
    std::vector<Stamped> events;
    Moment owed{};  // memory requested here must come after this
  };
  struct Block {
    void* pointer = nullptr;  // null: none
    uint64_t bytes = 0;
    int stream = kNone;  // the stream of the request
    uint64_t serial = 0;
    bool pool = false;      // of a graph
    bool captured = false;  // requested during a capture
    Moment before{};        // its uses come after this
    uint32_t given = 0;     // operation of `stream`
    Moment uses{};
    uint32_t told = 0;  // bit set of streams
  };
  struct Past {  // a released block
    uint64_t address, bytes, serial;
    int stream;
    bool captured;
    Moment uses;
    uint32_t told;
  };
  struct Named {
    int slot;
    uint64_t serial;
    bool pool;  // the graph's own memory, which may be released
  };
  struct Graph {
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    int device = 0;
    bool announced = false;
    PoolId id;
    std::vector<Named> names;  // the blocks that it uses
    Moment last{};             // its latest launch
  };
  struct Capture {
    int stream = kNone, thread = 0;
    size_t nodes = 0;
    Graph graph;
  };

  // pool_contract_player.cc
  void Step(const Op& op);
  bool Ok(CUresult result, const char* call);
  void Fail(const std::string& fault, const std::string& detail);
  void Enter(int device);
  void Judge(const Op& op);
  void JudgeUse(const Block& block, int stream);
  int AddStream(int role);
  void Request(const Op& op);
  void Release(int slot, uint32_t hint);
  void Use(const Op& op);
  void Tell(const Op& op);
  void ReplaceStream(const Op& op);
  void SyncStream(int stream);
  void SyncDevice(int device);
  void End();

  // pool_contract_waits.cc
  // Whether it may get work, or an event, that is not captured.
  bool Works(int stream) const;
  struct Wait {
    bool owed = false;  // because of an earlier block's uses
    bool next = false;  // only the stream's very next operation needs the order
  };
  bool Order(int stream, const Moment& moment, Wait wait, uint32_t hint);
  bool OrderOne(int stream, int other, uint32_t tick, Wait wait, uint32_t hint);
  bool OrderUse(const Block& block, int stream, uint32_t hint);
  bool WaitEvent(int stream, const Stamped& event);
  bool RecordEvent(int stream);
  CUevent NewEvent(int device);

  // pool_contract_graphs.cc
  void BeginCapture(const Op& op);
  void EndCapture();
  void Launch(const Op& op);
  void DropGraph();
  void JudgeCaptures();

  const Drawn& drawn_;
  Allocator* const allocator_;
  const std::vector<CUcontext> contexts_;
  const uint64_t drop_;
  const bool alone_;
  Workers workers_;
  KnownOrder order_;
  ContractCounts counts_;
  std::string fault_, detail_;
  std::vector<Stream> streams_;
  std::vector<int> current_;   // by role: its stream
  std::vector<Block> blocks_;  // by slot
  std::vector<Past> past_;
  std::vector<int> entered_;                       // by thread: the device
  std::vector<std::vector<CUevent>> idle_events_;  // by device
  std::list<Graph> graphs_;
  std::unique_ptr<Capture> capture_;
  uint64_t serial_ = 0;
  uint64_t reports_ = 0;
  int thread_ = 0;
  size_t at_ = 0;  // index of the operation
};

}  // namespace property
