#include <filesystem>

#include "tools/check/stats.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "traces";

void Play(Session& session, const std::string& trace, const std::string& api, const std::string& arena) {
  Job job;
  job.name = std::filesystem::path(trace).filename().string() + "/" + api + "/" + arena;
  job.command = {session.kit().Program("hotpack"), "replay",      trace,   "--repeat",
                 session.tiny() ? "8" : "20",      "--wait-plan", "--api", api};
  job.hotpack = true;
  job.arena = arena;
  Step* step = session.Run(kGroup, job);
  if (step == nullptr || step->Failed()) return;
  AddStatsFigures(step);
  CheckServedByScript(step);
}

}  // namespace

void RunTraces(Session& session) {
  if (!session.kit().Has("hotpack")) {
    session.Skip(kGroup, "all", "bin/hotpack is not here");
    return;
  }
  std::vector<std::string> traces = FindTraces(session.kit().root + "/share/hotpack/traces");
  for (const std::string& directory : session.options().traces) {
    for (const std::string& trace : FindTraces(directory)) traces.push_back(trace);
  }
  if (traces.empty()) session.Skip(kGroup, "all", "there are no recordings in share/hotpack/traces");
  for (const std::string& trace : traces) {
    Play(session, trace, "malloc", "vmm");
    Play(session, trace, "malloc", "plain");
    if (!session.tiny()) Play(session, trace, "async", "vmm");
    if (session.full()) Play(session, trace, "driver", "vmm");
  }
}

}  // namespace hotpack::check
