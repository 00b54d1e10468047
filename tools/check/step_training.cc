// Each training program, plain and under hotpack: gradients, and losses bit for bit.
#include <filesystem>
#include <optional>

#include "tools/check/losses.h"
#include "tools/check/stats.h"
#include "tools/check/steps.h"

namespace hotpack::check {
namespace {

constexpr char kGroup[] = "training";

struct Variant {
  std::string program;  // in bin/
  std::string model;    // train_mlp, train_conv, train_seq2seq
  bool same_shapes;     // every iteration requests the same sizes, except for a shorter last batch
  bool driver = false;  // uses the driver API
};

// One way of running a variant.
struct Way {
  std::string allocator = "cuda";
  int streams = 1;
  bool hotpack = false;
  std::string arena;

  std::string Name() const {
    return allocator + "/streams" + std::to_string(streams) + (hotpack ? "/hotpack-" + arena : "/without");
  }
};

class Training {
 public:
  Training(Session& session, Variant variant) : session_(session), variant_(std::move(variant)) {}

  void Run() {
    CheckGradients();
    if (variant_.same_shapes) RunAlike();
    for (const int streams : {1, 2}) {
      // --quick has no time for the second stream with both runtimes, --tiny does not need it.
      if (streams == 2 && !session_.full() && !IsMain() && !variant_.driver) continue;
      RunReference(streams);
      RunOthers(streams);
    }
  }

 private:
  // Returns true for the shared runtime, false for the static one and the driver API.
  bool IsMain() const { return variant_.program == variant_.model; }

  Job MakeJob(const std::string& name) const {
    Job job;
    job.name = variant_.program + "/" + name;
    job.command = {session_.kit().Program(variant_.program)};
    job.limit = session_.full() ? 180 : 60;
    return job;
  }

  void CheckGradients() {
    for (const bool hotpack : {false, true}) {
      if (hotpack && !session_.full()) continue;
      Job job = MakeJob(hotpack ? "gradients/hotpack" : "gradients/without");
      job.command.push_back("--check-gradients");
      job.hotpack = hotpack;
      session_.Run(kGroup, job);
    }
  }

  // Without a shorter last batch and without evaluation all iterations are alike.
  void RunAlike() {
    Job job = MakeJob("alike/hotpack-vmm");
    job.command.insert(job.command.end(), {"--last-rows", "0", "--evaluations", "0"});
    job.hotpack = true;
    job.arena = "vmm";
    Step* step = session_.Run(kGroup, job);
    if (step == nullptr) return;
    AddStatsFigures(step);
    if (!step->Failed()) CheckPlannedShare(step);
  }

  // Runs the program. Returns its losses, if it ended normally and wrote some.
  std::optional<std::string> Losses(const Way& way, const std::string& suffix, Step** step) {
    const std::string file = session_.scratch() + "/losses";
    std::error_code error;
    std::filesystem::remove(file, error);
    Job job = MakeJob(way.Name() + suffix);
    job.command.insert(job.command.end(),
                       {"--allocator", way.allocator, "--streams", std::to_string(way.streams), "--losses", file});
    job.hotpack = way.hotpack;
    job.arena = way.arena;
    *step = session_.Run(kGroup, job);
    if (*step == nullptr || (*step)->Failed()) return std::nullopt;
    return ReadLosses(file);
  }

  // Runs twice without hotpack. The other runs need only match what these two agree on.
  void RunReference(int streams) {
    reference_.reset();
    Way way;
    way.streams = streams;
    Step *first = nullptr, *second = nullptr;
    const std::optional<std::string> losses = Losses(way, "", &first);
    const std::optional<std::string> again = Losses(way, "-again", &second);
    if (second != nullptr) reference_ = AgreeOnLosses(losses, again, session_.simulated(), second);
  }

  void RunOthers(int streams) {
    const auto run = [&](const char* allocator, bool hotpack, const char* arena) {
      Compare({allocator, streams, hotpack, arena});
    };
    run("cuda", true, "vmm");
    run("cuda-async", true, "vmm");
    if (!variant_.driver) run("hotpack", false, "vmm");
    if (session_.full() || (IsMain() && streams == 1)) run("cuda", true, "plain");
    if (!session_.full()) return;
    run("cuda-async", false, "");
    run("cuda-async", true, "plain");
    if (variant_.driver) return;
    run("hotpack", false, "plain");
    run("hotpack", true, "vmm");
  }

  void Compare(const Way& way) {
    Step* step = nullptr;
    // Without the preload the arena still matters: the C interface has one too.
    const std::string suffix = way.allocator == "hotpack" && !way.hotpack ? "-" + way.arena : "";
    const std::optional<std::string> losses = Losses(way, suffix, &step);
    if (step == nullptr) return;
    CheckLosses(reference_, losses, step);
    if (way.hotpack) JudgeStats(step);
  }

  void JudgeStats(Step* step) const {
    AddStatsFigures(step);
    if (step->Failed() || variant_.same_shapes) return;
    if (step->environment["HOTPACK_ARENA"] != "plain") CheckMemory(step);
  }

  Session& session_;
  const Variant variant_;
  std::optional<std::string> reference_;  // losses on which two runs without hotpack agree
};

void RunVariant(Session& session, const Variant& variant) {
  if (!session.kit().Has(variant.program)) {
    session.Skip(kGroup, variant.program, "bin/" + variant.program + " is not here");
    return;
  }
  Training(session, variant).Run();
}

}  // namespace

void RunTraining(Session& session) {
  for (const char* model : {"train_mlp", "train_conv", "train_seq2seq"}) {
    const std::string name = model;
    const bool same_shapes = name != "train_seq2seq";
    RunVariant(session, {name, name, same_shapes});
    if (session.simulated()) {
      session.Skip(kGroup, name + "_static", "a program with NVIDIA's static runtime needs a real driver");
      RunVariant(session, {name + "_static_simulated", name, same_shapes});
    } else {
      RunVariant(session, {name + "_static", name, same_shapes});
    }
  }
  RunVariant(session, {"train_mlp_driver", "train_mlp", true, true});
}

}  // namespace hotpack::check
