// The checker: which blocks the application was given, what uses them, and whether a block whose addresses were used
// before is only used after that earlier use. simgpu/README.md lists the reports.
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

// Who said that the block was given.
enum class Teller : uint8_t {
  kDriver,   // the driver itself: perhaps for the application, perhaps as an allocator's arena
  kOutside,  // the runtime library or a witness: for the application
};

// What a block goes with: a context's number, 0 if that is not known. Memory of a pool does not go with it.
struct Owner {
  uint64_t context = 0;
  bool pooled = false;
};

// Not thread-safe: used under the driver's lock. Nothing here fails; what is wrong is reported.
class Checker {
 public:
  Checker(Order* order, MemoryView* memory, bool enabled) : order_(order), memory_(memory), enabled_(enabled) {}

  bool enabled() const { return enabled_; }

  void Given(uint64_t address, uint64_t bytes, Teller teller, Owner owner = {});
  void Returned(uint64_t address, Teller teller);
  // Takes back this thread's last release by an outside teller, if it was of `address`.
  void Kept(uint64_t address);

  // The driver was asked to free what is no allocation. Silent if an outside teller of this thread just said the same.
  void UnknownFree(uint64_t address);

  // The operation uses [address, address + bytes). `given_before` as below.
  void Use(Epoch op, uint64_t address, uint64_t bytes, const char* what, uint64_t given_before = ~uint64_t{0});
  // A launch was passed `word`. If it points into a live block, the launch uses that block. `is_pointer`: the whole
  // parameter is this word, so that a pointer to freed memory can be told from garbage in a struct.
  // `given_before`: blocks with a later serial are not what was meant (graphs); ~0: all.
  void UsePointer(Epoch op, uint64_t word, bool is_pointer, const char* what, uint64_t given_before = ~uint64_t{0});

  // The driver is about to take [begin, end) away. `finished`: it waited for all work (cuMemFree does).
  void TakenAway(uint64_t begin, uint64_t end, const char* what);

  // The context or the device goes, and the blocks there with it; that is no mistake of anyone's.
  void Forget(uint64_t begin, uint64_t end);
  void ForgetDevice(int device);
  void ForgetContext(uint64_t context);

  uint64_t serial() const { return next_serial_; }  // of the next block

 private:
  // Part of a block, and the uses of the blocks that were there before it.
  struct Below {
    uint64_t begin = 0, end = 0;
    UseSet uses;
  };
  struct Block {
    uint64_t end = 0;
    uint64_t serial = 0;
    Teller teller = Teller::kDriver;
    Owner owner;
    uint64_t checked_generation = 0;  // memory_->Generation() when the block was last found to be mapped throughout
    UseSet uses;
    UseSet after;              // what its uses must come after: all uses in `below`
    std::vector<Below> below;  // ascending, disjoint
  };
  struct Ghost {
    uint64_t end = 0;
    UseSet uses;
  };
  // A thread's last release by an outside teller, which the driver may yet refuse.
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
