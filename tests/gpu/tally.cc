#include "tests/gpu/tally.h"

namespace hotpack::gpu {

Tally::Tally() {
  HOTPACK_NEED(cudaMalloc(reinterpret_cast<void**>(&wrong_), sizeof *wrong_));
  HOTPACK_NEED(cudaMemset(wrong_, 0, sizeof *wrong_));
  HOTPACK_NEED(cudaDeviceSynchronize());  // non-blocking streams do not wait for the memset
}

Tally::~Tally() { cudaFree(wrong_); }

void Tally::Block(const void* block, size_t bytes, bool same_address) {
  ++blocks_;
  if (same_address) ++reused_;
  wrong_bytes_ += CountOther(block, bytes, kNewByte);
}

void Tally::Judge(const Probe& probe, const std::string& name) {
  unsigned long long reads = 0;
  HOTPACK_NEED(cudaMemcpy(&reads, wrong_, sizeof reads, cudaMemcpyDeviceToHost));
  std::string seen = std::to_string(wrong_bytes_) + " wrong bytes at the end, " + std::to_string(reads) +
                     " wrong reads meanwhile; " + std::to_string(reused_) + " of " + std::to_string(blocks_) +
                     " blocks at an address just given back";
  if (!probe.computes) seen += " (kernels do not compute here: the checker watches the order)";
  probe.Must(wrong_bytes_ == 0 && reads == 0, name, "the new owner's value throughout", seen);
}

}  // namespace hotpack::gpu
