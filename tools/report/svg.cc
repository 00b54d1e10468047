#include "tools/report/svg.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/cli/size_text.h"
#include "tools/report/palette.h"

namespace hotpack {
namespace {

constexpr char kInk[] = "#24292f", kFaint[] = "#7d8590", kGrid[] = "#e3e6ea", kPaper[] = "#ffffff",
               kAccent[] = "#3d3f9e", kWarm[] = "#b45309";
constexpr double kLeft = 66, kRight = 150, kTop = 34, kBetween = 34, kFoot = 12, kLoadShare = 0.24;

std::string Number(double value) {
  std::string text = absl::StrFormat("%.2f", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string SizeText(Bytes bytes) { return FormatSize(static_cast<uint64_t>(bytes)); }

// A frame of the picture: clock values [0, end) against bytes [0, top).
struct Frame {
  double left, upper, width, height, end, top;
  double X(Clock clock) const { return left + static_cast<double>(clock) / end * width; }
  double Y(Bytes bytes) const { return upper + height - static_cast<double>(bytes) / top * height; }
};

Clock Life(const Block& block) {
  Clock ticks = 0;
  for (const Residency& residency : block.residency) ticks += residency.end - residency.begin;
  return ticks;
}

// By rank among the different lifetimes, shortest first, so that the colours are used evenly.
class LifeSteps {
 public:
  explicit LifeSteps(const Instance& instance) {
    for (const Block& block : instance.blocks) lives_.push_back(Life(block));
    std::sort(lives_.begin(), lives_.end());
    lives_.erase(std::unique(lives_.begin(), lives_.end()), lives_.end());
  }
  size_t Of(const Block& block) const {
    const auto rank = static_cast<size_t>(std::lower_bound(lives_.begin(), lives_.end(), Life(block)) - lives_.begin());
    return std::min<size_t>(kRampSteps - 1, rank * kRampSteps / lives_.size());
  }

 private:
  std::vector<Clock> lives_;
};

// Blocks too small to be visible alone, by pixel of the frame.
class Grains {
 public:
  explicit Grains(const Frame& frame)
      : frame_(frame),
        width_(static_cast<size_t>(frame.width)),
        colours_(width_ * static_cast<size_t>(frame.height), 0) {}

  void Add(double x, double y, size_t step) {
    const auto column = static_cast<size_t>(std::clamp(x - frame_.left, 0.0, frame_.width - 1));
    const auto row = static_cast<size_t>(std::clamp(y - frame_.upper, 0.0, frame_.height - 1));
    colours_[row * width_ + column] = static_cast<char>(step + 1);
  }

  // Runs of one colour in a row become one rectangle.
  void AppendTo(std::array<std::string, kRampSteps>* paths) const {
    for (size_t at = 0; at < colours_.size();) {
      size_t end = at + 1;
      while (end < colours_.size() && end % width_ != 0 && colours_[end] == colours_[at]) ++end;
      if (colours_[at] != 0) {
        absl::StrAppend(&(*paths)[static_cast<size_t>(colours_[at] - 1)], "M",
                        Number(frame_.left + static_cast<double>(at % width_)), " ",
                        Number(frame_.upper + static_cast<double>(at / width_)), "h", end - at, "v1h-", end - at, "z");
      }
      at = end;
    }
  }

 private:
  const Frame& frame_;
  size_t width_;
  std::vector<char> colours_;  // step + 1, 0: nothing
};

std::string Blocks(const ReportModel& picture, const Frame& frame) {
  const LifeSteps steps(picture.instance);
  std::array<std::string, kRampSteps> framed, bare, grains;  // by colour
  Grains small(frame);
  for (size_t i = 0; i < picture.instance.blocks.size(); ++i) {
    const Block& block = picture.instance.blocks[i];
    const size_t step = steps.Of(block);
    const Offset offset = picture.packed.placement.offsets[i];
    const double y0 = frame.Y(offset + block.size), y1 = frame.Y(offset);
    for (const Residency& residency : block.residency) {
      const double x0 = frame.X(residency.begin), x1 = frame.X(residency.end);
      if (x1 - x0 < 1 && y1 - y0 < 1) {
        small.Add((x0 + x1) / 2, (y0 + y1) / 2, step);
        continue;
      }
      // An edge would cover a narrow one completely.
      absl::StrAppend(x1 - x0 > 3 && y1 - y0 > 3 ? &framed[step] : &bare[step], "M", Number(x0), " ", Number(y0), "H",
                      Number(x1), "V", Number(y1), "H", Number(x0), "z");
    }
  }
  small.AppendTo(&grains);
  std::string text;
  auto add = [&text](const char* name, const char* fill, const char* edge, const std::string& path) {
    if (!path.empty())
      absl::StrAppend(&text, "<path class=\"", name, "\" fill=\"", fill, "\"", edge, " d=\"", path, "\"/>\n");
  };
  for (size_t k = 0; k < kRampSteps; ++k) {
    add("merged", kRamp[k], "", grains[k]);
    add("blocks", kRamp[k], "", bare[k]);
    add("blocks", kRamp[k], " stroke=\"#ffffff\" stroke-width=\"0.4\"", framed[k]);
  }
  return text;
}

// Returns the maximum of a step function in each pixel column.
std::vector<Bytes> Largest(const PlacementCurves& curves, const std::vector<Bytes>& values, const Frame& frame) {
  std::vector<Bytes> largest(static_cast<size_t>(frame.width), 0);
  auto column = [&](Clock clock) {
    return std::min(largest.size() - 1, static_cast<size_t>(frame.X(clock) - frame.left));
  };
  for (size_t i = 0; i < curves.at.size(); ++i) {
    const Clock end = i + 1 < curves.at.size() ? curves.at[i + 1] : curves.end;
    const size_t last = std::max(column(curves.at[i]), column(end - 1));
    for (size_t x = column(curves.at[i]); x <= last; ++x) largest[x] = std::max(largest[x], values[i]);
  }
  return largest;
}

std::string Area(const std::vector<Bytes>& upper, const std::vector<Bytes>* lower, const Frame& frame, const char* fill,
                 double opacity) {
  std::string path = absl::StrCat("M", Number(frame.left), " ", Number(frame.Y(lower == nullptr ? 0 : (*lower)[0])));
  for (size_t x = 0; x < upper.size(); ++x) {
    if (x > 0 && upper[x] == upper[x - 1]) continue;
    if (x > 0) absl::StrAppend(&path, "H", Number(frame.left + static_cast<double>(x)));
    absl::StrAppend(&path, "V", Number(frame.Y(upper[x])));
  }
  absl::StrAppend(&path, "H", Number(frame.left + frame.width));
  for (size_t x = upper.size(); lower != nullptr && x-- > 0;) {
    if (x + 1 < upper.size() && (*lower)[x] == (*lower)[x + 1]) continue;
    if (x + 1 < upper.size()) absl::StrAppend(&path, "H", Number(frame.left + static_cast<double>(x + 1)));
    absl::StrAppend(&path, "V", Number(frame.Y((*lower)[x])));
  }
  if (lower == nullptr) absl::StrAppend(&path, "V", Number(frame.Y(0)));
  return absl::StrCat("<path fill=\"", fill, "\" fill-opacity=\"", Number(opacity), "\" d=\"", path, "z\"/>\n");
}

std::string Text(double x, double y, const char* anchor, const char* fill, absl::string_view words, int size = 11) {
  return absl::StrCat("<text x=\"", Number(x), "\" y=\"", Number(y), "\" text-anchor=\"", anchor, "\" fill=\"", fill,
                      "\" font-size=\"", size, "\">", words, "</text>\n");
}

std::string Line(double x0, double y0, double x1, double y1, const char* stroke, double width, const char* dash) {
  return absl::StrCat("<line x1=\"", Number(x0), "\" y1=\"", Number(y0), "\" x2=\"", Number(x1), "\" y2=\"", Number(y1),
                      "\" stroke=\"", stroke, "\" stroke-width=\"", Number(width), "\"",
                      *dash != '\0' ? absl::StrCat(" stroke-dasharray=\"", dash, "\"") : "", "/>\n");
}

std::string Grid(const Frame& frame, int lines) {
  Bytes step = 1;
  while (frame.top / static_cast<double>(step) > lines) step *= 2;
  std::string text;
  for (Bytes bytes = 0; static_cast<double>(bytes) <= frame.top; bytes += step) {
    absl::StrAppend(&text, Line(frame.left, frame.Y(bytes), frame.left + frame.width, frame.Y(bytes), kGrid, 1, ""),
                    Text(frame.left - 7, frame.Y(bytes) + 4, "end", kFaint, SizeText(bytes)));
  }
  return text;
}

// Draws plan and lower bound across a frame, with their names next to it; the names keep apart.
std::string Marks(const ReportModel& picture, const Frame& frame, bool name) {
  const Bytes height = picture.packed.placement.height, bound = picture.packed.lower_bound;
  const double right = frame.left + frame.width, at = frame.Y(height), below = std::max(frame.Y(bound), at + 14);
  std::string text = absl::StrCat(Line(frame.left, frame.Y(height), right, frame.Y(height), kAccent, 1.4, ""),
                                  Line(frame.left, frame.Y(bound), right, frame.Y(bound), kInk, 1, "5 4"));
  if (name)
    absl::StrAppend(&text, Text(right + 8, at + 4, "start", kAccent, "plan " + SizeText(height)),
                    Text(right + 8, below + 4, "start", kInk, "lower bound " + SizeText(bound)));
  return text;
}

}  // namespace

std::string Svg(const ReportModel& picture, const SvgOptions& options) {
  const double inner = options.height - kTop - kBetween - kFoot, width = options.width - kLeft - kRight;
  const double top = static_cast<double>(std::max<Bytes>(1, picture.packed.placement.height)) * 1.02,
               end = static_cast<double>(std::max<Clock>(1, picture.curves.end));
  const Frame map{kLeft, kTop, width, inner * (1 - kLoadShare), end, top};
  const Frame load{kLeft, kTop + map.height + kBetween, width, inner * kLoadShare, end, top};
  const std::vector<Bytes> loads = Largest(picture.curves, picture.curves.load, load),
                           tops = Largest(picture.curves, picture.curves.top, load);
  const std::string title =
      absl::StrCat(picture.blocks.size(), picture.blocks.size() == 1 ? " block" : " blocks", ", ", picture.what,
                   ": plan ", SizeText(picture.packed.placement.height),
                   absl::StrFormat(", %.4f of the lower bound",
                                   static_cast<double>(picture.packed.placement.height) /
                                       static_cast<double>(std::max<Bytes>(1, picture.packed.lower_bound))));
  return absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", options.width, " ", options.height,
                      "\" width=\"", options.width, "\" height=\"", options.height,
                      "\" font-family=\"Helvetica, Arial, sans-serif\" role=\"img\">\n<title>", title,
                      "</title>\n<rect width=\"", options.width, "\" height=\"", options.height, "\" rx=\"6\" fill=\"",
                      kPaper, "\"/>\n", Text(kLeft, 20, "start", kInk, title, 13), Grid(map, 7), Blocks(picture, map),
                      Marks(picture, map, true), Grid(load, 3), Area(loads, nullptr, load, kAccent, 0.22),
                      Area(tops, &loads, load, kWarm, 0.2), Marks(picture, load, false),
                      Text(load.left + load.width + 8, load.upper + load.height - 14, "start", kAccent, "load"),
                      Text(load.left + load.width + 8, load.upper + load.height, "start", kWarm, "holes"),
                      Text(kLeft, map.upper + map.height + 18, "start", kFaint,
                           "offset ↑, clock →; colour: lifetime, dark short, bright long"),
                      Text(kLeft + width, map.upper + map.height + 18, "end", kFaint, absl::StrCat(picture.curves.end)),
                      "</svg>\n");
}

}  // namespace hotpack
