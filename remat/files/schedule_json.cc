#include "remat/files/schedule_json.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace hotpack::remat {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "hotpack-plan";
constexpr int kVersion = 1;
constexpr const char* kKinds[] = {"run", "drop", "offload", "prefetch", "forget"};  // by ActionKind

bool IsNumber(const Json& json, int64_t below) {
  return json.is_number_unsigned() && json.get<uint64_t>() < static_cast<uint64_t>(below);
}

// Returns an empty string, or the fault of the action.
std::string ReadAction(const Json& json, const Graph& graph, Action* action) {
  if (!json.is_array() || json.size() < 2 || json.size() > 3 || !json[0].is_string()) return "no action";
  const auto kind = std::find(std::begin(kKinds), std::end(kKinds), json[0].get<std::string>());
  if (kind == std::end(kKinds)) return absl::StrCat("'", json[0].get<std::string>(), "' is not known");
  action->kind = static_cast<ActionKind>(kind - std::begin(kKinds));
  const bool runs = action->kind == ActionKind::kRun;
  const auto targets = static_cast<int64_t>(runs ? graph.operators.size() : graph.storages.size());
  if (!IsNumber(json[1], targets)) return absl::StrCat("there is no ", runs ? "operator " : "storage ", json[1].dump());
  action->target = json[1].get<int32_t>();
  if (json.size() == 2) return "";
  if (!runs || !json[2].is_array()) return "no list of pairs in place";
  for (const Json& pair : json[2]) {
    if (!IsNumber(pair, static_cast<int64_t>(graph.operators[static_cast<size_t>(action->target)].in_place.size()))) {
      return absl::StrCat("operator ", action->target, " has no pair in place ", pair.dump());
    }
    action->in_place.push_back(pair.get<int32_t>());
  }
  return "";
}

// Returns an empty string, or the fault.
std::string Read(const Json& document, const Graph& graph, Schedule* schedule) {
  if (!document.is_object() || document.value("format", Json()) != kFormat ||
      document.value("version", Json()) != kVersion) {
    return absl::StrCat("not of format ", kFormat, ", version ", kVersion);
  }
  if (document.value("operators", Json()) != graph.operators.size() ||
      document.value("storages", Json()) != graph.storages.size()) {
    return "a plan of another graph";
  }
  const Json actions = document.value("actions", Json()), saved = document.value("saved_states", Json::array());
  if (!actions.is_array() || !saved.is_array()) return "no list of actions";
  for (size_t i = 0; i < actions.size(); ++i) {
    if (std::string fault = ReadAction(actions[i], graph, &schedule->actions.emplace_back()); !fault.empty()) {
      return absl::StrCat("action ", i, ": ", fault);
    }
  }
  for (const Json& op : saved) {
    if (!IsNumber(op, static_cast<int64_t>(graph.operators.size())))
      return absl::StrCat("saved_states: there is no operator ", op.dump());
    schedule->saved_states.push_back(op.get<OperatorId>());
  }
  return "";
}

// Returns the keys of a plan with updates in slices, or with state on the host.
std::string SlicesText(const Graph& graph, const PlanSlices& slices) {
  const std::string on_host =
      slices.on_host > 0 ? absl::StrCat(",\n \"state_on_host\": true, \"host_slices\": ", slices.on_host) : "";
  if (slices.bytes == 0) return on_host;
  Json lists = Json::array();
  for (const std::vector<StorageId>& slice : slices.storages) {
    Json& names = lists.emplace_back(Json::array());
    for (StorageId id : slice) {
      const Storage& storage = graph.storages[At(id)];
      if (storage.given && storage.kept && storage.held) names.push_back(storage.name);  // parameters
    }
  }
  return absl::StrCat(",\n \"slice_bytes\": ", slices.bytes,
                      ", \"slices\": ", lists.dump(-1, ' ', false, Json::error_handler_t::replace), on_host);
}

}  // namespace

std::string FormatScheduleJson(const Graph& graph, const Schedule& schedule, const PlanSlices& slices) {
  std::string text = absl::StrCat("{\"format\": \"", kFormat, "\", \"version\": ", kVersion,
                                  ", \"operators\": ", graph.operators.size(),
                                  ", \"storages\": ", graph.storages.size(), SlicesText(graph, slices),
                                  ",\n \"saved_states\": ", Json(schedule.saved_states).dump(), ",\n \"actions\": [");
  const char* separator = "\n  ";
  for (const Action& action : schedule.actions) {
    Json json = {kKinds[static_cast<size_t>(action.kind)], action.target};
    if (!action.in_place.empty()) json.push_back(action.in_place);
    absl::StrAppend(&text, separator, json.dump());
    separator = ",\n  ";
  }
  return text + "]}\n";
}

absl::StatusOr<PlanSlices> SlicesOfPlan(std::string_view text, std::string_view file) {
  const std::string name(file);
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(name, ": no JSON"));
  PlanSlices slices;
  if (!document.is_object()) return slices;
  if (const auto found = document.find("slice_bytes"); found != document.end()) {
    if (!IsNumber(*found, INT64_MAX)) return absl::InvalidArgumentError(absl::StrCat(name, ": slice_bytes is no size"));
    slices.bytes = found->get<Bytes>();
  }
  // Plans of before had all state there, or none.
  if (document.value("state_on_host", Json(false)) == true) slices.on_host = SIZE_MAX;
  if (const auto found = document.find("host_slices"); found != document.end()) {
    if (!IsNumber(*found, INT32_MAX))
      return absl::InvalidArgumentError(absl::StrCat(name, ": host_slices is no count"));
    slices.on_host = found->get<size_t>();
  }
  return slices;
}

absl::StatusOr<Schedule> ParseScheduleJson(std::string_view text, std::string_view file, const Graph& graph) {
  const std::string name(file);
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return absl::InvalidArgumentError(absl::StrCat(name, ": no JSON"));
  Schedule schedule;
  if (std::string fault = Read(document, graph, &schedule); !fault.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", fault));
  }
  return schedule;
}

}  // namespace hotpack::remat
