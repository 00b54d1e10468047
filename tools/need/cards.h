// What is not simulated, and cards: figures that others measured, each with its source.
#pragma once

#include <cstdint>
#include <span>

namespace hotpack {

// A part of a device's memory that no recording has.
struct UnsimulatedMemory {
  const char* what;
  uint64_t bytes;
  bool always;         // every process on a device takes it; otherwise those that communicate do
  const char* source;  // where it was measured, and on what
};
std::span<const UnsimulatedMemory> UnsimulatedMemories();

// Returns their bytes for a process; `communicates`: with one group of several ranks.
uint64_t UnsimulatedBytes(bool communicates);

// A card, and what a program can use of it: the total capacity that PyTorch reports there, the lowest that was found.
// It is less than the label says, since a part is the driver's own.
struct Card {
  const char* name;
  uint64_t label_gigabytes;
  uint64_t usable;  // bytes
  const char* source;
};
std::span<const Card> Cards();  // by usable memory

}  // namespace hotpack
