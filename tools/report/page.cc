#include "tools/report/page.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/recording/run_course.h"
#include "tools/report/budget_section.h"
#include "tools/report/page_parts.h"
#include "tools/report/show_plan.h"
#include "tools/report/svg.h"

namespace hotpack {
namespace {

std::string SizeText(Bytes bytes) { return FormatSize(static_cast<uint64_t>(bytes)); }

// "None" and "all" only where they are exact.
std::string PercentText(double percent) {
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  if (percent > 99.9 && percent < 100) return "> 99.9 %";
  if (percent == 0 || percent == 100) return absl::StrFormat("%.0f %%", percent);
  return absl::StrFormat("%.1f %%", percent);
}

// Returns the recorded program's name, else the recording's.
std::string Heading(const PageInput& input) {
  if (!input.title.empty()) return input.title;
  const std::string& program = input.file != nullptr ? input.file->origin.program : "";
  const std::string name = std::filesystem::path(program.empty() ? input.name : program).filename().string();
  return name.empty() ? "recording" : name;
}

std::string Subtitle(const PageInput& input) {
  const ReportModel& model = *input.model;
  std::string text;
  if (!input.command.empty()) absl::StrAppend(&text, "<code>", EscapeHtml(input.command), "</code> · ");
  absl::StrAppend(&text, EscapeHtml(model.what), " · ", model.blocks.size(),
                  model.blocks.size() == 1 ? " block" : " blocks");
  if (!model.iterations.empty()) {
    const auto equal =
        std::count_if(model.iterations.begin(), model.iterations.end(),
                      [](const RunIteration& iteration) { return iteration.state == IterationState::kEqual; });
    absl::StrAppend(&text, ", ", equal, equal == 1 ? " time" : " times");
  }
  if (input.file == nullptr) return text;
  const TraceOrigin& origin = input.file->origin;
  if (origin.created_ns > 0) absl::StrAppend(&text, " · <time>", UtcText(origin.created_ns), "</time>");
  if (input.command.empty())
    absl::StrAppend(&text, " · ", EscapeHtml(std::filesystem::path(input.name).filename().string()));
  return text;
}

// Compares `theirs` with hotpack's bytes, in words.
std::string AgainstHotpack(uint64_t theirs, uint64_t ours) {
  if (theirs == ours) return "as much as hotpack";
  const double more = 100.0 * (static_cast<double>(theirs) / static_cast<double>(std::max<uint64_t>(1, ours)) - 1);
  return EscapeHtml(absl::StrCat(PercentText(std::abs(more)), more < 0 ? " less than hotpack" : " more than hotpack"));
}

// The headline: the most held in the whole run, by hotpack's engine and by PyTorch's allocators.
template <typename Card>
void AddHeldCards(const Comparison& comparison, Card card) {
  if (comparison.requests == 0) return;
  const uint64_t ours = comparison.hotpack.reserved_peak;
  card("hotpack held at most", FormatSize(ours), "its engine, in the whole run");
  for (const PeerResult& peer : comparison.peers) {
    if (peer.name == "pytorch")
      card("PyTorch held at most", FormatSize(peer.reserved_peak), AgainstHotpack(peer.reserved_peak, ours));
    if (peer.name == "pytorch-expandable") {
      card("... with expandable segments", FormatSize(peer.reserved_peak), AgainstHotpack(peer.reserved_peak, ours));
    }
  }
  if (comparison.held_while_served > 0)
    card("hotpack held while served", FormatSize(comparison.held_while_served), "once its plan was in force");
}

std::string Cards(const PageInput& input) {
  const ReportModel& model = *input.model;
  const Bytes height = model.packed.placement.height, bound = model.packed.lower_bound;
  std::string cards;
  auto card = [&](absl::string_view term, const std::string& value, const std::string& below) {
    absl::StrAppend(&cards, "<div class=\"card\"><dl style=\"margin:0\"><dt>", term, "</dt><dd>", value,
                    "</dd></dl><p>", below, "</p></div>\n");
  };
  AddHeldCards(input.comparison, card);
  card("Plan", SizeText(height),
       absl::StrFormat("of this iteration, %.4f of its lower bound%s",
                       bound > 0 ? static_cast<double>(height) / static_cast<double>(bound) : 1.0,
                       model.packed.proven_optimal ? ", optimal" : ""));
  card("Lower bound", SizeText(bound), "no placement of this iteration is lower");
  const Bytes unplanned = model.unplanned.most;
  if (unplanned > 0)
    card("Not in the plan", SizeText(unplanned),
         absl::StrCat(model.unplanned.blocks, model.unplanned.blocks == 1 ? " block" : " blocks", ", such as weights"));
  Bytes in_all = 0;
  for (const Block& block : model.instance.blocks) in_all += block.size;
  card("Blocks", std::to_string(model.blocks.size()),
       absl::StrCat(SizeText(in_all), " in all, ",
                    absl::StrFormat("%.1f", bound > 0 ? static_cast<double>(in_all) / static_cast<double>(bound) : 0.0),
                    " times the bound"));
  if (input.stats.is_object() && input.stats.value("requests", uint64_t{0}) > 0) {
    const double share = 100.0 * static_cast<double>(input.stats.value("planned", uint64_t{0})) /
                         static_cast<double>(input.stats.value("requests", uint64_t{1}));
    card("Served by the plan", EscapeHtml(PercentText(share)),
         absl::StrCat("of ", CountText(input.stats.value("requests", uint64_t{0}), "request"), " in this run"));
  }
  return cards;
}

std::string Notices(const PageInput& input) {
  const ReportModel& model = *input.model;
  std::string notices;
  auto notice = [&](const std::string& text) { absl::StrAppend(&notices, "<p class=\"notice\">", text, "</p>\n"); };
  if (model.blocks.size() > input.block_limit) {
    notice(absl::StrCat(
        "There are ", model.blocks.size(), " blocks; the ", input.block_limit,
        " with the largest area (size times life) are drawn and listed. Curves and figures are of all of them."));
  }
  if (input.file != nullptr && input.file->origin.end == TraceOrigin::End::kNotClosed) {
    notice("The program ended without closing the recording, or was still running: what came later is not in it.");
  }
  if (input.file != nullptr && input.file->origin.end == TraceOrigin::End::kLimitReached) {
    notice("The recording reached its size limit: what came later is not in it.");
  }
  if (input.file != nullptr && input.file->origin.end == TraceOrigin::End::kDiskFull) {
    notice("The disk was full: what came later is not in the recording.");
  }
  if (input.file != nullptr) {
    for (const std::string& sentence : CourseSentences(CourseOf(*input.file))) notice(EscapeHtml(sentence));
  }
  return notices;
}

// Iterations that differ; empty if they do not.
std::string Sequence(const PageInput& input) {
  if (!input.model->sequence) return "";
  return absl::StrCat(
      "<section aria-labelledby=\"sequence-title\">\n<h2 id=\"sequence-title\">What the iterations have "
      "in common</h2>\n<p class=\"text\">",
      SequenceText(*input.model->sequence), "</p>\n", SequenceSvg(*input.model->sequence), "</section>\n");
}

// Without a script: the picture for paper, and the largest blocks.
std::string Fallback(const PageInput& input) {
  const ReportModel& model = *input.model;
  std::vector<uint32_t> order(model.blocks.size());
  std::iota(order.begin(), order.end(), 0);
  constexpr size_t kMax = 20;
  const size_t shown = std::min(kMax, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](uint32_t a, uint32_t b) {
                      const Bytes size_a = model.instance.blocks[a].size, size_b = model.instance.blocks[b].size;
                      return size_a != size_b ? size_a > size_b : a < b;
                    });
  std::string rows;
  for (size_t k = 0; k < shown; ++k) {
    const Block& block = model.instance.blocks[order[k]];
    absl::StrAppend(&rows, "<tr><td>", model.blocks[order[k]].request, "</td><td>", SizeText(block.size), "</td><td>[",
                    block.residency[0].begin, ", ", block.residency[0].end, ")</td><td>",
                    model.packed.placement.offsets[order[k]], "</td></tr>\n");
  }
  return absl::StrCat(
      "<style>.paper { display: block } .stage, .tools, .help, #peers-section, #run-section, .columns { display: none "
      "}</style>\n"
      "<section><p class=\"notice\">This page draws with a script, which is off here: there is the picture "
      "alone.</p>\n<h2>Largest "
      "blocks</h2><table><thead><tr><th>request</th><th>size</th><th>residency</th><th>offset</th></tr></"
      "thead><tbody>\n",
      rows, "</tbody></table></section>");
}

}  // namespace

std::string EscapeHtml(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Page(const PageInput& input) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  // Written as an escape, "<" cannot end the element that holds the data, nor begin a comment in it.
  const std::string data =
      absl::StrReplaceAll(PageData(input).dump(-1, ' ', false, Handler::replace), {{"<", "\\u003c"}});
  const std::string heading = EscapeHtml(Heading(input));
  const std::pair<absl::string_view, std::string> parts[] = {
      {"@TITLE@", heading + " · hotpack report"},
      {"@STYLE@", kPageCss},
      {"@HEADING@", heading},
      {"@SUBTITLE@", Subtitle(input)},
      {"@NOTICES@", Notices(input)},
      {"@CARDS@", Cards(input)},
      {"@PAPER@", Svg(*input.model, SvgOptions{1120, 430})},
      {"@BUDGET@", BudgetSection(input.stats, input.budget)},
      {"@SEQUENCE@", Sequence(input)},
      {"@FALLBACK@", Fallback(input)},
      {"@FOOTER@", "Written by hotpack " HOTPACK_VERSION_TEXT " from " + EscapeHtml(input.name) +
                       ". Sizes are rounded up to 512 bytes, as the device does; the clock counts " +
                       (input.model->period > 0 ? "requests of the iteration." : "requests and releases.")},
      {"@DATA@", data},
      {"@SCRIPT@", kPageScript}};
  std::string page;
  absl::string_view rest = kPageHtml;
  for (const auto& [name, text] : parts) {  // in the order of the template; inserted text is not scanned again
    const size_t at = rest.find(name);
    if (at == absl::string_view::npos) continue;
    absl::StrAppend(&page, rest.substr(0, at), text);
    rest.remove_prefix(at + name.size());
  }
  return absl::StrCat(page, rest);
}

}  // namespace hotpack
