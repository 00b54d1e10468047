// Conclusions from the facts, as plain sentences.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/doctor_facts.h"

namespace hotpack {

struct Diagnosis {
  MachineFacts machine;
  std::vector<std::pair<std::string, std::string>> environment;  // before hotpack changed it
  bool ran = false;                                              // a program was run; the members below are of it
  int exit_code = 0;
  ProgramFacts program;
  std::vector<ProcessFacts> processes;
  std::vector<MissedProcess> missed;
};

struct Advice {
  std::vector<std::string> to_do;  // why hotpack does not serve, and how to fix it
  std::vector<std::string> notes;  // other notable facts
};

Advice Advise(const Diagnosis& diagnosis);

}  // namespace hotpack
