// Training steps within a budget (docs/budget.md): losses bit for bit, held memory, step times, beside a plain run.
#include <filesystem>
#include <fstream>
#include <optional>

#include "tools/check/losses.h"
#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "budget";
constexpr int kShares[] = {60, 50};  // percent of what PyTorch's allocator reserves

struct Cell {
  Step* step = nullptr;  // null: not run, or failed
  std::optional<std::string> losses;
  nlohmann::json figures;
};

class Model {
 public:
  Model(Session& session, const TorchPython& python, std::string name)
      : session_(session), python_(python), name_(std::move(name)) {}

  void RunPlain() {
    plain_ = Run("default", "");
    if (plain_.step == nullptr) return;
    reserved_ = plain_.figures.at("torch_reserved_peak").get<double>();
    plain_.step->AddFigure("reserved", "bytes", {reserved_});
  }

  void RunWithin(int percent) {
    if (plain_.step == nullptr) return;
    // Tiny models are small beside the granularity of memory.
    const double budget = session_.tiny() ? 0 : reserved_ * percent / 100;
    const std::string amount = session_.tiny() ? "activations:" + std::to_string(percent) + "%"
                                               : std::to_string(static_cast<uint64_t>(budget));
    const Cell cell = Run("hotpack", amount, std::to_string(percent));
    if (cell.step == nullptr) return;
    Judge(cell, budget);
  }

 private:
  // `budget` is HOTPACK_BUDGET; empty: none.
  Cell Run(const std::string& allocator, const std::string& budget, const std::string& percent = "") {
    const std::string json = session_.scratch() + "/budget.json", losses = session_.scratch() + "/budget_losses";
    for (const std::string& file : {json, losses}) {
      std::error_code error;
      std::filesystem::remove(file, error);
    }
    Job job;
    job.name = name_ + "/" + (budget.empty() ? allocator : percent);
    job.command = {python_.path,
                   python_.directory + "/train.py",
                   name_,
                   "--allocator",
                   allocator,
                   "--json",
                   json,
                   "--losses",
                   losses,
                   "--steps",
                   session_.tiny() ? "8" : "40",
                   "--warm-up",
                   session_.tiny() ? "4" : "20"};
    if (session_.tiny()) job.command.push_back("--tiny");
    job.python = true;
    job.environment = TorchEnvironment(session_);
    if (!budget.empty()) job.environment["HOTPACK_BUDGET"] = budget;
    job.limit = session_.full() ? 600 : 120;
    Cell cell;
    cell.step = session_.Run(kGroup, job);
    if (cell.step == nullptr || cell.step->Failed() || cell.step->exit_code != 0) return {};
    std::ifstream file(json);
    const nlohmann::json written = nlohmann::json::parse(file, nullptr, false);
    try {
      cell.figures = written.at("figures");
      cell.step->AddFigure("step", "ms", {cell.figures.at("step_ms").get<double>()});
      if (!budget.empty()) cell.step->stats = cell.figures.at("hotpack");
    } catch (const std::exception& error) {
      cell.step->Check(false, "figures", "train.py tells its figures", error.what());
      return {};
    }
    cell.losses = ReadLosses(losses);
    return cell;
  }

  void Judge(const Cell& cell, double budget) {
    // The simulated device has no losses to compare.
    if (!session_.simulated()) CheckLosses(plain_.losses, cell.losses, cell.step);
    const nlohmann::json& stats = cell.step->stats;
    const double held = stats.value("reserved_peak", 0.0);
    cell.step->AddFigure("reserved", "bytes", {held});
    cell.step->AddFigure("moved", "bytes", {stats.value("moved_bytes", 0.0)});
    cell.step->AddFigure("computed again", "bytes", {stats.value("recomputed_bytes", 0.0)});
    cell.step->Check(stats.value("moved_bytes", 0.0) > 0, "budget", "saved tensors are moved at first",
                     "moved_bytes " + std::to_string(stats.value("moved_bytes", uint64_t{0})));
    if (budget > 0) {
      cell.step->Check(held <= budget, "within",
                       "at most " + std::to_string(static_cast<uint64_t>(budget)) + " bytes held",
                       std::to_string(static_cast<uint64_t>(held)));
    }
    const double plain = plain_.figures.at("step_ms").get<double>();
    if (plain > 0) {
      cell.step->AddFigure("step time over plain", "ratio", {cell.figures.at("step_ms").get<double>() / plain});
    }
    cell.step->AddFigure("step time over plain, predicted", "ratio", {stats.value("predicted_time", 0.0)});
  }

  Session& session_;
  const TorchPython& python_;
  const std::string name_;
  Cell plain_;
  double reserved_ = 0;  // bytes, by PyTorch's allocator
};

}  // namespace

void RunBudget(Session& session) {
  const TorchPython& python = TorchOf(session);
  if (Interrupted() != 0) return;
  if (python.path.empty()) {
    session.Skip(kGroup, "all", python.reason);
    return;
  }
  for (const char* name : {"gpt2_small", "resnet50"}) {
    if (session.tiny() && name != std::string("resnet50")) continue;
    Model model(session, python, name);
    model.RunPlain();
    for (const int percent : kShares) {
      if (!session.tiny() || percent == kShares[1]) model.RunWithin(percent);
    }
  }
}

}  // namespace hotpack::check
