#include "tools/remat/plan_plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace hotpack {
namespace {

constexpr double kWidth = 640, kHeight = 400, kLeft = 64, kRight = 150, kTop = 36, kBottom = 48;
constexpr const char* kColors[] = {"#0b6e99", "#c2571a", "#3b8132", "#8e44ad", "#b8860b",
                                   "#c0392b", "#555555", "#16a085", "#d35400"};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (char c : text) {
    if (c == '&')
      absl::StrAppend(&escaped, "&amp;");
    else if (c == '<')
      absl::StrAppend(&escaped, "&lt;");
    else if (c == '>')
      absl::StrAppend(&escaped, "&gt;");
    else
      escaped += c;
  }
  return escaped;
}

double X(double memory) { return kLeft + memory * (kWidth - kLeft - kRight); }

class Plot {
 public:
  explicit Plot(double highest) : highest_(highest) {}

  void Axes(const std::string& title) {
    Text(kLeft, 20, "start", title);
    for (int part = 0; part <= 10; part += 2) {
      const double x = X(part / 10.0);
      absl::StrAppendFormat(&parts_, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", x, kTop, kHeight - kBottom);
      Text(x, kHeight - kBottom + 16, "middle", absl::StrCat(part * 10, " %"));
    }
    for (int step = 0; step <= 5; ++step) {
      const double time = 1 + (highest_ - 1) * step / 5;
      absl::StrAppendFormat(&parts_, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", kLeft, Y(time),
                            kWidth - kRight);
      Text(kLeft - 6, Y(time) + 4, "end", absl::StrFormat("%.2f", time));
    }
    Text(X(0.5), kHeight - 10, "middle", "arena, of what the step needs as it is");
    absl::StrAppendFormat(
        &parts_,
        "<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">time, of the step's own</text>\n",
        (kTop + kHeight - kBottom) / 2);
  }

  void Line(const PlotLine& line, size_t index) {
    const char* color = kColors[index % std::size(kColors)];
    std::string path;
    for (const PlotPoint& point : line.points) {
      if (point.time > highest_) continue;
      absl::StrAppendFormat(&path, "%c%.1f %.1f", path.empty() ? 'M' : 'L', X(point.memory), Y(point.time));
      absl::StrAppendFormat(&parts_, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", X(point.memory),
                            Y(point.time), color);
    }
    if (!path.empty())
      absl::StrAppendFormat(&parts_, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>\n", path,
                            color);
    const double y = kTop + 10 + 18 * static_cast<double>(index);
    absl::StrAppendFormat(&parts_, "<path d=\"M%.1f %.1fh18\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                          kWidth - kRight + 12, y, color);
    Text(kWidth - kRight + 36, y + 4, "start", line.name);
  }

  std::string Take() {
    return absl::StrFormat(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
        "fill=\"#fff\"/>\n%s</svg>\n",
        kWidth, kHeight, kWidth, kHeight, parts_);
  }

 private:
  double Y(double time) const { return kHeight - kBottom - (time - 1) / (highest_ - 1) * (kHeight - kTop - kBottom); }
  void Text(double x, double y, const char* anchor, const std::string& text) {
    absl::StrAppendFormat(&parts_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                          Escaped(text));
  }

  const double highest_;
  std::string parts_;
};

}  // namespace

std::string PlanPlot(const std::string& title, const std::vector<PlotLine>& lines, double max_time) {
  double highest = 1.05;
  for (const PlotLine& line : lines) {
    for (const PlotPoint& point : line.points) {
      if (point.time <= max_time) highest = std::max(highest, point.time);
    }
  }
  Plot plot(1 + std::ceil((highest - 1) * 20) / 20);
  plot.Axes(title);
  for (size_t i = 0; i < lines.size(); ++i) plot.Line(lines[i], i);
  return plot.Take();
}

}  // namespace hotpack
