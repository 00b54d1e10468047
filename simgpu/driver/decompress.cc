#include <algorithm>

#include "simgpu/driver/image.h"

namespace simgpu {

// LZ4 block format: a token of two nibbles (literals, match length - 4), each continued by bytes of 255; the literals;
// a distance of two bytes; the match. The last sequence has literals only.
bool DecompressLz4(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out) {
  const uint8_t* at = data;
  const uint8_t* const end = data + bytes;
  auto extend = [&](size_t length) {
    if (length < 15) return length;
    uint8_t more = 255;
    while (more == 255 && at < end) length += more = *at++;
    return length;
  };
  while (at < end) {
    const uint8_t token = *at++;
    const size_t literals = extend(token >> 4);
    if (literals > static_cast<size_t>(end - at)) return false;
    out->insert(out->end(), at, at + literals);
    at += literals;
    if (at == end) break;
    if (end - at < 2) return false;
    const size_t distance = at[0] | at[1] << 8;
    at += 2;
    const size_t length = extend(token & 15) + 4;
    if (distance == 0 || distance > out->size() || out->size() + length > expected) return false;
    for (size_t i = 0; i < length; ++i) out->push_back((*out)[out->size() - distance]);
  }
  return out->size() == expected;
}

}  // namespace simgpu
