// Counts what went wrong when memory went from one owner to the next.
#pragma once

#include <string>

#include "tests/gpu/probe.h"

namespace hotpack::gpu {

inline constexpr unsigned char kOldByte = 0x5a;  // what the former owner keeps writing
inline constexpr unsigned char kNewByte = 0xa5;  // what must be there afterwards

class Tally {
 public:
  Tally() {
    HOTPACK_NEED(cudaMalloc(reinterpret_cast<void**>(&wrong_), sizeof *wrong_));
    HOTPACK_NEED(cudaMemset(wrong_, 0, sizeof *wrong_));
    HOTPACK_NEED(cudaDeviceSynchronize());  // non-blocking streams do not wait for the memset
  }
  ~Tally() { cudaFree(wrong_); }
  Tally(const Tally&) = delete;
  Tally& operator=(const Tally&) = delete;

  // Device memory that Kernels::watch adds to.
  unsigned long long* wrong() { return wrong_; }

  // A block was reused, or not, and all work on it is done: looks at its bytes.
  void Block(const void* block, size_t bytes, bool same_address) {
    ++blocks_;
    if (same_address) ++reused_;
    wrong_bytes_ += CountOther(block, bytes, kNewByte);
  }

  void Judge(const Probe& probe, const std::string& name, const std::string& expected) {
    unsigned long long reads = 0;
    HOTPACK_NEED(cudaMemcpy(&reads, wrong_, sizeof reads, cudaMemcpyDeviceToHost));
    std::string seen = std::to_string(wrong_bytes_) + " wrong bytes at the end, " + std::to_string(reads) +
                       " wrong reads meanwhile; " + std::to_string(reused_) + " of " + std::to_string(blocks_) +
                       " blocks at an address just given back";
    if (!probe.computes) seen += " (kernels do not compute here: the checker watches the order)";
    probe.Must(wrong_bytes_ == 0 && reads == 0, name, expected, seen);
  }

 private:
  unsigned long long* wrong_ = nullptr;
  size_t wrong_bytes_ = 0;
  int blocks_ = 0;
  int reused_ = 0;
};

}  // namespace hotpack::gpu
