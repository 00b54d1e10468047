// The findings of a probe of a real GPU, as one JSON object on stdout:
//
//   {"program": "gpu_probe", "findings": [{"name": "arena.values", "result": "pass|fail|differs|skip",
//     "expected": "...", "seen": "..."}, ...],
//    "figures": [{"name": "vmm.map", "unit": "ns|bytes|...", "median": x, "low": x, "high": x, "samples": n}, ...]}
//
//   pass     as expected
//   fail     hotpack is wrong: the program ends with status 1
//   differs  the driver differs from the documented facts on which hotpack relies: worth recording
//   skip     not possible here; `seen` has the reason
//
// `low` and `high` are the first and the last decile. Names are unique within a program, lower case, `case.what`.
//
// An abnormal end of the program loses nothing. Each finding goes to stderr as a line at once. Findings::Guard writes
// the object, with a "fail" named `finished` at its end, when a signal or the time limit ends the program.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tools/check/finding.h"

namespace hotpack::gpu {

using check::Figure;
using check::Finding;
using check::Result;

// `text` as a JSON string with its quotes. A byte beyond ASCII becomes the code point of its number.
std::string JsonString(const std::string& text);

// Collects findings and figures. All functions are thread-safe.
class Findings {
 public:
  explicit Findings(std::string program);
  Findings(const Findings&) = delete;
  Findings& operator=(const Findings&) = delete;

  void Pass(std::string name, std::string expected, std::string seen = "");
  void Fail(std::string name, std::string expected, std::string seen);
  void Differs(std::string name, std::string expected, std::string seen);
  void Skip(std::string name, std::string reason);

  // Records an obligation of hotpack: passes or fails. Returns `ok`.
  bool Check(bool ok, std::string name, std::string expected, std::string seen);
  // Records a known behaviour of the driver: passes or differs. Returns `ok`.
  bool Fact(bool ok, std::string name, std::string expected, std::string seen);

  // Without samples nothing is added.
  void AddFigure(std::string name, std::string unit, std::vector<double> samples);

  bool AnyFailed() const;

  // The object, without a line break at its end.
  std::string Json() const;

  // From now on the object is also written at an abnormal end: a fatal signal, std::terminate, or after `seconds` (then
  // with status 1). A process may guard one object, which must live until the process ends.
  void Guard(int seconds);

  // Writes the object to stdout, ends the guard and returns the exit status: 1 if anything failed, else 0. Call once,
  // at the end of main.
  int Finish();

 private:
  void Add(Finding finding);
  std::string Render(const Finding* last) const;  // mutex_ held
  void Publish();                                 // mutex_ held

  const std::string program_;
  mutable std::mutex mutex_;
  std::vector<Finding> findings_;
  std::vector<Figure> figures_;
  bool guarded_ = false;
};

}  // namespace hotpack::gpu
