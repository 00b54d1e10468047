// The largest batch that fits: models in PyTorch with more and more rows, until the device has no memory for them.
#include <algorithm>
#include <map>

#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "largest";
constexpr int kOutOfMemory = 3;  // exit status of train.py
constexpr int kMostRows = 1 << 20;

struct Model {
  const char* name;
  int rows;  // the first to try
};
constexpr Model kModels[] = {{"resnet50", 64}, {"gpt2_small", 8}};

class Search {
 public:
  Search(Session& session, const TorchPython& python, const Model& model, std::string allocator)
      : session_(session), python_(python), model_(model), allocator_(std::move(allocator)) {}

  // Returns the largest number of rows that fits, to a sixteenth; 0 if not even one does, or a run failed.
  int Find(int start) {
    int low = 0, high = kMostRows, rows = start;
    while (high - low > std::max(low / 16, 1) && !failed_) {
      (Fits(rows) ? low : high) = rows;
      rows = high == kMostRows ? 2 * low : (low + high) / 2;
      if (rows <= low || rows >= high) break;
    }
    return failed_ ? 0 : low;
  }

 private:
  bool Fits(int rows) {
    Job job;
    job.name = std::string(model_.name) + "/" + allocator_ + "/rows" + std::to_string(rows);
    job.command = {python_.path,
                   python_.directory + "/train.py",
                   model_.name,
                   "--allocator",
                   allocator_,
                   "--batch",
                   std::to_string(rows),
                   "--steps",
                   "6"};
    job.python = true;
    job.limit = 120;
    job.good_status = kOutOfMemory;
    job.environment = TorchEnvironment(session_);
    const Step* step = session_.Run(kGroup, job);
    failed_ = failed_ || step == nullptr || step->Failed() || step->timed_out || Interrupted() != 0;
    return !failed_ && step->exit_code == 0;
  }

  Session& session_;
  const TorchPython& python_;
  const Model& model_;
  const std::string allocator_;
  bool failed_ = false;
};

}  // namespace

void RunLargest(Session& session) {
  const TorchPython& python = TorchOf(session);
  if (!session.full()) {
    session.Skip(kGroup, "all", "it takes minutes: only without --quick and --tiny");
    return;
  }
  if (python.path.empty()) {
    session.Skip(kGroup, "all", python.reason);
    return;
  }
  for (const Model& model : kModels) {
    std::map<std::string, int> rows;
    int start = model.rows;
    for (const char* allocator : {"default", "hotpack", "expandable"}) {
      rows[allocator] = Search(session, python, model, allocator).Find(start);
      if (rows[allocator] > 0) start = rows[allocator];
    }
    Step* step = session.Add(kGroup, std::string(model.name) + "/rows");
    for (const auto& [allocator, most] : rows) {
      if (most > 0) step->AddFigure(allocator, "rows", {static_cast<double>(most)});
    }
  }
}

}  // namespace hotpack::check
