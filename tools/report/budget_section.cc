#include "tools/report/budget_section.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/cli/size_text.h"
#include "tools/report/page.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 1120, kHeight = 250, kLeft = 70, kRight = 150, kTop = 12, kFoot = 26;
constexpr double kPasses = 0.94, kUpdate = 0.955;  // of the width: where passes end, where the optimizers' steps begin
constexpr size_t kMaxColumns = 1000, kMaxRows = 100, kMaxTurns = 8;

struct Row {
  std::string module;
  uint64_t saves = 0, kept = 0, moved = 0, again = 0;
  double seconds = 0;
};

struct Levels {
  uint64_t before = 0, after = 0;
};

struct Step {
  std::string of;                       // what the curves are of, in words
  std::vector<uint64_t> before, after;  // bytes, columns of equal width
  std::vector<double> turns;            // where passes turn from forward to backward, shares of the width
  std::optional<Levels> update;         // of the optimizers' steps
  std::vector<Row> rows;
  bool timed = false;  // rows have seconds
};

// Readers of untrusted JSON: false, or nothing, if it is something else.
bool Read(const Json& object, const char* name, uint64_t* number) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_unsigned()) return false;
  *number = found->get<uint64_t>();
  return *number <= uint64_t{1} << 53;
}

double Positive(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found != object.end() && found->is_number() ? std::max(0.0, found->get<double>()) : 0.0;
}

template <typename Value, typename Check>
bool Read(const Json& object, const char* name, size_t most, std::vector<Value>* values, Check check) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_array() || found->size() > most) return false;
  for (const Json& value : *found) {
    if (!check(value)) return false;
    values->push_back(value.get<Value>());
  }
  return true;
}

bool Read(const Json& object, Row* row) {
  const auto name = object.is_object() ? object.find("module") : object.end();
  if (name == object.end() || !name->is_string()) return false;
  row->module = name->get<std::string>();
  row->seconds = Positive(object, "seconds");
  return Read(object, "saves", &row->saves) && Read(object, "kept", &row->kept) && Read(object, "moved", &row->moved) &&
         Read(object, "recomputed", &row->again);
}

std::optional<Step> ReadStep(const Json& report) {
  Step step;
  const auto unsigned_number = [](const Json& value) { return value.is_number_unsigned(); };
  const auto share = [](const Json& value) { return value.is_number() && value >= 0.0 && value <= 1.0; };
  if (!report.is_object() || !Read(report, "before", kMaxColumns, &step.before, unsigned_number) ||
      !Read(report, "after", kMaxColumns, &step.after, unsigned_number) || step.before.empty() ||
      step.before.size() != step.after.size()) {
    return std::nullopt;
  }
  if (!Read(report, "turns", SIZE_MAX, &step.turns, share)) return std::nullopt;
  const auto of = report.find("of"), modules = report.find("modules"), update = report.find("update"),
             state = report.find("state");
  step.of = of != report.end() && of->is_string() ? of->get<std::string>() : "the step";
  if (modules == report.end() || !modules->is_array() || modules->size() > kMaxRows) return std::nullopt;
  for (const Json& module : *modules) {
    if (!Read(module, &step.rows.emplace_back())) return std::nullopt;
  }
  if (update != report.end()) {
    Levels levels;
    if (!update->is_object() || !Read(*update, "before", &levels.before) || !Read(*update, "after", &levels.after)) {
      return std::nullopt;
    }
    step.update = levels;
  }
  if (state != report.end()) {
    Row row;
    row.module = "optimizer state";
    if (!state->is_object() || !Read(*state, "kept", &row.kept) || !Read(*state, "moved", &row.moved)) {
      return std::nullopt;
    }
    if (row.kept + row.moved > 0) step.rows.push_back(row);
  }
  step.timed = std::any_of(step.rows.begin(), step.rows.end(), [](const Row& row) { return row.seconds > 0; });
  return step;
}

uint64_t Peak(const std::vector<uint64_t>& load, uint64_t update) {
  return std::max(update, *std::max_element(load.begin(), load.end()));
}

Levels Peaks(const Step& step) {
  const Levels update = step.update.value_or(Levels{});
  return {Peak(step.before, update.before), Peak(step.after, update.after)};
}

std::string Number(double value) { return absl::StrFormat("%.1f", value); }

// Returns the picture. Colours are the page's, so it is dark where the page is.
class Picture {
 public:
  Picture(const Step& step, uint64_t budget) : step_(step), budget_(budget), peaks_(Peaks(step)) {
    top_ = 1.06 * static_cast<double>(std::max({uint64_t{1}, peaks_.before, peaks_.after, budget}));
  }

  std::string Svg() const {
    std::string svg = absl::StrFormat(
        "<svg class=\"budget\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"100%%\" role=\"img\" "
        "fill=\"currentColor\" font-size=\"11\"><title>The load of %s: at most %s with everything kept, %s by the "
        "plan; the budget is %s</title>\n",
        kWidth, kHeight, EscapeHtml(step_.of), FormatSize(peaks_.before), FormatSize(peaks_.after),
        FormatSize(budget_));
    absl::StrAppend(&svg, Grid(), Curve(step_.before, &Levels::before, "before", "fill:var(--hole);stroke:var(--warm)"),
                    Curve(step_.after, &Levels::after, "after", "fill:var(--fill);stroke:var(--accent)"), Turns());
    if (budget_ > 0) {
      absl::StrAppendFormat(&svg,
                            "<path class=\"line\" d=\"M%s %sH%s\" fill=\"none\" stroke=\"currentColor\" "
                            "stroke-dasharray=\"5 4\"/>\n",
                            Number(kLeft), Number(Y(budget_)), Number(kWidth - kRight));
    }
    return absl::StrCat(svg, Labels(), "</svg>\n");
  }

 private:
  static constexpr double kInner = kWidth - kLeft - kRight, kPlot = kHeight - kTop - kFoot;

  double Y(uint64_t bytes) const { return kTop + kPlot * (1 - static_cast<double>(bytes) / top_); }
  double Passes() const { return kInner * (step_.update ? kPasses : 1); }

  static std::string Text(double x, double y, const char* anchor, const std::string& words, const char* style = "") {
    return absl::StrFormat("<text x=\"%s\" y=\"%s\" text-anchor=\"%s\"%s>%s</text>\n", Number(x), Number(y), anchor,
                           *style == '\0' ? " fill-opacity=\"0.7\"" : absl::StrCat(" style=\"", style, "\""), words);
  }

  std::string Grid() const {
    double step = 1;
    while (top_ / step > 5) step *= 2;
    std::string text;
    for (double bytes = 0; bytes <= top_; bytes += step) {
      const double y = Y(static_cast<uint64_t>(bytes));
      absl::StrAppendFormat(&text, "<path d=\"M%s %sh%s\" fill=\"none\" style=\"stroke:var(--grid)\"/>\n",
                            Number(kLeft), Number(y), Number(kInner));
      absl::StrAppend(&text, Text(kLeft - 7, y + 4, "end", FormatSize(static_cast<uint64_t>(bytes))));
    }
    return text;
  }

  std::string Curve(const std::vector<uint64_t>& load, uint64_t Levels::*update, const char* name,
                    const char* style) const {
    std::string path = absl::StrCat("M", Number(kLeft), " ", Number(Y(0)));
    for (size_t i = 0; i < load.size(); ++i) {
      absl::StrAppend(&path, "V", Number(Y(load[i])), "H",
                      Number(kLeft + Passes() * static_cast<double>(i + 1) / static_cast<double>(load.size())));
    }
    absl::StrAppend(&path, "V", Number(Y(0)), "z");
    if (step_.update) {
      absl::StrAppend(&path, "M", Number(kLeft + kUpdate * kInner), " ", Number(Y(0)), "V",
                      Number(Y(*step_.update.*update)), "H", Number(kLeft + kInner), "V", Number(Y(0)), "z");
    }
    return absl::StrCat("<path class=\"", name, "\" style=\"", style, "\" d=\"", path, "\"/>\n");
  }

  std::string Turns() const {
    std::string text;
    const double foot = kTop + kPlot + 16;
    if (step_.update) absl::StrAppend(&text, Text(kLeft + kInner, foot, "end", "optimizer"));
    absl::StrAppend(&text, Text(kLeft, foot, "start", step_.turns.size() == 1 ? "forward →" : "saves and returns →"));
    if (step_.turns.size() > kMaxTurns) return text;
    for (const double turn : step_.turns) {
      const double x = kLeft + turn * Passes();
      absl::StrAppendFormat(&text, "<path d=\"M%s %sv%s\" fill=\"none\" style=\"stroke:var(--faint)\"/>\n", Number(x),
                            Number(kTop), Number(kPlot));
      if (step_.turns.size() == 1) absl::StrAppend(&text, Text(x, foot, "start", "backward →"));
    }
    return text;
  }

  // At the right, by height, and apart from each other.
  std::string Labels() const {
    struct Label {
      double y;
      std::string words;
      const char* style;
    };
    std::vector<Label> labels = {{Y(peaks_.before), "all kept " + FormatSize(peaks_.before), "fill:var(--warm)"},
                                 {Y(peaks_.after), "by the plan " + FormatSize(peaks_.after), "fill:var(--accent)"}};
    if (budget_ > 0) labels.push_back({Y(budget_), "budget " + FormatSize(budget_), "fill:var(--ink)"});
    std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    std::string text;
    double least = 0;
    for (const Label& label : labels) {
      const double y = std::max(label.y + 4, least);
      absl::StrAppend(&text, Text(kWidth - kRight + 8, y, "start", label.words, label.style));
      least = y + 14;
    }
    return text;
  }

  const Step& step_;
  const uint64_t budget_;
  const Levels peaks_;
  double top_ = 1;
};

std::string Cells(const Row& row, bool timed) {
  const auto size = [](uint64_t bytes) { return bytes > 0 ? FormatSize(bytes) : std::string("–"); };
  return absl::StrCat("<td>", row.saves > 0 ? std::to_string(row.saves) : "", "</td><td>", size(row.kept), "</td><td>",
                      size(row.moved), "</td><td>", size(row.again), "</td>",
                      !timed            ? ""
                      : row.seconds > 0 ? absl::StrFormat("<td>%.2f ms</td>", 1e3 * row.seconds)
                                        : "<td>–</td>");
}

std::string Table(const Step& step, Row* sum) {
  std::string rows;
  sum->module = "in all";
  for (const Row& row : step.rows) {
    absl::StrAppend(&rows, "<tr><td class=\"word\">", EscapeHtml(row.module), "</td>", Cells(row, step.timed),
                    "</tr>\n");
    sum->saves += row.saves;
    sum->kept += row.kept;
    sum->moved += row.moved;
    sum->again += row.again;
    sum->seconds += row.seconds;
  }
  return absl::StrCat(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"budget-title\"><table><thead><tr><th "
      "scope=\"col\" class=\"word\">saved in</th><th scope=\"col\">tensors</th><th scope=\"col\">kept</th><th "
      "scope=\"col\">moved</th><th scope=\"col\">computed again</th>",
      step.timed ? "<th scope=\"col\">time</th>" : "", "</tr></thead><tbody>\n", rows,
      "<tr class=\"ours\"><td class=\"word\">", sum->module, "</td>", Cells(*sum, step.timed),
      "</tr>\n</tbody></table></div>\n");
}

std::string Sentences(const Json& stats, const Json& figures, const Step& step, const Row& sum, uint64_t budget) {
  const Levels peaks = Peaks(step);
  uint64_t held = 0;
  Read(stats, "reserved_peak", &held);
  std::string text = absl::StrCat("The budget is ", FormatSize(budget), ". With everything kept, ", EscapeHtml(step.of),
                                  " would take ", FormatSize(peaks.before), "; by the plan ", FormatSize(peaks.after));
  if (held > 0) absl::StrAppend(&text, ". The whole run held at most ", FormatSize(held));
  absl::StrAppend(&text, ". In a step ", FormatSize(sum.moved), " move to the host and back, and ",
                  FormatSize(sum.again), " are computed again.");
  std::vector<std::string> times;
  for (const char* name : {"predicted", "measured"}) {
    const double time = Positive(figures, absl::StrCat(name, "_time").c_str());
    if (time > 0) times.push_back(absl::StrFormat("%.2f (%s)", time, name));
  }
  if (!times.empty()) absl::StrAppend(&text, " Its time over that of a plain step: ", absl::StrJoin(times, ", "), ".");
  return text;
}

}  // namespace

std::string BudgetSection(const Json& stats, const Json& report) {
  const auto figures = stats.is_object() ? stats.find("budget") : stats.end();
  uint64_t budget = 0;
  if (figures == stats.end() || !figures->is_object() || !Read(*figures, "budget", &budget)) return "";
  const std::optional<Step> step = ReadStep(report);
  if (!step) return "";
  Row sum;
  const std::string table = Table(*step, &sum);
  return absl::StrCat(
      "<section aria-labelledby=\"budget-title\">\n<h2 id=\"budget-title\">The step in its budget</h2>\n"
      "<p class=\"text\">",
      Sentences(stats, *figures, *step, sum, budget), "</p>\n", Picture(*step, budget).Svg(), table, "</section>\n\n");
}

}  // namespace hotpack
