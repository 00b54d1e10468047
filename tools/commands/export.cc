// hotpack export: instance or recording → a file for other programs.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "packer/csv.h"
#include "packer/exact_model.h"
#include "packer/model_writer.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/count_text.h"
#include "tools/cli/file_sink.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/cli/size_text.h"
#include "tools/formats/any_recording.h"
#include "tools/formats/instance_input.h"
#include "tools/formats/snapshot_export.h"
#include "tools/report/chrome.h"
#include "tools/report/svg.h"
#include "tools/report/write_report.h"

namespace hotpack {
namespace {

struct ExportArguments {
  std::string file;
  std::string format;
  std::string memory;
  std::string out;
  bool as_published = false;
  bool all_pairs = false;
  bool force = false;
};

int FailExport(const std::string& message) {
  fprintf(stderr, "hotpack export: %s\n", message.c_str());
  return 2;
}

// Writes one format. `summary` gets one line about the result, without a line end.
using Exporter = absl::Status (*)(const ExportArguments& options, const TextSink& sink, std::string* summary);

absl::Status ExportModel(ModelFormat format, const ExportArguments& options, const TextSink& sink,
                         std::string* summary) {
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return input.status();
  ModelOptions model_options;
  model_options.as_published = options.as_published;
  if (!options.memory.empty()) model_options.memory = *ParseSize(options.memory);
  if (options.all_pairs) model_options.pair_limit = std::numeric_limits<int32_t>::max();
  absl::StatusOr<ExactModel> model = BuildExactModel(input->named.instance, model_options);
  if (!model.ok()) {
    const bool pairs_are_why =
        !options.all_pairs && model.status().message().find("pairs of residency") != std::string::npos;
    return absl::InvalidArgumentError(absl::StrCat(options.file, ": ", model.status().message(),
                                                   pairs_are_why ? "; --all-pairs writes it all the same" : ""));
  }
  *summary =
      absl::StrCat(CountText(model->blocks.size(), "block"), ", ", CountText(model->pairs.size(), "binary"),
                   ", in units of ", CountText(static_cast<uint64_t>(model->unit), "byte"), ", W = ", model->big);
  if (model->lower_bound > 0) absl::StrAppend(summary, ", lower bound ", model->lower_bound);
  if (const double overlap = ToleratedOverlap(model->big); overlap >= 1) {
    absl::StrAppend(summary, "; an integrality tolerance of 1e-6 lets blocks overlap by ",
                    static_cast<int64_t>(overlap), " units: verify the solution");
  }
  return WriteModel(*model, format, input->named.ids, sink);
}

absl::Status ExportLp(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  return ExportModel(ModelFormat::kLp, options, sink, summary);
}

absl::Status ExportMps(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  return ExportModel(ModelFormat::kMps, options, sink, summary);
}

absl::Status ExportMinimalloc(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return input.status();
  *summary = CountText(input->named.instance.blocks.size(), "block") + " of " + input->what;
  return sink(FormatCsv(input->named.instance, input->named.ids, nullptr));
}

absl::Status ExportEventCsv(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<TraceFile> file = LoadForCommand("export", options.file);
  if (!file.ok()) return file.status();
  *summary = CountText(file->trace.events.size(), "event");
  return sink(FormatEventCsv(file->trace));
}

absl::Status ExportTorchSnapshot(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  if (options.out.empty() && isatty(STDOUT_FILENO) != 0) {
    return absl::InvalidArgumentError("a snapshot is not for a terminal: --out has to say where it goes");
  }
  absl::StatusOr<TraceFile> file = LoadForCommand("export", options.file);
  if (!file.ok()) return file.status();
  ExportedSnapshot exported;
  absl::Status status = WriteSnapshot(file->trace, file->origin.created_ns, sink, &exported);
  *summary = absl::StrCat(CountText(exported.allocations, "allocation"), " in one segment of ",
                          FormatSize(static_cast<uint64_t>(exported.height)));
  if (exported.lower_bound > 0) {
    const double ratio = static_cast<double>(exported.height) / static_cast<double>(exported.lower_bound);
    absl::StrAppend(summary, absl::StrFormat(", %.5f times the lower bound", ratio));
  }
  return status;
}

absl::Status ExportSvg(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<ReadReportModelResult> read = ReadReportModel(options.file, ReportModelOptions{});
  if (!read.ok()) return read.status();
  *summary = CountText(read->model.blocks.size(), "block") + " of " + read->model.what;
  if (!read->remark.empty()) *summary += "; " + read->remark;
  return sink(Svg(read->model, SvgOptions{}));
}

absl::Status ExportChrome(const ExportArguments& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<TraceFile> file = LoadForCommand("export", options.file);
  if (!file.ok()) return file.status();
  ChromeCounts counts;
  absl::Status status = WriteChromeTrace(*file, sink, &counts);
  *summary = absl::StrCat(CountText(counts.blocks, "block"), ", ", CountText(counts.launches, "launch"), ", ",
                          CountText(counts.ranges, "range"),
                          counts.times ? "" : "; without times, so one event is one microsecond");
  return status;
}

struct Format {
  const char* name;
  Exporter exporter;
  bool is_model;  // it has --as-published, --memory and --all-pairs
};
constexpr Format kFormats[] = {{"lp", ExportLp, true},
                               {"mps", ExportMps, true},
                               {"minimalloc", ExportMinimalloc, false},
                               {"event-csv", ExportEventCsv, false},
                               {"svg", ExportSvg, false},
                               {"chrome", ExportChrome, false},
                               {"torch-snapshot", ExportTorchSnapshot, false}};

const Format* FindFormat(const std::string& name) {
  if (name == "csv") return FindFormat("event-csv");
  for (const Format& format : kFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

std::string FormatNames() {
  std::string names;
  for (const Format& format : kFormats) absl::StrAppend(&names, names.empty() ? "" : ", ", format.name);
  return names;
}

int RunExport(const ExportArguments& options) {
  const Format& format = *FindFormat(options.format);
  if (!format.is_model && (options.as_published || options.all_pairs)) {
    return FailExport("--as-published and --all-pairs are for models, not for the format " + options.format);
  }
  if (!options.memory.empty() && !options.as_published) return FailExport("--memory is W of the model --as-published");
  absl::Status status = CheckOutput("--out", options.out, options.force, {options.file});
  if (!status.ok()) return FailExport(std::string(status.message()));
  FileSink file(options.out);
  std::string summary;
  std::optional<Progress> progress(std::in_place,
                                   "writing " + (options.out.empty() ? "the " + options.format : options.out));
  status = format.exporter(
      options, [&](absl::string_view text) { return file.Append(text); }, &summary);
  if (status.ok()) status = file.Close();
  progress.reset();
  if (!status.ok()) return FailExport(std::string(status.message()));
  fprintf(stderr, "hotpack export: %s\n", summary.c_str());  // not stdout, which may get the model
  return 0;
}

}  // namespace

void AddExportCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExportArguments>();
  CLI::App* command =
      app.add_subcommand("export", "Writes an instance or a recording for other programs, or as a picture");
  command->add_option("FILE", options->file, "A minimalloc CSV or a recording, also a PyTorch snapshot or an RMM log")
      ->required();
  NoteChoices(command
                  ->add_option("--format", options->format,
                               "One of " + FormatNames() +
                                   ". lp and mps: the exact model; minimalloc: the instance that is packed; "
                                   "event-csv (or csv): all events; svg: the packed iteration as a picture; "
                                   "chrome: for Perfetto and Chrome's tracing; torch-snapshot: a memory snapshot of "
                                   "PyTorch with the whole "
                                   "recording, its blocks at the addresses that best-fit gives "
                                   "them in one segment")
                  ->required()
                  ->check(
                      [](const std::string& name) {
                        return FindFormat(name) != nullptr ? std::string()
                                                           : "'" + name + "' is none of " + FormatNames();
                      },
                      "NAME"),
              absl::StrSplit(FormatNames(), ", "));
  command->add_flag("--as-published", options->as_published,
                    "The paper's equations alone: in bytes, W the memory there is, no lower bound");
  command->add_option("--memory", options->memory, "W with --as-published; 16G if not given")->check(SizeOption());
  command->add_flag("--all-pairs", options->all_pairs,
                    "Write the model also of more than " + std::to_string(kModelPairLimit) + " overlapping pairs");
  AddOutputOption(command, "-o,--out", &options->out, "Write to this file, not to standard output (\"-\")");
  AddForceFlag(command, &options->force);
  command->footer(
      "Example:\n  hotpack export resnet50-train.csv --format lp --out model.lp\n"
      "  cbc model.lp sec 60 solve solution model.sol\n  hotpack verify resnet50-train.csv model.sol\n"
      "  hotpack export job.trace --format svg --out job.svg\n"
      "  hotpack export job.trace --format torch-snapshot --out job.pickle\n"
      "  python -m torch.cuda._memory_viz trace_plot job.pickle");
  command->callback([options, exit_code] {
    options->out = OutputPath(options->out);
    *exit_code = RunExport(*options);
  });
}

}  // namespace hotpack
