#include "nlohmann/json.hpp"
#include "tools/need/cards.h"
#include "tools/need/need_text.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

Json RowJson(const PeerResult& row) {
  return {{"smallest_device", row.smallest.bytes},
          {"smallest_driver_calls", row.smallest.device_calls},
          {"smallest_synchronizations", row.smallest.synchronizations},
          {"held_at_most", row.reserved_peak}};
}

Json PartsJson(const std::vector<PeakPart>& parts) {
  Json list = Json::array();
  for (const PeakPart& part : parts) {
    Json entry = {{"name", part.name}, {"bytes", part.bytes}};
    for (const auto& [kind, bytes] : part.kinds) entry["kinds"][kind] = bytes;
    list.push_back(std::move(entry));
  }
  return list;
}

Json PeakJson(const NeedPeak& peak) {
  return {{"bytes", peak.bytes},
          {"step", peak.step},
          {"phase", peak.phase},
          {"operator", peak.operation},
          {"line", peak.line},
          {"module", peak.module},
          {"by_kind", PartsJson(peak.by_kind)},
          {"by_module", PartsJson(peak.by_module)},
          {"by_line", PartsJson(peak.by_line)}};
}

Json BudgetJson(const BudgetPlan& plan, const std::string& costs) {
  Json object = {{"percent", plan.percent},
                 {"budget", plan.budget},
                 {"found", plan.found},
                 {"outside", plan.outside > 0},
                 {"to_fit", plan.to_fit}};
  if (!plan.found) return object;
  object.update(Json{{"time_ratio", plan.time_ratio},
                     {"costs", costs},
                     {"arena", plan.arena},
                     {"recomputed", plan.again},
                     {"longest", plan.longest_again},
                     {"swapped", plan.copied},
                     {"host_peak", plan.host_peak}});
  return object;
}

Json CaseJson(const NeedAnswer& answer, const NeedCase& one) {
  Json object;
  if (!answer.parameter.empty()) object["value"] = one.value;
  object["steps"] = one.run.steps;
  object["ended"] = one.run.ended;
  object["seconds"] = one.run.seconds;
  object["requests"] = one.need.comparison.requests;
  object["processes"] = one.run.processes;
  object["passed_through"] = one.run.passed_through;
  object["live_peak"] = one.need.comparison.live_peak;
  object["hotpack"] = RowJson(one.need.comparison.hotpack);
  for (const PeerResult& peer : one.need.comparison.peers) object[peer.name] = RowJson(peer);
  object["needed_with_context"] = NeededWithContext(one.need);
  object["growth"] = one.need.growth_known ? Json(one.need.growth) : Json();
  object["same_requests"] = one.need.repeats_known ? Json(one.need.same_requests) : Json();
  object["each_step"] = Json::array();
  for (const NeedStep& step : one.need.steps) {
    object["each_step"].push_back({{"live_peak", step.live_peak}, {"live_end", step.live_end}});
  }
  object["peak"] = one.need.peak ? PeakJson(*one.need.peak) : Json();
  object["budgets"] = Json::array();
  for (const BudgetPlan& plan : one.budgets.plans) object["budgets"].push_back(BudgetJson(plan, one.budgets.costs));
  object["reads"] = Json::array();
  for (const ValueRead& read : one.run.reads) object["reads"].push_back({{"line", read.line}, {"times", read.times}});
  if (answer.fits) object["fits"] = Fits(one, answer.fits->bytes);
  if (answer.cards) {
    object["cards"] = Json::array();
    for (const Card& card : Cards()) {
      object["cards"].push_back({{"name", card.name}, {"usable", card.usable}, {"fits", Fits(one, card.usable)}});
    }
  }
  return object;
}

}  // namespace

Json NeedJson(const NeedAnswer& answer) {
  Json object = {{"command", answer.cases[answer.detailed].run.command}};
  if (answer.fits) object["fits_bytes"] = answer.fits->bytes;
  object["not_simulated"] = Json::array();
  for (const UnsimulatedMemory& part : UnsimulatedMemories()) {
    object["not_simulated"].push_back(
        {{"what", part.what}, {"bytes", part.bytes}, {"always", part.always}, {"source", part.source}});
  }
  if (answer.parameter.empty()) {
    object.update(CaseJson(answer, answer.cases[answer.detailed]));
    return object;
  }
  object["parameter"] = answer.parameter;
  if (answer.ranks > 0) object["ranks"] = answer.ranks;
  if (answer.fits && answer.ranks == 0) {
    object["largest"] = answer.largest ? Json(*answer.largest) : Json();
    object["largest_at_least"] = answer.largest_at_least;
  }
  object["cases"] = Json::array();
  for (const NeedCase& one : answer.cases) object["cases"].push_back(CaseJson(answer, one));
  return object;
}

}  // namespace hotpack
