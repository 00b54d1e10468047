// One run of gpu_check: what it works with, its limits of time, and the steps that were done.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <string>
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
  std::vector<std::string> traces;  // directories of recordings besides the kit's
  std::string library_path;         // directories with colons between them, searched before those that are found
  std::string out;                  // empty: named after device and date
  double step_limit = 0;            // seconds for each step at most; 0: each step's own limit alone
  bool force = false;
  bool simulate = false;
};

struct Step {
  std::string group;
  std::string name;
  std::vector<std::string> command;  // empty: a comparison of other steps
  std::map<std::string, std::string> environment;
  bool hotpack = false;  // run under it
  int exit_code = 0;
  bool timed_out = false;
  double seconds = 0;
  std::vector<Finding> findings;
  std::vector<Figure> figures;
  nlohmann::json stats;  // hotpack's figures of the run; null without
  std::string errors;    // the end of stderr, if something was wrong

  std::string FullName() const { return group + "/" + name; }
  bool Failed() const;
  void Check(bool ok, std::string finding, std::string expected, std::string seen);  // pass or fail
  void AddFigure(std::string figure, std::string unit, std::vector<double> samples);
};

// A program to be run as a step.
struct Job {
  std::string name;                                // unique within its group
  std::vector<std::string> command;                // the program's path first
  bool hotpack = false;                            // under `hotpack run`
  std::vector<std::string> hotpack_options;        // ... with these besides
  std::string arena;                               // HOTPACK_ARENA: vmm, plain, or empty
  std::map<std::string, std::string> environment;  // besides
  std::string library_path;     // a directory of libraries that this program alone needs; empty: none
  bool python = false;          // finds its libraries itself
  double limit = 60;            // seconds
  bool tells_findings = false;  // writes them to stdout
};

class Session {
 public:
  // `scratch`: an empty directory that outlives the session.
  Session(Options options, Kit kit, std::string scratch);

  const Options& options() const { return options_; }
  const Kit& kit() const { return kit_; }
  const std::string& scratch() const { return scratch_; }
  const std::deque<Step>& steps() const { return steps_; }
  std::vector<std::string> library_directories() const { return directories_; }
  bool tiny() const { return options_.mode == Mode::kTiny; }
  bool full() const { return options_.mode == Mode::kFull; }

  // How programs that are not run under hotpack are started: on the device, or on the simulated one.
  void UseSimulatedDevice(bool simulated);
  bool simulated() const { return simulated_; }
  const std::map<std::string, std::string>& environment() const { return environment_; }

  // False if --only leaves the step, or all steps of a group (empty `name`), out.
  bool Wants(const std::string& group, const std::string& name = "") const;

  // From now on steps of a group: with --quick they end `reserve` seconds before the whole does, so that the groups
  // after it have their share.
  void BeginGroup(double reserve) { reserve_ = reserve; }

  // Runs the job and records it. Adds the finding `ended`: the program ended by itself and its exit status is 0, or 1
  // with a failed finding of its own. Null if the step was not wanted or there was no time left (which is recorded).
  // The pointer stays good.
  Step* Run(const std::string& group, const Job& job);
  // A step without a program of its own.
  Step* Add(const std::string& group, const std::string& name);
  // Records why something could not be done.
  void Skip(const std::string& group, const std::string& name, const std::string& reason);

  // This path of the machine is written as `name` in the document.
  void HidePath(const std::string& path, const std::string& name) { hidden_[path] = name; }
  const std::map<std::string, std::string>& hidden_paths() const { return hidden_; }

  double SecondsSoFar() const;
  double SecondsLeft() const;  // for this group

 private:
  std::vector<std::string> FullCommand(const Job& job, const std::string& stats_file) const;
  // `hurried`: the limit is less than the step's own, because of the limit of the whole.
  void ReadOutcome(const Job& job, double limit, bool hurried, const Outcome& outcome, Step* step) const;
  void Announce(const Step& step) const;

  const Options options_;
  const Kit kit_;
  const std::string scratch_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  const std::vector<std::string> directories_;
  std::map<std::string, std::string> environment_;
  bool simulated_ = false;
  double reserve_ = 0;
  std::map<std::string, std::string> hidden_;
  std::deque<Step> steps_;
};

}  // namespace hotpack::check
