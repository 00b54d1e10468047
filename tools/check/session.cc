#include "tools/check/session.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

namespace hotpack::check {
namespace {

constexpr double kQuickSeconds = 450;           // --quick always ends in less than eight minutes,
constexpr double kSimulatedQuickSeconds = 225;  // and in less than four where there is nothing to measure
constexpr size_t kErrorsKept = 2000;            // bytes
constexpr char kTimeOver[] = "the time of this part or of --quick was over";

std::vector<std::string> Directories(const Options& options, const std::string& scratch) {
  std::vector<std::string> directories;
  std::istringstream given(options.library_path);
  for (std::string one; std::getline(given, one, ':');) {
    if (!one.empty()) directories.push_back(one);
  }
  for (const std::string& found : FindLibraryDirectories(scratch)) directories.push_back(found);
  return directories;
}

// Returns the last line of stderr that is no finding: the program's own message.
std::string LastLine(const std::string& text) {
  std::istringstream lines(text);
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    const bool protocol = line.rfind("finding: ", 0) == 0 || line.rfind("figure: ", 0) == 0;
    if (!line.empty() && !protocol) last = line;
  }
  return last;
}

std::string Seconds(double seconds) {
  char text[32];
  snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

// Returns the findings that a program has written to stderr as lines: "finding: RESULT NAME; expected E; seen S".
std::vector<Finding> FindingLines(const std::string& path) {
  std::vector<Finding> findings;
  std::ifstream file(path);
  constexpr char kBegin[] = "finding: ", kExpected[] = "; expected ", kSeen[] = "; seen ";
  for (std::string line; std::getline(file, line);) {
    if (file.eof() || line.rfind(kBegin, 0) != 0) continue;  // without its end, the line is still being written
    Finding finding;
    if (const size_t at = line.find(kSeen); at != std::string::npos) {
      finding.seen = line.substr(at + sizeof kSeen - 1);
      line.resize(at);
    }
    if (const size_t at = line.find(kExpected); at != std::string::npos) {
      finding.expected = line.substr(at + sizeof kExpected - 1);
      line.resize(at);
    }
    const size_t name = line.find(' ', sizeof kBegin - 1);
    if (name == std::string::npos) continue;
    const std::string result = line.substr(sizeof kBegin - 1, name - (sizeof kBegin - 1));
    finding.name = line.substr(name + 1);
    for (const Result each : {Result::kPass, Result::kFail, Result::kDiffers, Result::kSkip}) {
      if (result != ResultName(each)) continue;
      finding.result = each;
      findings.push_back(std::move(finding));
      break;
    }
  }
  return findings;
}

nlohmann::json ReadStats(const std::string& path) {
  std::ifstream file(path);
  nlohmann::json stats = nlohmann::json::parse(file, nullptr, false);
  return stats.is_object() ? stats : nlohmann::json();
}

bool StartsWith(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

}  // namespace

const char* ModeName(Mode mode) {
  switch (mode) {
    case Mode::kFull:
      return "full";
    case Mode::kQuick:
      return "quick";
    case Mode::kTiny:
      return "tiny";
  }
  return "full";
}

bool Step::Failed() const {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& f) { return f.result == Result::kFail; });
}

void Step::Check(bool ok, std::string finding, std::string expected, std::string seen) {
  findings.push_back({std::move(finding), ok ? Result::kPass : Result::kFail, std::move(expected), std::move(seen)});
}

void Step::AddFigure(std::string figure, std::string unit, std::vector<double> samples) {
  if (!samples.empty()) figures.push_back(Summarize(std::move(figure), std::move(unit), std::move(samples)));
}

Session::Session(Options options, Kit kit, std::string scratch)
    : options_(std::move(options)),
      kit_(std::move(kit)),
      scratch_(std::move(scratch)),
      directories_(Directories(options_, scratch_)) {
  UseSimulatedDevice(false);
}

void Session::UseSimulatedDevice(bool simulated) {
  simulated_ = simulated;
  environment_ = LibraryEnvironment(kit_, directories_, simulated);
}

bool Session::Wants(const std::string& group, const std::string& name) const {
  const std::string full = name.empty() ? group : group + "/" + name;
  return options_.only.empty() || std::any_of(options_.only.begin(), options_.only.end(), [&](const std::string& only) {
           if (only == group || StartsWith(full, only)) return true;
           return name.empty() && StartsWith(only, group + "/");  // a part of the group is selected
         });
}

double Session::SecondsSoFar() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

double Session::WholeLimit() const {
  if (options_.mode != Mode::kQuick) return kNever;
  return simulated_ ? kSimulatedQuickSeconds : kQuickSeconds;
}

double Session::SecondsLeft() const { return std::min(WholeLimit() - reserve_, group_end_) - SecondsSoFar(); }

void Session::BeginGroup(double limit, double reserve) {
  reserve_ = reserve;
  group_end_ = limit > 0 ? SecondsSoFar() + limit : kNever;
}

std::vector<std::string> Session::FullCommand(const Job& job, const std::string& stats_file) const {
  std::vector<std::string> command;
  if (job.hotpack) {
    command = {kit_.Program("hotpack"), "run"};
    if (simulated_) command.push_back("--simulate");
    command.insert(command.end(), {"--json-stats", stats_file});
    command.insert(command.end(), job.hotpack_options.begin(), job.hotpack_options.end());
    command.push_back("--");
  }
  command.insert(command.end(), job.command.begin(), job.command.end());
  return command;
}

void Session::ReadOutcome(const Job& job, double limit, bool hurried, const Outcome& outcome, Step* step) const {
  step->exit_code = outcome.code;
  step->timed_out = outcome.timed_out;
  step->seconds = outcome.seconds;
  std::string wrong;
  if (job.tells_findings) {
    // Without its object, what the program has told line by line stays.
    if (std::optional<Findings> told = ParseFindings(outcome.out, &wrong)) {
      step->findings = std::move(told->findings);
      step->figures = std::move(told->figures);
      if (outcome.timed_out) {  // it wrote its object at SIGTERM; the limit, below, says how it ended
        std::erase_if(step->findings, [](const Finding& finding) { return finding.name == "finished"; });
      }
    }
  }
  const std::string expected = "the program ends by itself within " + Seconds(limit);
  if (Interrupted() != 0) {
    step->findings.push_back({"ended", Result::kSkip, expected, "stopped: the check was interrupted"});
  } else if (outcome.timed_out && hurried) {
    step->findings.push_back(
        {"ended", Result::kSkip, expected, "stopped after " + Seconds(outcome.seconds) + ": " + kTimeOver});
  } else if (outcome.timed_out) {
    step->Check(false, "ended", expected,
                std::string(outcome.given_up ? "could not be killed, given up" : "killed") + " after " +
                    Seconds(outcome.seconds) + "; " + LastLine(outcome.err));
  } else if (outcome.code != 0 && outcome.code != job.good_status && !(outcome.code == 1 && step->Failed())) {
    step->Check(false, "ended", expected + " with status 0",
                "status " + std::to_string(outcome.code) + "; " + LastLine(outcome.err));
  } else if (!wrong.empty()) {
    step->Check(false, "ended", "it tells its findings", wrong);
  } else {
    step->Check(true, "ended", expected, "status " + std::to_string(outcome.code));
  }
  if (step->Failed()) {
    const size_t from = outcome.err.size() > kErrorsKept ? outcome.err.size() - kErrorsKept : 0;
    step->errors = outcome.err.substr(from);
  }
}

void Session::ReadProgress(const std::string& err, Step* step) const {
  std::vector<Finding> told = FindingLines(err);
  if (told.size() <= step->findings.size()) return;
  step->findings = std::move(told);
  Save();
}

void Session::Announce(const Step& step) const {
  const char* word = step.Failed() ? "FAIL" : "ok";
  const bool skipped = !step.findings.empty() && std::all_of(step.findings.begin(), step.findings.end(),
                                                             [](const auto& f) { return f.result == Result::kSkip; });
  printf("%7.1f s  %-4s  %s (%s)\n", SecondsSoFar(), skipped ? "skip" : word, step.FullName().c_str(),
         Seconds(step.seconds).c_str());
  fflush(stdout);
}

Step* Session::Run(const std::string& group, const Job& job) {
  if (!Wants(group, job.name) || Interrupted() != 0) return nullptr;
  const double left = SecondsLeft();
  if (left < 1) {
    Skip(group, job.name, kTimeOver);
    return nullptr;
  }
  if (job.hotpack && !kit_.Has("hotpack")) {
    Skip(group, job.name, "bin/hotpack is not here");
    return nullptr;
  }
  const double own_limit = options_.step_limit > 0 ? std::min(job.limit, options_.step_limit) : job.limit;
  const double limit = std::min(own_limit, left);
  const std::string stats_file = scratch_ + "/stats.json";
  unlink(stats_file.c_str());
  Step& step = steps_.emplace_back();
  step.group = group;
  step.name = job.name;
  step.command = FullCommand(job, stats_file);
  step.hotpack = job.hotpack;
  step.environment = job.environment;
  if (!job.arena.empty()) step.environment["HOTPACK_ARENA"] = job.arena;
  std::map<std::string, std::string> environment =
      job.python ? PythonEnvironment(kit_, simulated_ && !job.hotpack) : environment_;
  // `hotpack run --simulate` adds the simulated device itself; it must not be preloaded twice.
  if (job.hotpack) environment["LD_PRELOAD"] = "";
  for (const auto& [name, value] : step.environment) environment[name] = value;
  if (!job.library_path.empty()) environment["LD_LIBRARY_PATH"].insert(0, job.library_path + ":");
  step.running = true;
  Save();
  const OnTick progress = [&](const std::string& err) { ReadProgress(err, &step); };
  const Outcome outcome =
      RunChild(step.command, environment, limit, scratch_, job.tells_findings ? progress : OnTick());
  step.running = false;
  ReadOutcome(job, limit, limit < own_limit, outcome, &step);
  if (job.hotpack) step.stats = ReadStats(stats_file);
  Announce(step);
  Save();
  const bool stopped = Interrupted() != 0 || (outcome.timed_out && limit < own_limit);
  return stopped ? nullptr : &step;
}

Step* Session::Add(const std::string& group, const std::string& name) {
  Step& step = steps_.emplace_back();
  step.group = group;
  step.name = name;
  return &step;
}

void Session::Skip(const std::string& group, const std::string& name, const std::string& reason) {
  if (!Wants(group, name)) return;
  Step* step = Add(group, name);
  step->findings.push_back({"run", Result::kSkip, "", reason});
  Announce(*step);
  Save();
}

}  // namespace hotpack::check
