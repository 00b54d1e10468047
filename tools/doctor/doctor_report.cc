#include "tools/doctor/doctor_report.h"

#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tools/cli/size_text.h"
#include "tools/run/no_plan_text.h"

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

std::string FileName(const std::string& path) { return std::filesystem::path(path).filename().string(); }

std::string VersionText(int version) { return absl::StrCat(version / 1000, ".", version % 1000 / 10); }

void Print(const char* name, const std::string& text) { printf("%-12s %s\n", name, text.c_str()); }

void PrintMachine(const MachineFacts& machine) {
  if (machine.driver.empty()) {
    Print("driver", "none");
  } else {
    Print("driver",
          absl::StrCat(machine.simulated ? "simulated, " : "", "CUDA ", VersionText(machine.driver_version),
                       machine.kernel_module.empty() ? "" : ", module " + machine.kernel_module, ", ", machine.driver));
  }
  for (size_t i = 0; i < machine.devices.size(); ++i) {
    const DeviceFacts& device = machine.devices[i];
    Print(i == 0 ? "devices" : "", absl::StrCat(i, ": ", device.name, ", ", FormatSize(device.bytes),
                                                ", virtual memory management: ", device.virtual_memory ? "yes" : "no"));
  }
}

void PrintProcess(const ProcessFacts& process) {
  Print("process", absl::StrCat(process.pid, ", ", process.program, process.enabled ? "" : ", left alone"));
  const std::string reason = process.stats.requests > 0 ? NoPlanText(process.stats) : "";
  Print("  requests", absl::StrCat(process.stats.requests, " served, ", process.stats.planned, " of them by the plan",
                                   reason.empty() ? "" : " (" + reason + ")", "; ", process.stats.passed_through,
                                   " left to the driver"));
  Print("  hooks", absl::StrCat(process.hooks_in_driver, " of this driver's functions; ", process.hooks_looked_up,
                                " were looked up"));
  for (const ProcessFacts::Library& library : process.libraries) {
    Print("", absl::StrCat(FileName(library.path), " looked up ", library.looked_up, ", ", library.hooked,
                           " of them hooked"));
  }
  std::string calls;
  for (const auto& [symbol, count] : process.handed_on)
    absl::StrAppend(&calls, calls.empty() ? "" : ", ", symbol, " ", count);
  if (!calls.empty()) Print("  handed on", calls);
}

Json ToJson(const ProcessFacts& process) {
  Json object = {{"pid", process.pid},
                 {"program", process.program},
                 {"enabled", process.enabled},
                 {"driver", process.driver},
                 {"requests", process.stats.requests},
                 {"planned", process.stats.planned},
                 {"passed_through", process.stats.passed_through},
                 {"hooks_in_driver", process.hooks_in_driver},
                 {"hooks_looked_up", process.hooks_looked_up},
                 {"unknown_variants", process.unknown_variants},
                 {"not_hooked", process.not_hooked},
                 {"deepbind", process.deepbind},
                 {"handed_on", Json::object()},
                 {"libraries", Json::array()}};
  for (const auto& [symbol, count] : process.handed_on) object["handed_on"][symbol] = count;
  for (const ProcessFacts::Library& library : process.libraries) {
    object["libraries"].push_back(
        {{"path", library.path}, {"looked_up", library.looked_up}, {"hooked", library.hooked}});
  }
  return object;
}

Json ToJson(const ProgramFacts& program) {
  return {{"path", program.path},
          {"interpreter", program.interpreter},
          {"static", program.is_static},
          {"other_machine", program.is_other_machine},
          {"other_c_library", program.is_other_library},
          {"privileged", program.is_privileged}};
}

Json ToJson(const MachineFacts& machine) {
  Json object = {{"simulated", machine.simulated},
                 {"driver", machine.driver},
                 {"driver_version", machine.driver_version},
                 {"kernel_module", machine.kernel_module},
                 {"failure", machine.failure},
                 {"devices", Json::array()}};
  for (const DeviceFacts& device : machine.devices) {
    object["devices"].push_back({{"name", device.name},
                                 {"bytes", device.bytes},
                                 {"virtual_memory", device.virtual_memory},
                                 {"concurrent_managed_access", device.managed_faults}});
  }
  return object;
}

}  // namespace

void PrintDiagnosis(const Diagnosis& diagnosis, const Advice& advice) {
  PrintMachine(diagnosis.machine);
  for (size_t i = 0; i < diagnosis.environment.size(); ++i) {
    const auto& [name, value] = diagnosis.environment[i];
    Print(i == 0 ? "environment" : "", absl::StrCat(name, "=", value));
  }
  if (diagnosis.ran) {
    const ProgramFacts& program = diagnosis.program;
    Print("program", program.path + (program.interpreter.empty() ? "" : ", a script for " + program.interpreter));
    for (const ProcessFacts& process : diagnosis.processes) {
      if (process.driver) PrintProcess(process);
    }
  }
  for (const std::string& note : advice.notes) Print("note", note);
  for (const std::string& sentence : advice.to_do) Print("to do", sentence);
  if (advice.to_do.empty()) {
    Print("to do", diagnosis.ran ? "nothing: hotpack serves this program"
                                 : "nothing; hotpack doctor -- CMD ... looks at a program");
  }
}

void PrintDiagnosisJson(const Diagnosis& diagnosis, const Advice& advice) {
  Json object = {{"machine", ToJson(diagnosis.machine)}, {"environment", Json::object()}};
  for (const auto& [name, value] : diagnosis.environment) object["environment"][name] = value;
  if (diagnosis.ran) {
    object["program"] = ToJson(diagnosis.program);
    object["exit_code"] = diagnosis.exit_code;
    object["processes"] = Json::array();
    for (const ProcessFacts& process : diagnosis.processes) object["processes"].push_back(ToJson(process));
    object["without_hotpack"] = Json::array();
    for (const MissedProcess& missed : diagnosis.missed) {
      object["without_hotpack"].push_back({{"pid", missed.pid}, {"program", missed.program}});
    }
  }
  object["notes"] = advice.notes;
  object["to_do"] = advice.to_do;
  printf("%s\n", object.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
}

}  // namespace hotpack
