// Reads the data that is in a Python pickle. Nothing in it is ever run.
//
// A pickle is a program for a small stack machine. The part of its language that builds numbers, texts, lists, tuples
// and dictionaries is known here (protocols 2 to 5); what imports or calls something (GLOBAL, REDUCE and their like) is
// refused. Of what is built only that is kept which the caller can ask for:
//   - of texts, the ones the caller names ("words"); of all others, if the caller wants them, their first bytes, of
//     equal ones once; else they are skipped as they are read
//   - of a dictionary, the entries whose key is a word and whose value is one of the kinds below
//   - of a list, the items of those kinds; a dictionary that has nothing in it when it is put in is not one of them
//   - of a tuple or floating point number, nothing
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
  kOther,    // was there, but is not kept: None, a text that is no word, a tuple, an integer beyond 64 bits, ...
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

  // The entry of `dict` (of kind kDict) with this key, or null.
  const PickleValue* Find(const PickleValue& dict, uint8_t key) const;
};

// What reading may take at most if the caller does not say otherwise: some 25 million entries of a memory snapshot.
inline constexpr uint64_t kPickleMemoryLimit = uint64_t{4} << 30;

struct PickleOptions {
  absl::Span<const std::string_view> words;  // at most 255, of at most 32 bytes each, all different
  uint32_t text_bytes = 0;                   // 32 to 4096: so much of each text that is no word is kept; 0: nothing is
  // Bytes of memory for what is kept and for the stack, beyond which the file is refused (up to half as much again may
  // be taken where a list grows).
  uint64_t memory_limit = kPickleMemoryLimit;
};

// Reads the pickle at the front of `source`; what follows it is not looked at. Errors are one line, "NAME: byte N:
// reason" with N counted from 0, or the source's own. O(bytes).
absl::StatusOr<Pickle> ReadPickle(ByteSource source, std::string_view name, const PickleOptions& options);

}  // namespace hotpack
