// Models in PyTorch (bench/torch/train.py) under its own allocator and under hotpack: losses bit for bit, held memory,
// step times.
#include <fstream>
#include <map>
#include <optional>

#include "tools/check/losses.h"
#include "tools/check/stats.h"
#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "pytorch";

// The results of one run of train.py.
struct Cell {
  Step* step = nullptr;  // null: not run, or failed
  bool same_shapes = false;
  std::optional<std::string> losses;
  double step_ms = 0;
  double held = 0;  // bytes: the most in the whole run, reserved by PyTorch's allocator or held by hotpack
};

class Model {
 public:
  Model(Session& session, const TorchPython& python, std::string name)
      : session_(session), python_(python), name_(std::move(name)) {}

  // Runs under PyTorch's allocators.
  void RunPlain() {
    const Cell first = cells_["default"] = RunCell("default", "");
    // The simulated device has no losses to compare.
    const Cell second = session_.simulated() ? first : RunCell("default", "-again");
    if (second.step != nullptr)
      reference_ = AgreeOnLosses(first.losses, second.losses, session_.simulated(), second.step);
    // Tiny models do not measure memory: the arena's granularity is large relative to them.
    if (!session_.tiny()) cells_["expandable"] = RunCell("expandable", "");
  }

  // Runs under hotpack; after RunPlain. `way`: "preload", or "hotpack" for hotpack.enable(), as train.py names them.
  void RunHotpack(const std::string& way) {
    const Cell cell = RunCell(way, "");
    if (cell.step == nullptr) return;
    Judge(cell);
    AddRatios(way, cell);
  }

 private:
  Cell RunCell(const std::string& allocator, const std::string& suffix) {
    TrainingFiles files;
    Job job = TrainingJob(session_, python_, name_, allocator, &files);
    job.name = name_ + "/" + allocator + suffix;
    Cell cell;
    cell.step = session_.Run(kGroup, job);
    if (cell.step == nullptr || cell.step->Failed() || cell.step->exit_code != 0) return {};
    cell.losses = ReadLosses(files.losses);
    Read(files.document, allocator == "default" || allocator == "expandable", &cell);
    return cell;
  }

  // Reads figures from train.py's document. Without one the cell counts as not run.
  static void Read(const std::string& path, bool plain, Cell* cell) {
    std::ifstream file(path);
    const nlohmann::json written = nlohmann::json::parse(file, nullptr, false);
    try {
      const nlohmann::json& figures = written.at("figures");
      cell->same_shapes = written.at("settings").at("static").get<bool>();
      cell->step_ms = figures.at("step_ms").get<double>();
      cell->step->AddFigure("step", "ms", {cell->step_ms});
      if (plain) {
        cell->held = figures.at("torch_reserved_peak").get<double>();
        cell->step->AddFigure("reserved", "bytes", {cell->held});
        return;
      }
      if (figures.contains("hotpack")) cell->step->stats = figures.at("hotpack");
      const nlohmann::json& stats = cell->step->stats;
      cell->held = stats.at("reserved_peak").get<double>();
    } catch (const std::exception& error) {
      cell->step->Check(false, "figures", "train.py and hotpack tell their figures", error.what());
      *cell = {};
    }
  }

  void Judge(const Cell& cell) {
    AddStatsFigures(cell.step);
    CheckLosses(reference_, cell.losses, cell.step);
    if (!cell.same_shapes || session_.tiny()) return;
    CheckPlannedShare(cell.step);
    CheckServingMemory(cell.step);
    for (const char* other : {"default", "expandable"}) {
      const double theirs = cells_[other].held;
      if (theirs <= 0) continue;
      CheckBelow(other, cell.held, theirs, cell.step);
    }
  }

  // Compares figures of the same minutes on the same machine.
  void AddRatios(const std::string& way, const Cell& ours) {
    for (const char* other : {"default", "expandable"}) {
      const Cell& theirs = cells_[other];
      if (theirs.step == nullptr || theirs.held <= 0 || theirs.step_ms <= 0) continue;
      if (ratios_ == nullptr) ratios_ = session_.Add(kGroup, name_ + "/ratios");
      ratios_->AddFigure("memory, " + way + " / " + other, "ratio", {ours.held / theirs.held});
      ratios_->AddFigure("step time, " + way + " / " + other, "ratio", {ours.step_ms / theirs.step_ms});
    }
  }

  Session& session_;
  const TorchPython& python_;
  const std::string name_;
  std::map<std::string, Cell> cells_;  // by PyTorch's allocator
  Step* ratios_ = nullptr;
  std::optional<std::string> reference_;  // losses on which two plain runs agree
};

}  // namespace

void RunPytorch(Session& session) {
  const TorchPython& python = TorchOf(session);
  if (Interrupted() != 0) return;
  if (python.path.empty()) {
    session.Skip(kGroup, "all", python.reason);
    return;
  }
  session.Add(kGroup, "python")->Check(true, "pytorch", "a Python with PyTorch", python.version);
  std::vector<std::string> names = python.models;
  if (session.tiny()) names = {"resnet50"};  // the part `enable` has GPT-2
  if (session.options().mode == Mode::kQuick) names = {"resnet50", "gpt2_small", "seq2seq"};
  std::vector<Model> models;
  for (const std::string& name : names) {
    models.emplace_back(session, python, name);
    models.back().RunPlain();
    models.back().RunHotpack("preload");
  }
  // Last: if --quick runs out of time, each model has at least one run.
  if (session.tiny()) return;
  for (Model& model : models) model.RunHotpack("hotpack");
}

}  // namespace hotpack::check
