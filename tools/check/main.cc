// gpu_check: checks hotpack on this machine's GPU, or, without one, on the simulated device, and writes one document.
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "tools/check/device_facts.h"
#include "tools/check/machine.h"
#include "tools/check/output_file.h"
#include "tools/check/report.h"
#include "tools/check/steps.h"
#include "tools/check/torch_python.h"

namespace hotpack::check {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadInput = 2;
constexpr double kSimulatedReserve = 0.5;  // of the later groups' time with --quick, where nothing is measured

int Complain(std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  fprintf(stderr, "gpu_check: %s\n", reason.c_str());
  return kExitBadInput;
}

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::error_code error;
    path_ = (std::filesystem::temp_directory_path(error) / "gpu_check-XXXXXX").string();
    if (error || mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~ScratchDirectory() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  const std::string& path() const { return path_; }  // empty: it could not be made

 private:
  std::string path_;
};

// Returns an empty string, or the fault of an option.
std::string CheckOptions(Options* options) {
  for (const std::string& only : options->only) {
    const std::string group = only.substr(0, only.find('/'));
    const bool known =
        std::any_of(std::begin(kGroups), std::end(kGroups), [&](const Group& each) { return group == each.name; });
    if (!known && group != "facts") return "--only " + only + ": the steps are " + kGroupNames;
  }
  for (std::string& directory : options->traces) {
    std::error_code error;
    if (!std::filesystem::is_directory(directory, error)) return "--traces " + directory + ": no such directory";
    directory = std::filesystem::canonical(directory, error).string();
    if (FindTraces(directory).empty()) return "--traces " + directory + ": no .csv or .trace file in it";
  }
  return "";
}

// Keeps the document up to date.
class Document {
 public:
  Document(Session& session, const DeviceReport& report, std::string date)
      : session_(session), report_(report), date_(std::move(date)) {
    session_.OnChange([this] { Write(false); });
  }

  void Open(const std::string& path, bool force) { reason_ = file_.Open(path, force, Text(false)); }
  // Does nothing before Open and after a failure.
  void Write(bool complete) {
    if (!file_.path().empty() && reason_.empty()) reason_ = file_.Write(Text(complete));
  }
  const std::string& reason() const { return reason_; }  // empty, or why writing failed
  const std::string& path() const { return file_.path(); }

 private:
  std::string Text(bool complete) const { return DocumentText(session_, report_, date_, complete); }

  Session& session_;
  const DeviceReport& report_;
  const std::string date_;
  OutputFile file_;
  std::string reason_;
};

// Runs the groups after `facts`.
void RunGroups(Session& session, Document& document) {
  double reserve = 0;  // seconds, for the later groups
  for (const Group& group : kGroups) reserve += session.Wants(group.name) ? group.share : 0;
  // Less time, in the same proportions. Parts have limits of their own, and come first.
  if (session.simulated()) reserve *= kSimulatedReserve;
  for (const Group& group : kGroups) {
    if (!session.Wants(group.name) || Interrupted() != 0) continue;
    reserve -= group.share * (session.simulated() ? kSimulatedReserve : 1);
    if (group.pytorch) {  // reading PyTorch from the disk for the first time is not the part's time
      session.BeginGroup(0, 0);
      TorchOf(session);
    }
    session.BeginGroup(group.limit * session.LimitScale(), group.limit > 0 ? 0 : reserve);
    group.run(session);
    document.Write(false);
    if (!document.reason().empty()) return;
  }
}

int Run(const Options& options) {
  const ScratchDirectory scratch;
  if (scratch.path().empty()) return Complain("no temporary directory can be made");
  KillChildOnSignals();
  const std::string date = UtcDate(time(nullptr));
  Session session(options, FindKit(), scratch.path());
  DeviceReport report;
  Document document(session, report, date);
  if (!options.out.empty()) document.Open(options.out, options.force);
  if (!document.reason().empty()) return Complain(document.reason());
  const bool device = RunFacts(session, &report);
  if (options.out.empty()) {
    const std::string name = device ? report.device.at("name").get<std::string>() : "none";
    document.Open(DefaultName(name, date), options.force);
  }
  document.Write(false);
  if (device && document.reason().empty()) RunGroups(session, document);
  document.Write(Interrupted() == 0);
  PrintSummary(session, report, stdout);
  if (!document.reason().empty()) return Complain(document.reason());
  printf("written to %s\n", document.path().c_str());
  if (Interrupted() != 0) return 128 + Interrupted();
  return Count(session).fail == 0 ? 0 : kExitFailed;
}

int Main(int argc, char** argv) {
  Options options;
  bool quick = false, tiny = false, print_facts = false;
  CLI::App app("Checks hotpack on this machine's GPU; without one, on the simulated device", "gpu_check");
  auto* quick_flag = app.add_flag("--quick", quick, "End in under eight minutes");
  app.add_flag("--tiny", tiny, "As little as possible of everything: for machines without a GPU")->excludes(quick_flag);
  app.add_option("--out", options.out, "The document; default: gpu_check-DEVICE-DATE.json here")->type_name("FILE");
  app.add_flag("--force", options.force, "Replace the document if it is there");
  app.add_option("--only", options.only, std::string("Only these: ") + kGroupNames + ", or a beginning of GROUP/STEP")
      ->type_name("STEP");
  app.add_option("--traces", options.traces, "Play these recordings too")->type_name("DIR");
  app.add_option("--library-path", options.library_path, "Where cuBLAS and cuDNN are, if not in a usual place")
      ->type_name("DIR[:DIR]...");
  app.add_option("--step-limit", options.step_limit,
                 "Seconds for each step at most, if that is less than its own limit")
      ->check(CLI::Range(0.1, 86400.0));
  app.add_flag("--simulate", options.simulate, "Use the simulated device although there is a GPU");
  app.add_flag("--print-facts", print_facts)->group("");  // used by this program itself
  app.footer("Exit code: 0 when nothing failed, 1 when something did, 2 on bad input.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Complain(error.what());
  }
  if (print_facts) return PrintDeviceFacts();
  if (tiny) options.mode = Mode::kTiny;
  if (quick) options.mode = Mode::kQuick;
  const std::string reason = CheckOptions(&options);
  if (!reason.empty()) return Complain(reason);
  return Run(options);
}

}  // namespace
}  // namespace hotpack::check

int main(int argc, char** argv) { return hotpack::check::Main(argc, argv); }
