#include "tools/formats/snapshot_stacks.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "profiler/trace_format.h"
#include "tools/formats/snapshot_words.h"
#include "tools/recording/stack_text.h"

namespace hotpack {
namespace {

// Returns true for the interpreter's frames between two Python functions, and for frames without a name: they tell
// nothing.
bool IsInterpreters(std::string_view function, std::string_view file) {
  const bool python = absl::EndsWith(std::string(file), ".py") || file.substr(0, 1) == "<";
  return !python && (function == "??" || function.substr(0, 3) == "_Py" || function.substr(0, 2) == "Py");
}

}  // namespace

using namespace snapshot;

// A function's name may equal one of the words.
std::string_view SnapshotStacks::TextOf(const PickleValue& frame, uint8_t key) const {
  const PickleValue* value = pickle_.Find(frame, key);
  if (value == nullptr) return {};
  if (value->kind == PickleKind::kWord) return kText[value->number];
  return value->kind == PickleKind::kText ? std::string_view(pickle_.texts[static_cast<size_t>(value->number)])
                                          : std::string_view();
}

// Returns one line per frame, innermost first as in PyTorch: "function (file:line)". Some frames have no file ("??").
std::string SnapshotStacks::Describe(const std::vector<PickleValue>& frames) const {
  constexpr size_t kMax = trace_format::kMaxNameBytes;
  std::string text;
  for (const PickleValue& frame : frames) {
    if (frame.kind != PickleKind::kDict) continue;
    const std::string_view function = TextOf(frame, kName), file = TextOf(frame, kFilename);
    if ((function.empty() && file.empty()) || IsInterpreters(function, file)) continue;
    std::string line = function.empty() ? "?" : std::string(function);
    if (!file.empty() && file != "??") {
      const PickleValue* number = pickle_.Find(frame, kLine);
      line.append(" (").append(file);
      if (number != nullptr && number->kind == PickleKind::kInteger && number->number > 0)
        absl::StrAppend(&line, ":", number->number);
      absl::StrAppend(&line, ")");
    }
    for (char& c : line) {
      if (c == '\n') c = ' ';  // the separator of frames
    }
    absl::StrAppend(&text, text.empty() ? "" : "\n", line);
  }
  // Python frames are behind dozens of native ones, and would be what is cut off.
  if (text.size() > kMax) text = ReadableStack(text);
  if (text.size() <= kMax) return text;
  const size_t end = text.rfind('\n', kMax);  // whole frames only
  return end == std::string::npos ? "" : text.substr(0, end);
}

NameOrdinal SnapshotStacks::Of(const PickleValue& entry) {
  const PickleValue* frames = entry.kind == PickleKind::kDict ? pickle_.Find(entry, kFrames) : nullptr;
  if (frames == nullptr || frames->kind != PickleKind::kList) return kNoName;
  const auto [list, is_new] = lists_.try_emplace(frames->number, kNoName);
  if (!is_new) return list->second;
  std::string text = Describe(pickle_.lists[static_cast<size_t>(frames->number)]);
  if (text.empty()) return kNoName;
  const auto [name, is_new_text] = known_.try_emplace(std::move(text), static_cast<NameOrdinal>(names_.size()));
  if (is_new_text) names_.push_back(name->first);
  return list->second = name->second;
}

}  // namespace hotpack
