// hotpack doctor: does hotpack reach this program, and if not, why?
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/doctor/doctor_advice.h"
#include "tools/doctor/doctor_facts.h"
#include "tools/doctor/doctor_report.h"
#include "tools/doctor/process_watch.h"
#include "tools/run/run.h"
#include "tools/run/run_program.h"

namespace hotpack {
namespace {

// Runs the program and reads its facts. Returns false, with *code set, if it could not be started.
bool RunAndLook(const RunOptions& options, Diagnosis* diagnosis, int* code) {
  const TemporaryDirectory directory;
  ProcessWatch watch;
  const std::optional<FinishedProgram> finished = RunProgram(options, directory.path(), code);
  if (!finished) return false;
  diagnosis->ran = true;
  diagnosis->missed = watch.Stop();
  diagnosis->exit_code = finished->code;
  diagnosis->program = LookAtProgram(finished->path);
  diagnosis->processes = ReadProcesses(directory.path());
  return true;
}

int Doctor(const RunOptions& options, bool json) {
  Diagnosis diagnosis;
  if (!options.memory.empty()) setenv("SIMGPU_MEMORY", options.memory.c_str(), 1);
  diagnosis.environment = RelevantEnvironment();
  diagnosis.machine = AskMachine(FindLibraries(), options.simulate);
  int code = 0;
  if (!options.command.empty() && !RunAndLook(options, &diagnosis, &code)) return code;
  const Advice advice = Advise(diagnosis);
  if (json) {
    PrintDiagnosisJson(diagnosis, advice);
  } else {
    PrintDiagnosis(diagnosis, advice);
  }
  return advice.to_do.empty() ? 0 : 1;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RunOptions>();
  auto json = std::make_shared<bool>(false);
  options->subcommand = "doctor";
  options->doctor = true;
  options->output_to_stderr = true;
  CLI::App* command =
      app.add_subcommand("doctor", "Looks whether hotpack reaches a program, or at the machine alone; says what to do");
  AddSimulateOptions(command, "On the simulated device; no GPU is needed", options.get());
  command->add_flag("--keep-caching", options->keep_caching, "As of hotpack run");
  command->add_flag("--json", *json, "Print one object: machine, environment, program, processes, notes, to_do");
  CLI::Option* first = AddProgram(command);
  command->footer(
      "The program runs to its end; what it prints goes to stderr. Exit code 0: nothing has to be done; 1: something "
      "has.\n"
      "Example:\n  hotpack doctor\n  hotpack doctor --simulate -- python train.py");
  command->callback([command, first, options, json, exit_code] {
    std::string reason;
    if (first->count() > 0 || !command->remaining().empty()) reason = TakeProgram(*command, *first, options.get());
    *exit_code = reason.empty() ? Doctor(*options, *json) : FailRun(*options, 2, reason);
  });
}

}  // namespace hotpack
