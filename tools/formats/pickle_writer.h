// Writes Python pickles, protocol 2: dictionaries, lists, texts, integers and truth values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "packer/model_writer.h"

namespace hotpack {

// One value, written from the outside to the inside:
//
//   PickleWriter writer(sink);
//   writer.BeginDict();
//   writer.Key("sizes"), writer.BeginList(), writer.Integer(512), writer.EndList();
//   writer.EndDict();
//   absl::Status status = writer.Finish();
//
// After an error of the sink it writes nothing more, and Finish() returns the error. The first 256 different texts are
// written once and then referenced. Not thread-safe.
class PickleWriter {
 public:
  explicit PickleWriter(TextSink sink);

  void BeginDict();  // Key() and a value, as often as needed
  void Key(std::string_view key) { Text(key); }
  void EndDict();
  void BeginList();
  void EndList();
  void Integer(int64_t value);
  void Bool(bool value);
  void Text(std::string_view text);  // UTF-8, below 4 GiB
  void EmptyList() { BeginList(), EndList(); }
  void ZeroPair();  // the tuple (0, 0)

  // Ends the pickle after the value. The writer must not be used afterwards.
  absl::Status Finish();

 private:
  // A list is written in batches of a thousand items, because readers put those of one operation on their stack.
  struct List {
    bool is_list;
    bool is_open;  // a mark is written, but not yet its operation
    uint32_t items;
  };
  void Put(std::string_view bytes);
  void PutByte(uint8_t byte) { Put(std::string_view(reinterpret_cast<const char*>(&byte), 1)); }
  void PutNumber(uint64_t value, size_t bytes);  // little-endian
  void Item();                                   // before each value

  TextSink sink_;
  absl::Status status_;
  std::string buffer_;
  std::vector<List> open_;
  absl::flat_hash_map<std::string, uint8_t> known_;
};

}  // namespace hotpack
