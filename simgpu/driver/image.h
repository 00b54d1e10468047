// Reads kernels and variables of device images: fat binaries, ELF images (cubin) and PTX text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace simgpu {

// The simulated devices' own: 10 * major + minor.
constexpr int kComputeCapability = 90;

struct KernelParameter {
  uint32_t offset = 0;  // bytes, in the parameter block
  uint32_t bytes = 0;
};

struct DeviceVariable {
  uint64_t bytes = 0;
  std::vector<char> initial;  // empty: zero
};

struct Image {
  std::map<std::string, std::vector<KernelParameter>> kernels;
  std::map<std::string, DeviceVariable> variables;
  // A part was unreadable (an unknown compression), so kernels may be missing.
  bool incomplete = false;
};

// Reads `data`: a fat binary or its wrapper, an ELF image, or PTX text that ends with a null character. Of a fat binary
// only what the devices would load is read. Returns false for other data. The images contain their lengths, which must
// be right (as for the real driver).
bool ReadImage(const void* data, Image* image);

// Adds the declarations of PTX text; known ones stay.
void ReadPtx(const std::string& text, Image* image);

// Decompress the first frame (zstd, RFC 8878) or a block (LZ4) into *out, which is empty before. Return false if
// malformed, or not `expected` bytes.
bool DecompressZstd(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out);
bool DecompressLz4(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out);

}  // namespace simgpu
