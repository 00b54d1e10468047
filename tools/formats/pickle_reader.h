// Reads the data of a Python pickle. Never executes any of it.
//
// A pickle is a program for a small stack machine. The reader knows the opcodes that build numbers, texts, lists,
// tuples and dictionaries (protocols 2 to 5). It refuses those that import or call something (GLOBAL, REDUCE and
// similar). It keeps only the data that the caller can query:
//   - texts: those that the caller names ("words"). Of others, on request, the first bytes, equal ones once; else they
//     are skipped while reading.
//   - dictionaries: the entries whose key is a word and whose value is one of the kinds below.
//   - lists: the items of those kinds, without dictionaries that are empty when they are added.
//   - tuples and floating point numbers: nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/formats/byte_stream.h"

namespace hotpack {

enum class PickleKind : uint8_t {
  kOther,    // not kept: None, a text that is no word, a tuple, an integer beyond 64 bits, ...
  kBool,     // number: 0 or 1
  kInteger,  // number
  kWord,     // number: its index in PickleOptions::words
  kText,     // number: index in Pickle::texts
  kList,     // number: index in Pickle::lists
  kDict,     // number: index in Pickle::dicts
};

struct PickleValue {
  int64_t number = 0;
  PickleKind kind = PickleKind::kOther;
  uint8_t key = 0;  // in a dictionary: the index of the key in PickleOptions::words
};

struct PickleDict {
  uint64_t first = 0;  // in Pickle::entries
  uint32_t count = 0;
};

struct Pickle {
  PickleValue root;
  std::deque<std::vector<PickleValue>> lists;
  std::deque<PickleDict> dicts;
  std::deque<PickleValue> entries;
  std::deque<std::string> texts;  // all different

  // Returns the entry of `dict` (of kind kDict) with this key, or null.
  const PickleValue* Find(const PickleValue& dict, uint8_t key) const;
};

// The default memory limit: about 25 million entries of a memory snapshot.
inline constexpr uint64_t kPickleMemoryLimit = uint64_t{4} << 30;

struct PickleOptions {
  absl::Span<const std::string_view> words;  // at most 255, of at most 32 bytes each, all different
  uint32_t text_bytes = 0;                   // 32 to 4096: bytes kept of each text that is no word; 0: none
  // Bytes of memory for the kept data and the stack, beyond which the file is refused. (A growing list may take up to
  // half as much again.)
  uint64_t memory_limit = kPickleMemoryLimit;
};

// Reads the pickle at the front of `source` and ignores the bytes after it. Errors are one line, "NAME: byte N: reason"
// with N counted from 0, or the source's own. O(bytes).
absl::StatusOr<Pickle> ReadPickle(ByteSource source, std::string_view name, const PickleOptions& options);

}  // namespace hotpack
