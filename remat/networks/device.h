// The time of an operator by a roofline: bound by arithmetic or by memory (Williams, Waterman, Patterson 2009,
// "Roofline").
#pragma once

#include "remat/core/graph.h"

namespace hotpack::remat {

// A device. The default is a card of 2016 with 12 GB: GeForce GTX TITAN X (Maxwell), with 6.6 TFLOP/s in single
// precision at its boost clock and 336 GB/s by its data sheet. The parts that kernels reach, and the launch, are
// assumptions and not measured. Times in ns are no better than these. Their ratios between operators are a little
// better.
struct Device {
  double flops_per_ns = 6600;
  double bytes_per_ns = 336;
  // Part of the peak that large convolutions and matrix products reach.
  double flops_part = 0.6;
  // Part of the peak that streaming kernels reach.
  double bytes_part = 0.75;
  Nanoseconds launch = 5000;  // of any kernel
};

// Returns launch + max(flops / throughput, bytes / bandwidth) in ns, at most 2^53. flops, bytes ≥ 0.
Nanoseconds CostOf(const Device& device, double flops, double bytes);

}  // namespace hotpack::remat
