#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace hotpack::fuzz {
namespace {

// Takes a number from 1 and `after` off the front of *rest; 0 if they are not there.
size_t TakeNumber(std::string_view* rest, std::string_view after) {
  size_t number = 0;
  const auto [stop, error] = std::from_chars(rest->data(), rest->data() + rest->size(), number);
  if (error != std::errc()) return 0;
  rest->remove_prefix(static_cast<size_t>(stop - rest->data()));
  if (rest->substr(0, after.size()) != after) return 0;
  rest->remove_prefix(after.size());
  return number;
}

// The bytes of line `number`, from 1, without its end. The last line may be the empty one behind the last line end.
bool FindLine(std::string_view text, size_t number, std::string_view* line) {
  for (size_t i = 1;; ++i) {
    const size_t end = text.find('\n');
    if (i == number) {
      *line = text.substr(0, end);
      return true;
    }
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

void RequireOneLine(std::string_view error) {
  Require(std::all_of(error.begin(), error.end(), [](char c) { return c >= ' ' && c <= '~'; }),
          "an error is one line of printable characters", error);
}

}  // namespace

void Require(bool holds, std::string_view what, std::string_view detail) {
  if (holds) return;
  fprintf(stderr, "fuzz: this does not hold: %.*s\n", static_cast<int>(what.size()), what.data());
  if (!detail.empty()) fprintf(stderr, "fuzz: seen: %.*s\n", static_cast<int>(detail.size()), detail.data());
  abort();
}

void RequireErrorAtColumn(std::string_view error, std::string_view name, std::string_view text) {
  RequireOneLine(error);
  std::string_view rest = error;
  Require(rest.substr(0, name.size() + 1) == std::string(name) + ":", "an error begins with the file's name", error);
  rest.remove_prefix(name.size() + 1);
  const size_t line_number = TakeNumber(&rest, ":");
  const size_t column = TakeNumber(&rest, ": ");
  Require(line_number > 0 && column > 0 && !rest.empty(), "an error is NAME:LINE:COLUMN: reason", error);
  std::string_view line;
  Require(FindLine(text, line_number, &line), "an error's line is one of the file's", error);
  Require(column <= line.size() + 1, "an error's column is one of the line's", error);
}

void RequireErrorAtByte(std::string_view error, std::string_view name, size_t bytes) {
  RequireOneLine(error);
  std::string_view rest = error;
  const std::string begin = std::string(name) + ": byte ";
  Require(rest.substr(0, begin.size()) == begin, "an error is NAME: byte N: reason", error);
  rest.remove_prefix(begin.size());
  size_t byte = 0;
  const auto [stop, code] = std::from_chars(rest.data(), rest.data() + rest.size(), byte);
  Require(code == std::errc() && byte <= bytes, "an error's byte is one of the file's", error);
  rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
  Require(rest.size() > 2 && rest.substr(0, 2) == ": ", "an error is NAME: byte N: reason", error);
}

void RequireValidTrace(const Trace& trace) {
  std::map<uint64_t, uint64_t> sizes;  // of every block so far; 0 once it is released
  for (const Event& event : trace.events) {
    switch (event.kind) {
      case EventKind::kAllocate:
        Require(event.bytes >= 1 && event.bytes <= uint64_t{1} << 40, "a block has 1 to 2^40 bytes");
        Require(sizes.emplace(event.id, event.bytes).second, "an id is allocated once");
        break;
      case EventKind::kRelease: {
        const auto block = sizes.find(event.id);
        Require(block != sizes.end() && block->second != 0, "what is released is live");
        Require(block->second == event.bytes, "a release has the size of its allocation");
        block->second = 0;
        break;
      }
      case EventKind::kMark:
      case EventKind::kInterrupt:
      case EventKind::kResume:
      case EventKind::kExpect:
        Require(event.id == 0 && event.bytes == 0, "only allocations and releases name a block");
        break;
      default:
        Require(false, "an event is of a known kind");
    }
  }
}

void RequireSameTrace(const Trace& a, const Trace& b, std::string_view what) {
  Require(a.events.size() == b.events.size(), what,
          std::to_string(a.events.size()) + " events, then " + std::to_string(b.events.size()));
  for (size_t i = 0; i < a.events.size(); ++i) {
    const Event& x = a.events[i];
    const Event& y = b.events[i];
    Require(x.kind == y.kind && x.flags == y.flags && x.thread == y.thread && x.stream == y.stream && x.id == y.id &&
                x.bytes == y.bytes && x.time_ns == y.time_ns,
            what, "event " + std::to_string(i) + " differs");
  }
}

MemoryFile::MemoryFile(const uint8_t* data, size_t size) : descriptor_(memfd_create("fuzz", MFD_CLOEXEC)) {
  Require(descriptor_ >= 0, "a file in memory can be made");
  for (size_t done = 0; done < size;) {
    const ssize_t written = write(descriptor_, data + done, size - done);
    Require(written > 0, "a file in memory can be written");
    done += static_cast<size_t>(written);
  }
  path_ = "/proc/self/fd/" + std::to_string(descriptor_);
}

MemoryFile::~MemoryFile() { close(descriptor_); }

}  // namespace hotpack::fuzz
