// One run of gpu_check: its kit, its time limits, and its finished steps.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "tools/check/child.h"
#include "tools/check/findings.h"
#include "tools/check/kit.h"

namespace hotpack::check {

enum class Mode { kFull, kQuick, kTiny };

const char* ModeName(Mode mode);

struct Options {
  Mode mode = Mode::kFull;
  std::vector<std::string> only;    // groups or beginnings of "group/name"; empty: all
  std::vector<std::string> traces;  // directories of recordings in addition to the kit's
  std::string library_path;         // directories with colons between them, searched before those found automatically
  std::string out;                  // empty: named after device and date
  double step_limit = 0;            // at most this many seconds per step; 0: only each step's own limit
  bool force = false;
  bool simulate = false;
};

struct Step {
  std::string group;
  std::string name;
  std::vector<std::string> command;  // empty: a comparison of other steps
  std::map<std::string, std::string> environment;
  bool hotpack = false;  // run under hotpack
  int exit_code = 0;
  bool timed_out = false;
  bool running = false;  // findings and figures are those so far
  double seconds = 0;
  std::vector<Finding> findings;
  std::vector<Figure> figures;
  nlohmann::json stats;  // hotpack's figures of the run; null without
  std::string errors;    // the end of stderr, if something failed

  std::string FullName() const { return group + "/" + name; }
  bool Failed() const;
  void Check(bool ok, std::string finding, std::string expected, std::string seen);  // pass or fail
  void AddFigure(std::string figure, std::string unit, std::vector<double> samples);
};

// A program to run as a step.
struct Job {
  std::string name;                                // unique within its group
  std::vector<std::string> command;                // the program's path first
  bool hotpack = false;                            // under `hotpack run`
  std::vector<std::string> hotpack_options;        // ... with these options in addition
  std::string arena;                               // HOTPACK_ARENA: vmm, plain, or empty
  std::map<std::string, std::string> environment;  // set in addition
  std::string library_path;                        // a directory of libraries for this program alone; empty: none
  bool python = false;                             // finds its libraries itself
  double limit = 60;                               // seconds
  bool tells_findings = false;                     // writes its findings to stdout
  int good_status = 0;                             // an exit status that is no failure, besides 0
};

struct TorchPython;

class Session {
 public:
  static constexpr double kNever = 1e9;  // seconds

  // `scratch`: an empty directory that outlives the session.
  Session(Options options, Kit kit, std::string scratch);

  const Options& options() const { return options_; }
  const Kit& kit() const { return kit_; }
  const std::string& scratch() const { return scratch_; }
  const std::deque<Step>& steps() const { return steps_; }
  std::vector<std::string> library_directories() const { return directories_; }
  bool tiny() const { return options_.mode == Mode::kTiny; }
  bool full() const { return options_.mode == Mode::kFull; }

  // Sets how programs without hotpack run: on the device, or on the simulated one.
  void UseSimulatedDevice(bool simulated);
  bool simulated() const { return simulated_; }
  const std::map<std::string, std::string>& environment() const { return environment_; }

  // Returns false if --only excludes the step, or all steps of a group (empty `name`).
  bool Wants(const std::string& group, const std::string& name = "") const;

  // Begins a group of steps, which ends after `limit` seconds (0: no limit). With --quick it also ends `reserve`
  // seconds before the whole run, so that later groups get their share.
  void BeginGroup(double limit, double reserve);

  // Calls `save` whenever a step begins, ends, is added, or has told another finding.
  void OnChange(std::function<void()> save) { save_ = std::move(save); }

  // The Python with PyTorch, searched once (torch_python.h); null before.
  std::shared_ptr<const TorchPython> torch;

  // Runs the job and records it. Returns null if the step is excluded, if no time is left, or if it was stopped because
  // its group's time was over (both are recorded): then it is no measure. The pointer stays valid. Adds the finding
  // `ended`: the program ended by itself with exit status 0, or with 1 and a failed finding of its own.
  Step* Run(const std::string& group, const Job& job);
  // Adds a step without a program of its own.
  Step* Add(const std::string& group, const std::string& name);
  // Records why a step was not possible.
  void Skip(const std::string& group, const std::string& name, const std::string& reason);

  // Writes this path of the machine as `name` in the document.
  void HidePath(const std::string& path, const std::string& name) { hidden_[path] = name; }
  const std::map<std::string, std::string>& hidden_paths() const { return hidden_; }

  double SecondsSoFar() const;
  // The limits of parts and of their steps are those of --quick. A full run has more to do, and --tiny may share its
  // machine with other tests.
  double LimitScale() const { return full() ? 3 : tiny() ? 6 : 1; }
  double SecondsLeft() const;  // for this group
  double WholeLimit() const;   // seconds for the whole run; 1e9 without --quick

 private:
  std::vector<std::string> FullCommand(const Job& job, const std::string& stats_file) const;
  // Takes the findings that a running program has told on its standard error.
  void ReadProgress(const std::string& err, Step* step) const;
  // `hurried`: the limit is less than the step's own, because of the limit of its group or of the whole run.
  void ReadOutcome(const Job& job, double limit, bool hurried, const Outcome& outcome, Step* step) const;
  void Announce(const Step& step) const;
  void Save() const {
    if (save_) save_();
  }

  const Options options_;
  const Kit kit_;
  const std::string scratch_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const std::vector<std::string> directories_;
  std::map<std::string, std::string> environment_;
  bool simulated_ = false;
  double reserve_ = 0;
  double group_end_ = kNever;  // seconds since the beginning
  std::function<void()> save_;
  std::map<std::string, std::string> hidden_;
  std::deque<Step> steps_;
};

}  // namespace hotpack::check
