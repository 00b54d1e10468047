// The checker. It knows which blocks the application has and the work that uses them. It checks that a block whose
// addresses were used before is only used after that earlier use. simgpu/README.md lists the reports.
//
//   live blocks    ┌──────A──────┐        ┌───B───┐     each: its uses (last operation of each stream), and what it
//                                                       must come after
//   ghosts                       ┌──┐ ┌─┐       ┌──┐    addresses of returned blocks whose uses the host does not
//   ───────────────────────────────────────────────►    know to be finished; a new block on top inherits them
#pragma once

#include <cstdint>
#include <map>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "simgpu/checker/memory_view.h"
#include "simgpu/checker/order.h"

namespace simgpu {

// The source of a report about a block.
enum class Teller : uint8_t {
  kDriver,   // the driver itself: for the application, or as an allocator's arena
  kOutside,  // the runtime library or a witness: for the application
};

// The owner of a block: a context's number, 0 if unknown. Memory of a pool belongs to no context.
struct Owner {
  uint64_t context = 0;
  bool pooled = false;
};

// Not thread-safe: used under the driver's lock. No function fails; errors are reported.
class Checker {
 public:
  Checker(Order* order, MemoryView* memory, bool enabled) : order_(order), memory_(memory), enabled_(enabled) {}

  bool enabled() const { return enabled_; }

  void Given(uint64_t address, uint64_t bytes, Teller teller, Owner owner = {});
  void Returned(uint64_t address, Teller teller);
  // Undoes this thread's last release by an outside teller, if it was of `address`.
  void Kept(uint64_t address);

  // The driver got a free of no allocation. Silent if an outside teller of this thread just reported it.
  void UnknownFree(uint64_t address);

  // The operation uses [address, address + bytes). `given_before` as below.
  void Use(Epoch op, uint64_t address, uint64_t bytes, const char* what, uint64_t given_before = ~uint64_t{0});
  // A launch got `word` as a parameter. If it points into a live block, the launch uses that block.
  // `is_pointer`: the whole parameter is this word, so a pointer to freed memory differs from garbage in a struct.
  // `given_before`: blocks with a later serial are not meant (graphs); ~0: all.
  void UsePointer(Epoch op, uint64_t word, bool is_pointer, const char* what, uint64_t given_before = ~uint64_t{0});

  // The driver is about to take [begin, end) away. `finished`: it has waited for all work (cuMemFree does).
  void TakenAway(uint64_t begin, uint64_t end, const char* what);

  // The context or the device ends, and its blocks with it, which is no error.
  void Forget(uint64_t begin, uint64_t end);
  void ForgetDevice(int device);
  void ForgetContext(uint64_t context);

  uint64_t serial() const { return next_serial_; }  // of the next block

 private:
  // Part of a block, and the uses of the earlier blocks there.
  struct Below {
    uint64_t begin = 0, end = 0;
    UseSet uses;
  };
  struct Block {
    uint64_t end = 0;
    uint64_t serial = 0;
    Teller teller = Teller::kDriver;
    Owner owner;
    uint64_t checked_generation = 0;  // memory_->Generation() when the block was last found fully mapped
    UseSet uses;
    UseSet after;              // what its uses must come after: all uses in `below`
    std::vector<Below> below;  // ascending, disjoint
  };
  struct Ghost {
    uint64_t end = 0;
    UseSet uses;
  };
  // A thread's last release by an outside teller, which the driver may still refuse.
  struct Release {
    uint64_t address = 0;  // 0: of no block, or settled
    Block block;           // end 0: it was lost before
    bool again = false;    // a block had been returned from there before
  };
  using Blocks = std::map<uint64_t, Block>;
  using Ghosts = std::map<uint64_t, Ghost>;

  Blocks::iterator FindBlock(uint64_t address);  // the live block that contains it, or end()
  bool ClearOverlaps(uint64_t begin, uint64_t end, Teller teller);
  std::vector<Below> TakeGhosts(uint64_t begin, uint64_t end);
  Ghosts::iterator FirstGhost(uint64_t begin);
  void LeaveGhost(Blocks::iterator block);
  void AddGhost(Ghosts::iterator* last, uint64_t begin, uint64_t end, UseSet uses);
  void UseBlock(Epoch op, Blocks::iterator block, const char* what);
  void CheckGivenBefore(Epoch op, Blocks::iterator block, uint64_t address, const char* what, uint64_t given_before);
  void CheckMapped(Blocks::iterator block, const char* what);
  uint64_t UseOutside(Epoch op, uint64_t address, uint64_t end, const char* what, bool in_graph);

  Order* order_;
  MemoryView* memory_;
  bool enabled_;
  Blocks live_;
  Ghosts ghosts_;
  std::unordered_set<uint64_t> returned_;  // starts of returned blocks: tells a double free from an unknown pointer
  std::unordered_set<uint64_t> lost_;      // starts of blocks that an overlapping one replaced: reported once
  std::unordered_map<std::thread::id, Release> releases_;
  uint64_t next_serial_ = 1;
};

}  // namespace simgpu
