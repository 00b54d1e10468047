#include "tools/recording/stack_text.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace hotpack {
namespace {

struct Frame {
  std::string_view function, file, number;  // number: of the line; empty: unknown
};

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Calls function(line) for each line that is not empty.
template <typename Function>
void ForEachLine(std::string_view text, Function function) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) function(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool AreDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// "function (file:line)"; a function's own parentheses come before a space and the last one.
Frame Parse(std::string_view line) {
  Frame frame{line, {}, {}};
  const size_t open = line.rfind(" (");
  if (open == std::string_view::npos || line.back() != ')') return frame;
  frame.function = line.substr(0, open);
  frame.file = line.substr(open + 2, line.size() - open - 3);
  const size_t colon = frame.file.rfind(':');
  if (colon == std::string_view::npos || !AreDigits(frame.file.substr(colon + 1))) return frame;
  frame.number = frame.file.substr(colon + 1);
  frame.file = frame.file.substr(0, colon);
  return frame;
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// Of a script, of a notebook's cell ("<ipython-input-1-...>") or of an interactive session ("<stdin>").
bool IsPython(const Frame& frame) { return frame.file.ends_with(".py") || frame.file.starts_with("<"); }

bool IsOfPackage(const Frame& frame) {
  return Contains(frame.file, "/site-packages/") || Contains(frame.file, "/dist-packages/") ||
         frame.file.starts_with("<frozen ");
}

// Of PyTorch's stack collector, its allocators and hotpack's: on top of every stack, the same for all blocks.
bool IsAllocators(const Frame& frame) {
  static constexpr std::string_view kParts[] = {
      "torch::unwind",          "CapturedTraceback", "gather_with_cpp", "CUDACachingAllocator",
      "CachingDeviceAllocator", "hotpack_torch",     "hotpack_malloc",  "CUDAPluggableAllocator",
  };
  const bool named = std::any_of(std::begin(kParts), std::end(kParts),
                                 [&](std::string_view part) { return Contains(frame.function, part); });
  return named || BaseName(frame.file).starts_with("libhotpack") || frame.file.ends_with("torch/cuda/memory.py");
}

bool IsLibrary(std::string_view file) { return file.ends_with(".so") || Contains(BaseName(file), ".so."); }

std::string Text(std::string_view line, const Frame& frame) {
  if (!IsLibrary(frame.file) || frame.number.empty()) return std::string(line);
  return std::string(frame.function) + " (" + std::string(frame.file) + ")";
}

// What a frame tells about who asked; of equal ones the innermost counts.
enum class Rank { kNone, kNative, kBackward, kPackage, kOwn };

Rank RankOf(const Frame& frame) {
  if (IsPython(frame)) return IsOfPackage(frame) ? Rank::kPackage : Rank::kOwn;
  // A thread of PyTorch's autograd has no Python frames: its node says which operator's gradient it is.
  return Contains(frame.function, "Backward") && Contains(frame.function, "::apply") ? Rank::kBackward : Rank::kNative;
}

std::string WithoutParameters(std::string_view function) {
  const size_t open = function.find('(');
  return std::string(open == 0 ? function : function.substr(0, open));
}

}  // namespace

std::string ReadableStack(std::string_view stack) {
  std::vector<std::string> python, others;
  ForEachLine(stack, [&](std::string_view line) {
    const Frame frame = Parse(line);
    if (!IsAllocators(frame)) (IsPython(frame) ? python : others).push_back(Text(line, frame));
  });
  if (python.empty() && others.empty()) return std::string(stack);
  python.insert(python.end(), others.begin(), others.end());
  std::string text;
  for (const std::string& line : python) text += (text.empty() ? "" : "\n") + line;
  return text;
}

std::string SourceLine(std::string_view stack) {
  const std::string readable = ReadableStack(stack);
  Frame best;
  Rank rank = Rank::kNone;
  ForEachLine(readable, [&](std::string_view line) {
    const Frame frame = Parse(line);
    const Rank own = RankOf(frame);
    if (own <= rank) return;
    rank = own;
    best = frame;
  });
  if (rank < Rank::kPackage || best.file.empty()) return WithoutParameters(best.function);
  std::string text(BaseName(best.file));
  if (!best.number.empty()) text += ":" + std::string(best.number);
  return text + " (" + std::string(best.function) + ")";
}

}  // namespace hotpack
