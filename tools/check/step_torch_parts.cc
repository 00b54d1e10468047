// The parts that need PyTorch: bench/torch/gpu_parts.py under PyTorch's allocators and under hotpack.
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "tools/check/google_benchmark.h"
#include "tools/check/losses.h"
#include "tools/check/stats.h"
#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

// One run of gpu_parts.py.
struct TorchJob {
  std::string group;
  std::string part;       // of gpu_parts.py
  std::string allocator;  // as gpu_parts.py names it
  double limit;           // seconds with --quick
  std::vector<std::string> options;
};

// Returns null without PyTorch, which the group then says, and if the step did not take place.
Step* RunTorch(Session& session, const TorchJob& torch) {
  const TorchPython& python = TorchOf(session);
  const std::string name = "torch/" + torch.part + "/" + torch.allocator;
  if (python.path.empty()) {
    session.Skip(torch.group, name, python.reason);
    return nullptr;
  }
  Job job;
  job.name = name;
  job.command = {python.path, python.directory + "/gpu_parts.py", torch.part, "--allocator", torch.allocator};
  job.command.insert(job.command.end(), torch.options.begin(), torch.options.end());
  // What comes last in a part is left out rather than killed.
  job.command.insert(job.command.end(),
                     {"--start-within", std::to_string(static_cast<int>(torch.limit * 0.6 * session.LimitScale()))});
  // GPT-2 small is for a GPU: the simulated device computes nothing.
  if (torch.part == "training" && (session.tiny() || session.simulated())) job.command.push_back("--tiny");
  job.hotpack = torch.allocator == "preload";
  job.python = true;
  job.tells_findings = true;
  job.limit = torch.limit * session.LimitScale();
  job.environment = TorchEnvironment(session);
  return session.Run(torch.group, job);
}

double Median(const Step* step, const char* figure) {
  const Figure* found = step != nullptr ? FindFigure(*step, figure) : nullptr;
  return found != nullptr ? found->median : 0;
}

// GPT-2 small under PyTorch's allocator, hotpack.enable() and expandable segments, in this order: if time runs out, the
// comparison that matters most has been made.
class Enable {
 public:
  explicit Enable(Session& session) : session_(session) {}

  void Run() {
    for (const char* allocator : {"default", "hotpack", "expandable"}) {
      const std::string losses = session_.scratch() + "/losses", stats = session_.scratch() + "/torch_stats.json";
      for (const std::string& file : {losses, stats}) {
        std::error_code error;
        std::filesystem::remove(file, error);
      }
      Step* step = RunTorch(session_, {"enable", "training", allocator, 25, {"--losses", losses, "--stats", stats}});
      if (step == nullptr) continue;
      steps_[allocator] = step;
      losses_[allocator] = ReadLosses(losses);
      if (std::string(allocator) == "hotpack") ReadStats(stats, step);
    }
    if (steps_.empty()) return;
    CompareLosses();
    CompareMemory();
  }

 private:
  static void ReadStats(const std::string& path, Step* step) {
    std::ifstream file(path);
    nlohmann::json stats = nlohmann::json::parse(file, nullptr, false);
    if (stats.is_object()) step->stats = std::move(stats);
    AddStatsFigures(step);
  }

  Step* Find(const char* allocator) const {
    const auto found = steps_.find(allocator);
    return found != steps_.end() ? found->second : nullptr;
  }

  void CompareLosses() {
    Step *ours = Find("hotpack"), *second = Find("expandable");
    if (ours == nullptr) return;
    if (second == nullptr || Find("default") == nullptr) {
      ours->findings.push_back({"losses", Result::kSkip, "", "a run without hotpack is missing"});
      return;
    }
    const std::optional<std::string> reference =
        AgreeOnLosses(losses_["default"], losses_["expandable"], session_.simulated(), second);
    CheckLosses(reference, losses_["hotpack"], ours);
  }

  void CompareMemory() {
    Step* ours = Find("hotpack");
    if (ours == nullptr || !ours->stats.is_object() || !ours->stats.contains("reserved_peak")) return;
    const double held = ours->stats.at("reserved_peak").get<double>();
    ours->AddFigure("held", "bytes", {held});
    Step* ratios = nullptr;
    for (const char* other : {"default", "expandable"}) {
      const double theirs = Median(Find(other), "reserved"), step_ms = Median(Find(other), "step");
      if (theirs <= 0 || step_ms <= 0) continue;
      // Tiny models do not measure memory: the arena's granularity is large relative to them.
      if (!session_.tiny() && !session_.simulated()) CheckBelow(other, held, theirs, ours);
      if (ratios == nullptr) ratios = session_.Add("enable", "torch/training/ratios");
      ratios->AddFigure(std::string("memory, hotpack / ") + other, "ratio", {held / theirs});
      ratios->AddFigure(std::string("step time, hotpack / ") + other, "ratio", {Median(ours, "step") / step_ms});
    }
  }

  Session& session_;
  std::map<std::string, Step*> steps_;  // by allocator
  std::map<std::string, std::optional<std::string>> losses_;
};

}  // namespace

void RunEnable(Session& session) { Enable(session).Run(); }

void RunTorchOverlap(Session& session) {
  if (session.simulated()) {
    session.Skip("overlap", "torch/overlap", "nothing runs at the same time on the simulated device");
    return;
  }
  const Step* theirs = RunTorch(session, {"overlap", "overlap", "default", 12, {}});
  Step* ours = RunTorch(session, {"overlap", "overlap", "hotpack", 12, {}});
  if (const double share = Median(theirs, "overlap"); ours != nullptr && share > 0) {
    ours->AddFigure("overlap, hotpack / default", "ratio", {Median(ours, "overlap") / share});
  }
}

void RunTorchGraphs(Session& session) {
  if (session.tiny()) {
    session.Skip("captures", "torch/graphs/hotpack", "not with --tiny: the part enable captures a graph, too");
    return;
  }
  RunTorch(session, {"captures", "graphs", "hotpack", 15, {}});
}

void RunDistributed(Session& session) {
  RunTorch(session, {"distributed", "distributed", "hotpack", 20, {}});
  if (!session.simulated()) RunTorch(session, {"distributed", "distributed", "default", 20, {}});
}

void RunPreloadedPytorch(Session& session) {
  if (session.tiny()) {
    session.Skip("probes", "torch/training/preload", "not with --tiny: the group pytorch has a preloaded model, too");
    return;
  }
  RunTorch(session, {"probes", "training", "preload", 25, {}});
}

void RunTorchRequests(Session& session, Step* rounds) {
  if (session.tiny()) {
    session.Skip("timing", "torch/requests", "not with --tiny");
    return;
  }
  for (const char* allocator : {"default", "hotpack"}) {
    const Step* step = RunTorch(session, {"timing", "requests", allocator, 20, {}});
    const double pair = Median(step, "pair");
    const std::string name =
        std::string("torch, ") + (std::string(allocator) == "default" ? "its own" : "hotpack.enable()");
    if (pair > 0 && rounds != nullptr) rounds->AddFigure(name, "ns a pair", {pair});
  }
}

}  // namespace hotpack::check
