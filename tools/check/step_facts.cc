#include "tools/check/device_facts.h"
#include "tools/check/machine.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

// Queries in a child. Returns null if it has no device: the reason is in *reason.
nlohmann::ordered_json Ask(Session& session, std::string* reason) {
  const std::vector<std::string> command = {session.kit().Program("gpu_check"), "--print-facts"};
  const Outcome outcome = RunChild(command, session.environment(), session.tiny() ? 20 : 60, session.scratch());
  const nlohmann::ordered_json facts = nlohmann::ordered_json::parse(outcome.out, nullptr, false);
  if (outcome.code == 0 && facts.is_object()) return facts;
  if (outcome.timed_out) {
    *reason = "the driver did not answer in time";
  } else if (facts.is_object() && facts.contains("reason")) {
    *reason = facts.at("reason").get<std::string>();
  } else {
    *reason = "asking the driver ended with status " + std::to_string(outcome.code);
  }
  return nullptr;
}

}  // namespace

bool RunFacts(Session& session, DeviceReport* report) {
  Step* step = session.Add("facts", "device");
  nlohmann::ordered_json facts;
  std::string reason = "--simulate was given";
  if (!session.options().simulate) facts = Ask(session, &reason);
  if (facts.is_null()) {
    step->findings.push_back({"gpu", Result::kSkip, "an NVIDIA GPU and its driver", reason});
    std::string simulated_reason = "lib/simgpu is not here";
    if (session.kit().HasSimulatedDevice()) {
      session.UseSimulatedDevice(true);
      facts = Ask(session, &simulated_reason);
    }
    if (facts.is_null()) {
      step->Check(false, "simulated_device", "the simulated device takes its place", simulated_reason);
      return false;
    }
  }
  report->device = facts.at("device");
  report->versions = facts.at("versions");
  report->versions["driver"] = session.simulated() ? "" : DriverVersion();
  const std::string name = report->device.at("name").get<std::string>();
  // The user's LD_LIBRARY_PATH may lead to the simulated device as well.
  if (name == kSimulatedName) session.UseSimulatedDevice(true);
  step->Check(true, "device", "a device", name);
  return true;
}

}  // namespace hotpack::check
