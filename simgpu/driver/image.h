// What a device image says about its kernels and variables: fat binaries, ELF images (cubin) and PTX text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace simgpu {

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
  // A part of it could not be read (a compression this reader does not know): there may be kernels not listed.
  bool incomplete = false;
};

// `data`: a fat binary or its wrapper, an ELF image, or PTX text that ends with a null character. False: none of these.
// Their lengths are in them, so the memory must be what it says it is (as for the real driver).
bool ReadImage(const void* data, Image* image);

// Adds what PTX text declares; what is known already stays.
void ReadPtx(const std::string& text, Image* image);

// Appends the decompressed bytes to *out. False: malformed, or not `expected` bytes. (Formats: zstd is RFC 8878.)
bool DecompressZstd(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out);
bool DecompressLz4(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out);

}  // namespace simgpu
