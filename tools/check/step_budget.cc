// Trains models within budgets (docs/budget.md). Compares losses bit for bit with plain runs. Says held memory and the
// time of a step.
#include <fstream>
#include <optional>

#include "tools/check/losses.h"
#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "budget";
constexpr int kShares[] = {60, 50};  // percent of what PyTorch's allocator reserves

// The results of one run of train.py.
struct Cell {
  Step* step = nullptr;  // null: not run, or failed
  std::optional<std::string> losses;
  double step_ms = 0;
  double reserved = 0;  // bytes at most, by PyTorch's allocator or hotpack
};

class Model {
 public:
  Model(Session& session, const TorchPython& python, std::string name)
      : session_(session), python_(python), name_(std::move(name)) {}

  void RunPlain() {
    plain_ = Run("default", "default", "");
    // The simulated device has no losses to compare.
    const Cell again = session_.simulated() ? plain_ : Run("default-again", "default", "");
    if (again.step != nullptr) {
      reference_ = AgreeOnLosses(plain_.losses, again.losses, session_.simulated(), again.step);
    }
  }

  void RunWithin(int percent) {
    if (plain_.step == nullptr) return;
    const std::string share = std::to_string(percent);
    // A tiny model's memory is little beside a page.
    const auto bytes = session_.tiny() ? 0 : static_cast<uint64_t>(plain_.reserved * percent / 100);
    const Cell cell = Run(share, "hotpack", session_.tiny() ? "activations:" + share + "%" : std::to_string(bytes));
    if (cell.step == nullptr) return;
    CheckLosses(reference_, cell.losses, cell.step);
    if (bytes > 0) {
      cell.step->Check(cell.reserved <= static_cast<double>(bytes), "within",
                       "at most " + std::to_string(bytes) + " bytes held",
                       std::to_string(static_cast<uint64_t>(cell.reserved)));
    }
    if (plain_.step_ms > 0) cell.step->AddFigure("step time over plain", "ratio", {cell.step_ms / plain_.step_ms});
  }

 private:
  // `budget` is HOTPACK_BUDGET; empty: none.
  Cell Run(const std::string& name, const std::string& allocator, const std::string& budget) {
    TrainingFiles files;
    Job job = TrainingJob(session_, python_, name_, allocator, &files);
    job.name = name_ + "/" + name;
    if (!budget.empty()) job.environment["HOTPACK_BUDGET"] = budget;
    Cell cell;
    cell.step = session_.Run(kGroup, job);
    if (cell.step == nullptr || cell.step->Failed() || cell.step->exit_code != 0) return {};
    cell.losses = ReadLosses(files.losses);
    Read(files.document, !budget.empty(), &cell);
    return cell;
  }

  // Reads figures from train.py's document. Without one the cell counts as not run.
  static void Read(const std::string& path, bool within, Cell* cell) {
    std::ifstream file(path);
    const nlohmann::json written = nlohmann::json::parse(file, nullptr, false);
    try {
      const nlohmann::json& figures = written.at("figures");
      cell->step_ms = figures.at("step_ms").get<double>();
      cell->step->AddFigure("step", "ms", {cell->step_ms});
      const nlohmann::json& stats = within ? cell->step->stats = figures.at("hotpack") : figures;
      cell->reserved = stats.at(within ? "reserved_peak" : "torch_reserved_peak").get<double>();
      cell->step->AddFigure("reserved", "bytes", {cell->reserved});
      if (!within) return;
      const auto moved = stats.at("moved_bytes").get<uint64_t>();
      cell->step->AddFigure("moved", "bytes", {static_cast<double>(moved)});
      cell->step->AddFigure("computed again", "bytes", {stats.at("recomputed_bytes").get<double>()});
      cell->step->AddFigure("step time over plain, predicted", "ratio", {stats.at("predicted_time").get<double>()});
      cell->step->Check(moved > 0, "budget", "saved tensors are moved at first",
                        std::to_string(moved) + " bytes moved");
    } catch (const std::exception& error) {
      cell->step->Check(false, "figures", "train.py and hotpack tell their figures", error.what());
      *cell = {};
    }
  }

  Session& session_;
  const TorchPython& python_;
  const std::string name_;
  Cell plain_;
  std::optional<std::string> reference_;  // losses on which two plain runs agree
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
