#include <zstd.h>

#include <algorithm>
#include <memory>

#include "simgpu/driver/image.h"

namespace simgpu {

// In pieces: a damaged `expected` must not decide how much memory is taken. Pages are taken as they are written.
bool DecompressZstd(const uint8_t* data, size_t bytes, size_t expected, std::vector<char>* out) {
  out->clear();
  out->reserve(std::min(expected, 16 * bytes));
  const std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream(ZSTD_createDStream(), &ZSTD_freeDStream);
  if (stream == nullptr) return false;
  std::vector<char> piece(ZSTD_DStreamOutSize());
  ZSTD_inBuffer input = {data, bytes, 0};
  for (size_t left = 1; left != 0;) {  // 0 at the frame's end
    ZSTD_outBuffer output = {piece.data(), piece.size(), 0};
    left = ZSTD_decompressStream(stream.get(), &output, &input);
    if (ZSTD_isError(left) != 0 || output.pos > expected - out->size()) return false;
    out->insert(out->end(), piece.data(), piece.data() + output.pos);
    if (left != 0 && input.pos == bytes && output.pos < output.size) return false;  // cut off
  }
  return out->size() == expected;
}

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
