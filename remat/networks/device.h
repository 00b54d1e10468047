// How long an operator takes, by a roofline: bound by arithmetic or by memory (Williams, Waterman, Patterson 2009,
// "Roofline").
#pragma once

#include "remat/core/graph.h"

namespace hotpack::remat {

// The default is a card of 2016 with 12 GB: GeForce GTX TITAN X (Maxwell), 6.6 TFLOP/s in single precision at its boost
// clock and 336 GB/s by its data sheet. The parts of these that kernels reach, and the launch, are assumptions and not
// measured: times in ns are no better than that, and their ratios between operators a little better.
struct Device {
  double flops_per_ns = 6600;
  double bytes_per_ns = 336;
  double flops_part = 0.6;    // of the peak, that large convolutions and products of matrices reach
  double bytes_part = 0.75;   // of the peak, that streaming kernels reach
  Nanoseconds launch = 5000;  // of one kernel, whatever it does
};

// launch + max(flops / throughput, bytes / bandwidth). flops, bytes ≥ 0. At most 2^53 ns.
Nanoseconds CostOf(const Device& device, double flops, double bytes);

}  // namespace hotpack::remat
