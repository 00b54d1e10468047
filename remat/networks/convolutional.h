// VGG and U-Net.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "remat/networks/generator.h"
#include "remat/networks/network.h"

namespace hotpack::remat {

// Simonyan, Zisserman 2014, table 1, columns A, B, D and E. `layers` counts those with weights: 11, 13, 16 or 19
// (InvalidArgument otherwise). Dropout follows the first two of the three fully connected layers.
struct VggOptions {
  int64_t layers = 16;
  int64_t batch = 64;
  int64_t image = 224;
  int64_t classes = 1000;
  Bytes workspace = 0;  // the most of one convolution
};
absl::StatusOr<Network> Vgg(const VggOptions& options);

// Ronneberger, Fischer, Brox 2015, with padded convolutions, so that the result has the size `image`. `image` is a
// multiple of 2^depth (InvalidArgument otherwise). Dropout is at the bottom.
struct UNetOptions {
  int64_t batch = 8;
  int64_t image = 512;
  int64_t depth = 4;   // number of poolings, ≥ 1
  int64_t width = 64;  // channels at the top
  int64_t classes = 2;
  Bytes workspace = 0;
};
absl::StatusOr<Network> UNet(const UNetOptions& options);

std::vector<Generator> ConvolutionalGenerators();

}  // namespace hotpack::remat
