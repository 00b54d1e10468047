#include "tools/check/stats.h"

#include <cstdio>

namespace hotpack::check {
namespace {

double Field(const Step& step, const char* name) {
  return step.stats.is_object() && step.stats.contains(name) ? step.stats.at(name).get<double>() : 0;
}

double PlannedShare(const Step& step) {
  const double requests = Field(step, "requests_steady");
  return requests > 0 ? 100 * Field(step, "planned_steady") / requests : 0;
}

std::string Text(const char* format, double value) {
  char text[64];
  snprintf(text, sizeof text, format, value);
  return text;
}

bool Steady(const Step& step) { return step.stats.is_object() && Field(step, "steady_iteration") >= 0; }

}  // namespace

void AddStatsFigures(Step* step) {
  if (!step->stats.is_object()) return;
  step->AddFigure("steady_iteration", "ordinal", {Field(*step, "steady_iteration")});
  if (Steady(*step)) {
    step->AddFigure("planned_share", "%", {PlannedShare(*step)});
    step->AddFigure("driver_memory_calls_steady", "calls per iteration", {Field(*step, "driver_memory_calls_steady")});
  }
  // A plain arena takes most of the device, independent of the job.
  const auto arena = step->environment.find("HOTPACK_ARENA");
  if (arena != step->environment.end() && arena->second == "plain") return;
  const double live = Field(*step, "live_peak");
  if (live > 0) step->AddFigure("reserved_over_live", "ratio", {Field(*step, "reserved_peak") / live});
}

void CheckServedByScript(Step* step) {
  step->Check(Steady(*step), "served_by_script", "an iteration is served by the plan as a whole",
              Steady(*step) ? Text("from iteration %.0f on", Field(*step, "steady_iteration")) : "none");
}

void CheckPlannedShare(Step* step) {
  step->Check(Steady(*step) && PlannedShare(*step) >= 99, "planned_share",
              "at least 99 % of the requests from the steady iteration on are served by the plan",
              Steady(*step) ? Text("%.3f %%", PlannedShare(*step)) : "no iteration was steady");
}

void CheckMemory(Step* step) {
  const double live = Field(*step, "live_peak"), reserved = Field(*step, "reserved_peak");
  const double allowed = 1.10 * live + (4 << 20);
  step->Check(live > 0 && reserved <= allowed, "memory", "at most 1.10 times the live peak and 4 MiB is held at once",
              Text("%.0f bytes held", reserved) + Text(", live peak %.0f", live));
}

void CheckServingMemory(Step* step) {
  const double live = Field(*step, "live_peak"), reserved = Field(*step, "reserved_steady");
  const double allowed = 1.02 * live + (4 << 20);
  if (Steady(*step) && live > 0) step->AddFigure("serving_over_live", "ratio", {reserved / live});
  step->Check(Steady(*step) && reserved <= allowed, "serving_memory",
              "at most 1.02 times the live peak and 4 MiB is held while served by the plan",
              Text("%.0f bytes held", reserved) + Text(", live peak %.0f", live));
}

void CheckBelow(const std::string& other, double held, double theirs, Step* step) {
  const auto mebibytes = [](double bytes) { return Text("%.1f MiB", bytes / (1 << 20)); };
  const bool expandable = other == "expandable";
  const bool ok = expandable ? held <= 1.02 * theirs + (4 << 20) : held < theirs;
  step->Check(ok, "below_" + other,
              expandable ? "at most 2 % and 4 MiB more is held in the whole run than PyTorch reserves"
                         : "less is held in the whole run than PyTorch reserves",
              mebibytes(held) + ", PyTorch " + mebibytes(theirs));
}

}  // namespace hotpack::check
