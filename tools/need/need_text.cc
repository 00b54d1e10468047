#include "tools/need/need_text.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "tools/cli/count_text.h"
#include "tools/cli/size_text.h"
#include "tools/need/cards.h"
#include "tools/need/fold_modules.h"

namespace hotpack {
namespace {

constexpr size_t kRows = 8;  // of a table at the peak: one screen

// printf to the end of `text`. One line has at most 511 characters.
template <typename... Arguments>
void Add(std::string* text, const char* format, Arguments... arguments) {
  char line[512];
  snprintf(line, sizeof(line), format, arguments...);
  *text += line;
}

double MiB(uint64_t bytes) { return static_cast<double>(bytes) / 1048576.0; }

// The program's name; for an interpreter its script's.
std::string Title(const std::vector<std::string>& command) {
  const auto name = [](const std::string& word) { return std::filesystem::path(word).filename().string(); };
  const bool python = name(command.front()).starts_with("python");
  const auto script = std::find_if(command.begin() + 1, command.end(),
                                   [](const std::string& word) { return !word.empty() && word.front() != '-'; });
  return python && script != command.end() ? name(*script) : name(command.front());
}

const PeerResult& Peer(const Need& need, const char* name) {
  for (const PeerResult& peer : need.comparison.peers) {
    if (peer.name == name) return peer;
  }
  return need.comparison.hotpack;
}

void AddSmallest(const Need& need, std::string* text) {
  const PeerResult &hotpack = need.comparison.hotpack, &usual = Peer(need, "pytorch"),
                   &expandable = Peer(need, "pytorch-expandable");
  Add(text, "%-28s %12s %22s %12s\n", "MiB", "hotpack", "expandable segments", "PyTorch");
  Add(text, "%-28s %12.1f %22.1f %12.1f\n", "smallest device", MiB(hotpack.smallest.bytes),
      MiB(expandable.smallest.bytes), MiB(usual.smallest.bytes));
  Add(text, "%-28s %12.1f %22.1f %12.1f\n", "held at most on a large one", MiB(hotpack.reserved_peak),
      MiB(expandable.reserved_peak), MiB(usual.reserved_peak));
}

void AddRanks(const NeedAnswer& answer, std::string* text) {
  if (answer.ranks == 0) return;
  Add(text, "each rank ran alone in fake process groups of %d: nothing was sent\n", answer.ranks);
  if (answer.cases.size() < static_cast<size_t>(answer.ranks)) {
    *text += "of these ranks ran:";
    for (const NeedCase& one : answer.cases) *text += " " + one.value;
    *text += "\n";
  }
}

void AddUnsimulated(std::string* text) {
  *text += "not simulated, in addition:\n";
  for (const UnsimulatedMemory& part : UnsimulatedMemories()) {
    Add(text, "  %-40s %12.1f   %s\n", part.what, MiB(part.bytes), part.source);
  }
}

// "optimizer_state", a key of the graph, as words.
std::string Words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

// "   parameter 62.5, optimizer state 125.0"; empty for a part without kinds.
std::string KindsText(const PeakPart& part) {
  std::string text;
  for (const auto& [name, bytes] : part.kinds) {
    char entry[128];
    snprintf(entry, sizeof(entry), "%s%s %.1f", text.empty() ? "   " : ", ", Words(name).c_str(), MiB(bytes));
    text += entry;
  }
  return text;
}

void AddParts(const char* title, const std::vector<PeakPart>& parts, uint64_t whole, std::string* text) {
  if (parts.empty()) return;
  Add(text, "  %s\n", title);
  int width = 36;
  for (size_t i = 0; i < parts.size() && i < kRows; ++i) {
    width = std::max(width, static_cast<int>(std::min(parts[i].name.size(), size_t{72})));
  }
  uint64_t rest = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i >= kRows) {
      rest += parts[i].bytes;
      continue;
    }
    const double share = whole == 0 ? 0 : 100.0 * static_cast<double>(parts[i].bytes) / static_cast<double>(whole);
    Add(text, "    %-*s %12.1f %5.0f %%%s\n", width, parts[i].name.empty() ? "(unknown)" : parts[i].name.c_str(),
        MiB(parts[i].bytes), share, KindsText(parts[i]).c_str());
  }
  if (parts.size() > kRows)
    Add(text, "    %-*s %12.1f\n", width, (std::to_string(parts.size() - kRows) + " more").c_str(), MiB(rest));
}

// Returns the step of the most live memory, from 2 on, if that is not the recorded one; 0: it is another moment. A
// first step is no good one to record: it makes the optimizer's state.
size_t HighestStep(const Need& need) {
  for (size_t i = 1; i < need.steps.size() && i + 1 != need.peak->step; ++i) {
    if (need.steps[i].live_peak == need.comparison.live_peak) return i + 1;
  }
  return 0;
}

void AddPeak(const Need& need, std::string* text) {
  if (!need.peak) {
    Add(text, "live at most %.1f MiB\n", MiB(need.comparison.live_peak));
    return;
  }
  const NeedPeak& peak = *need.peak;
  std::string where;
  if (peak.step > 0) where += ", in step " + std::to_string(peak.step);
  if (!peak.phase.empty()) where += ", " + peak.phase;
  if (!peak.operation.empty()) where += ", " + peak.operation;
  if (!peak.line.empty()) where += " (" + peak.line + ")";
  Add(text, "live at most %.1f MiB", MiB(need.comparison.live_peak));
  // The graph is of one step. Another one, or what lies between them, may have more.
  if (peak.bytes < need.comparison.live_peak) {
    const size_t highest = HighestStep(need);
    const std::string again = highest == 0 ? ""
                                           : " (in step " + std::to_string(highest) + ": --steps " +
                                                 std::to_string(highest) + " records that one)";
    Add(text, ", outside the recorded step%s\nof that step: %.1f MiB", again.c_str(), MiB(peak.bytes));
  }
  *text += where + "\n";
  std::vector<PeakPart> kinds = peak.by_kind;
  for (PeakPart& kind : kinds) kind.name = Words(kind.name);
  AddParts("by kind", kinds, peak.bytes, text);
  AddParts("by module", FoldModules(peak.by_module), peak.bytes, text);
  AddParts("by line", peak.by_line, peak.bytes, text);
}

// `ended`: the program would have made more steps.
void AddSteps(const Need& need, bool ended, std::string* text) {
  if (need.steps.empty()) {
    *text += "no steps are marked: the figures are of the whole run\n";
    return;
  }
  *text += "peak of each step:";
  for (size_t i = 0; i < need.steps.size() && i < kRows; ++i) Add(text, " %.1f", MiB(need.steps[i].live_peak));
  Add(text, "%s MiB; between steps %.1f MiB are live", need.steps.size() > kRows ? " ..." : "",
      MiB(need.steps.back().live_end));
  if (!need.growth_known) {
    *text += "\n";
  } else if (need.long_growth) {
    Add(text, "; memory grows by %s a step, over %s\n", FormatSize(need.long_growth->bytes).c_str(),
        CountText(need.long_growth->iterations, "step").c_str());
  } else if (need.growth > 0 && !need.long_growth_known) {
    Add(text, "; memory grows: %.2f MiB from the last step but one to the last\n",
        MiB(static_cast<uint64_t>(need.growth)));
  } else {
    *text += "; memory does not grow from step to step\n";
  }
  const size_t count = need.steps.size();
  if (need.repeats_known && !need.same_requests && need.steps[count - 1].live_peak != need.steps[count - 2].live_peak) {
    *text += "the steps differ: the largest of those seen counts, so give the longest batch";
    *text += ended ? ", or all steps (--steps 0)\n" : "\n";
  }
}

void AddReads(const SimulatedRun& run, std::string* text) {
  if (run.reads.empty()) return;
  *text += "values were read, which are zeros here; if they decide what the program does, it may do something else: ";
  for (size_t i = 0; i < run.reads.size() && i < 5; ++i) *text += (i == 0 ? "" : ", ") + run.reads[i].line;
  *text += run.reads.size() > 5 ? ", ...\n" : "\n";
}

void AddBudgets(const BudgetPlans& budgets, std::string* text) {
  if (budgets.plans.empty()) return;
  const auto outside = [](const BudgetPlan& plan) { return plan.outside > 0; };
  if (std::all_of(budgets.plans.begin(), budgets.plans.end(), outside)) {
    Add(text, "\nwith less memory: no plan of the recorded step helps, because %.1f MiB are live outside of it\n",
        MiB(budgets.plans.front().outside));
    return;
  }
  Add(text, "\nwith less memory, as hotpack plan would do it%s%s\n",
      budgets.costs.empty() ? "" : "; times: ", budgets.costs.c_str());
  for (const BudgetPlan& plan : budgets.plans) {
    Add(text, "%12.1f MiB, %2d %%%s", MiB(plan.budget), plan.percent, plan.to_fit ? ", to fit" : "");
    if (plan.outside > 0) {
      Add(text, "   no plan of the step helps: %.1f MiB are live outside of it\n", MiB(plan.outside));
      continue;
    }
    if (!plan.found) {
      *text += "   no plan was found\n";
      continue;
    }
    Add(text, "   %.3f times the time; computed again: %s%s%s%s", plan.time_ratio,
        CountText(plan.again, "operator").c_str(), plan.longest_again.empty() ? "" : ", longest ",
        plan.longest_again.c_str(), plan.copied == 0 ? "\n" : "");
    if (plan.copied > 0) {
      Add(text, "; on the host: %s, %.1f MiB\n", CountText(plan.copied, "storage").c_str(), MiB(plan.host_peak));
    }
  }
}

bool SameRow(const NeedCase& a, const NeedCase& b) {
  for (const char* peer : {"pytorch", "pytorch-expandable"}) {
    if (Peer(a.need, peer).smallest.bytes != Peer(b.need, peer).smallest.bytes) return false;
  }
  return a.need.comparison.hotpack.smallest.bytes == b.need.comparison.hotpack.smallest.bytes;
}

// Returns the end of the cases that share a row: ranks that need the same.
size_t EndOfRow(const NeedAnswer& answer, size_t begin) {
  size_t end = begin + 1;
  while (answer.ranks > 0 && end < answer.cases.size() && SameRow(answer.cases[begin], answer.cases[end])) ++end;
  return end;
}

void AddCases(const NeedAnswer& answer, std::string* text) {
  if (answer.parameter.empty()) return;
  Add(text, "\n%-28s %12s %22s %12s%s\n", ("smallest device by " + answer.parameter).c_str(), "hotpack",
      "expandable segments", "PyTorch", answer.fits ? ("   fits " + answer.fits->text).c_str() : "");
  for (size_t i = 0; i < answer.cases.size(); i = EndOfRow(answer, i)) {
    const NeedCase& one = answer.cases[i];
    const NeedCase& last = answer.cases[EndOfRow(answer, i) - 1];
    const Comparison& rows = one.need.comparison;
    const std::string value = &one == &last ? one.value : one.value + " to " + last.value;
    Add(text, "%28s %12.1f %22.1f %12.1f%s\n", value.c_str(), MiB(rows.hotpack.smallest.bytes),
        MiB(Peer(one.need, "pytorch-expandable").smallest.bytes), MiB(Peer(one.need, "pytorch").smallest.bytes),
        !answer.fits                    ? ""
        : Fits(one, answer.fits->bytes) ? "   yes"
                                        : "   no");
  }
  if (answer.largest) {
    Add(text, "the largest %s that fits %s is %s %" PRId64 ", by a run\n", answer.parameter.c_str(),
        answer.fits->text.c_str(), answer.largest_at_least ? "at least" : "about", *answer.largest);
  }
}

void AddCards(const NeedCase& one, std::string* text) {
  *text += "\ncard                label, GB   usable, MiB   fits\n";
  for (const Card& card : Cards()) {
    Add(text, "%-16s %12" PRIu64 " %13.0f   %s\n", card.name, card.label_gigabytes, MiB(card.usable),
        Fits(one, card.usable) ? "yes" : "no");
  }
}

}  // namespace

bool Fits(const NeedCase& one, uint64_t bytes) {
  const uint64_t needed = NeededWithContext(one.need);
  return needed > 0 && needed <= bytes;
}

std::string NeedText(const NeedAnswer& answer) {
  const NeedCase& last = answer.cases[answer.detailed];
  std::string text;
  double seconds = 0;
  for (const NeedCase& one : answer.cases) seconds += one.run.seconds;
  const std::string times =
      answer.cases.size() > 1 ? " " + CountText(answer.cases.size(), "time") + "," : std::string();
  Add(&text, "%s: %s simulated%s in %.0f s, no GPU used%s%s\n", Title(last.run.command).c_str(),
      last.run.ended || last.run.steps > 0 ? CountText(last.run.steps, "step").c_str() : "the whole run", times.c_str(),
      seconds, answer.parameter.empty() ? "" : "; below: ",
      answer.parameter.empty() ? "" : (answer.parameter + " " + last.value).c_str());
  if (last.run.processes > 1) {
    Add(&text, "of its %s the one with most requests\n", CountText(last.run.processes, "process").c_str());
  }
  text += "\n";
  AddRanks(answer, &text);
  AddSmallest(last.need, &text);
  AddUnsimulated(&text);
  text += "\n";
  AddPeak(last.need, &text);
  AddSteps(last.need, last.run.ended, &text);
  AddReads(last.run, &text);
  if (last.run.passed_through > 0) {
    Add(&text, "%s went past hotpack and are missing here\n", CountText(last.run.passed_through, "request").c_str());
  }
  AddBudgets(last.budgets, &text);
  AddCases(answer, &text);
  if (answer.cards) AddCards(last, &text);
  if (answer.fits && answer.parameter.empty()) {
    const uint64_t needed = NeededWithContext(last.need), own = last.need.comparison.hotpack.smallest.bytes;
    Add(&text, "\n%s: %s (%.1f MiB needed, with CUDA's context: %.1f of the job and %.1f that are not simulated)\n",
        ("fits " + answer.fits->text).c_str(), Fits(last, answer.fits->bytes) ? "yes" : "no", MiB(needed), MiB(own),
        MiB(needed - own));
  }
  return text;
}

}  // namespace hotpack
