#include "tools/recording/load_curve.h"

#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "profiler/history.h"
#include "tools/recording/hot_iteration.h"

namespace hotpack {
namespace {

constexpr const char* kEighths[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = getenv(name);
    if (value != nullptr && value[0] != '\0')
      return strcasestr(value, "utf-8") != nullptr || strcasestr(value, "utf8") != nullptr;
  }
  return false;
}

// Returns the maximum of each of `width` equal parts.
std::vector<uint64_t> Columns(const std::vector<uint64_t>& values, size_t width) {
  width = std::min(width, values.size());
  std::vector<uint64_t> columns(width, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t& column = columns[i * width / values.size()];
    column = std::max(column, values[i]);
  }
  return columns;
}

}  // namespace

bool ShowsCurves(int fd) {
  const char* terminal = getenv("TERM");
  return isatty(fd) != 0 && terminal != nullptr && terminal[0] != '\0' && strcmp(terminal, "dumb") != 0 &&
         LocaleIsUtf8();
}

size_t CurveWidth(int fd, size_t indent) {
  struct winsize size = {};
  const size_t columns = ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  return std::clamp<size_t>(columns > indent + 1 ? columns - indent - 1 : 0, 20, 72);
}

std::string CurveText(const std::vector<uint64_t>& values, size_t width, size_t rows, size_t indent) {
  if (values.empty()) return "";
  const std::vector<uint64_t> columns = Columns(values, width);
  const uint64_t most = std::max<uint64_t>(1, *std::max_element(columns.begin(), columns.end()));
  std::string text;
  for (size_t row = rows; row-- > 0;) {
    text.append(indent, ' ');
    for (uint64_t value : columns) {
      // In eighths of all lines, rounded up, so that live memory is visible.
      const auto eighths = static_cast<size_t>(
          (static_cast<double>(value) * static_cast<double>(rows) * 8) / static_cast<double>(most) + 0.999999);
      const size_t below = row * 8;
      text += kEighths[eighths <= below ? 0 : std::min<size_t>(8, eighths - below)];
    }
    text += "\n";
  }
  return text;
}

std::vector<uint64_t> LoadOf(const Profile& profile) {
  std::vector<uint64_t> load = LoadUnits(profile);
  for (uint64_t& bytes : load) bytes *= kBlockUnit;
  return load;
}

std::vector<uint64_t> LoadOf(const Trace& trace) {
  std::vector<uint64_t> load;
  uint64_t live = 0;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAllocate && event.kind != EventKind::kRelease) continue;
    const uint64_t bytes = uint64_t{UnitsOf(event.bytes)} * kBlockUnit;
    live = event.kind == EventKind::kAllocate ? live + bytes : live - bytes;
    load.push_back(live);
  }
  return load;
}

std::vector<uint64_t> LoadWorthShowing(const Trace& trace) {
  std::optional<HotIteration> hot = MarkedIteration(trace);
  if (!hot) hot = DetectedIteration(trace);
  return hot ? LoadOf(hot->profile) : LoadOf(trace);
}

}  // namespace hotpack
