#include "simgpu/dnn/workspace.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace simgpu::dnn {
namespace {

uint64_t ReadBound() {
  const char* text = getenv("SIMGPU_DNN_WORKSPACE");
  if (text == nullptr || *text == '\0') return uint64_t{32} << 20;
  char* end = nullptr;
  errno = 0;
  const uint64_t number = strtoull(text, &end, 10);
  const char* units = "KMGT";
  int shift = 0;
  if (*end != '\0' && strchr(units, *end) != nullptr) shift = 10 * static_cast<int>(strchr(units, *end++) - units + 1);
  const bool digits = isdigit(static_cast<unsigned char>(text[0])) != 0;
  if (!digits || *end != '\0' || errno != 0 || (number << shift) >> shift != number) {
    fprintf(stderr, "simgpu: SIMGPU_DNN_WORKSPACE is not a size: %s\n", text);
    _Exit(2);
  }
  return number << shift;
}

}  // namespace

uint64_t WorkspaceBound() {
  static const uint64_t bound = ReadBound();
  return bound;
}

uint64_t ConvolutionWorkspace(int64_t count, const int64_t output[], const int64_t filter[], uint64_t element_bits) {
  uint64_t elements = 1;
  for (int64_t i = 2; i < count; ++i) elements *= static_cast<uint64_t>(std::max<int64_t>(output[i], 0));
  for (int64_t i = 1; i < count; ++i) elements *= static_cast<uint64_t>(std::max<int64_t>(filter[i], 0));
  return std::min(Rounded(elements * element_bits / 8), WorkspaceBound() / 256 * 256);
}

}  // namespace simgpu::dnn
