// hotpack export: instance or recording → a file for other programs.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "packer/csv.h"
#include "packer/exact_model.h"
#include "packer/model_writer.h"
#include "profiler/event_csv.h"
#include "profiler/trace_file.h"
#include "tools/commands.h"
#include "tools/file_sink.h"
#include "tools/instance_input.h"
#include "tools/interrupt.h"
#include "tools/report/chrome.h"
#include "tools/report/svg.h"
#include "tools/report/write_report.h"
#include "tools/snapshot_export.h"
#include "tools/units.h"

namespace hotpack {
namespace {

struct Options {
  std::string file;
  std::string format;
  std::string memory;
  std::string out;
  bool as_published = false;
  bool force = false;
};

int Fail(const std::string& message) {
  fprintf(stderr, "hotpack export: %s\n", message.c_str());
  return 2;
}

// Writes one format. What is said about the result goes to `summary`, one line without a line end.
using Exporter = absl::Status (*)(const Options& options, const TextSink& sink, std::string* summary);

absl::Status ExportModel(ModelFormat format, const Options& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return input.status();
  ModelOptions model_options;
  model_options.as_published = options.as_published;
  if (!options.memory.empty()) model_options.memory = *ParseSize(options.memory);
  if (options.force) model_options.pair_limit = std::numeric_limits<int32_t>::max();
  absl::StatusOr<ExactModel> model = BuildExactModel(input->named.instance, model_options);
  if (!model.ok()) {
    const bool pairs_are_why =
        !options.force && model.status().message().find("pairs of residency") != std::string::npos;
    return absl::InvalidArgumentError(absl::StrCat(options.file, ": ", model.status().message(),
                                                   pairs_are_why ? "; --force writes it all the same" : ""));
  }
  *summary = absl::StrCat(model->blocks.size(), " blocks, ", model->pairs.size(), " binaries, in units of ",
                          model->unit, " bytes, W = ", model->big);
  if (model->lower_bound > 0) absl::StrAppend(summary, ", lower bound ", model->lower_bound);
  if (const double overlap = ToleratedOverlap(model->big); overlap >= 1) {
    absl::StrAppend(summary, "; an integrality tolerance of 1e-6 lets blocks overlap by ",
                    static_cast<int64_t>(overlap), " units: verify the solution");
  }
  return WriteModel(*model, format, input->named.ids, sink);
}

absl::Status ExportLp(const Options& options, const TextSink& sink, std::string* summary) {
  return ExportModel(ModelFormat::kLp, options, sink, summary);
}

absl::Status ExportMps(const Options& options, const TextSink& sink, std::string* summary) {
  return ExportModel(ModelFormat::kMps, options, sink, summary);
}

absl::Status ExportTorchSnapshot(const Options& options, const TextSink& sink, std::string* summary) {
  if (options.out.empty() && isatty(STDOUT_FILENO) != 0) {
    return absl::InvalidArgumentError("a snapshot is not for a terminal: --out has to say where it goes");
  }
  absl::StatusOr<TraceFile> file = LoadTrace(options.file);
  if (!file.ok()) return file.status();
  ExportedSnapshot exported;
  const TextSink watched = [&](absl::string_view text) {
    return Interrupted() ? absl::CancelledError("interrupted") : sink(text);
  };
  absl::Status status = WriteSnapshot(file->trace, file->origin.created_ns, InterruptFlag(), watched, &exported);
  *summary = absl::StrCat(exported.allocations, " allocations in one segment of ",
                          FormatSize(static_cast<uint64_t>(exported.height)));
  if (exported.lower_bound > 0) {
    const double ratio = static_cast<double>(exported.height) / static_cast<double>(exported.lower_bound);
    absl::StrAppend(summary, absl::StrFormat(", %.5f times the lower bound", ratio));
  }
  return status;
}

absl::Status ExportSvg(const Options& options, const TextSink& sink, std::string* summary) {
  PictureOptions picture_options;
  picture_options.cancel = InterruptFlag();
  absl::StatusOr<ReadPictureResult> read = ReadPicture(options.file, picture_options);
  if (!read.ok()) return read.status();
  *summary = absl::StrCat(read->picture.blocks.size(), " blocks, ", read->picture.what);
  return sink(Svg(read->picture, SvgOptions{}));
}

absl::Status ExportChrome(const Options& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<TraceFile> file = LoadTrace(options.file);
  if (!file.ok()) return file.status();
  ChromeCounts counts;
  const TextSink watched = [&](absl::string_view text) {
    return Interrupted() ? absl::CancelledError("interrupted") : sink(text);
  };
  absl::Status status = WriteChromeTrace(*file, watched, &counts);
  *summary = absl::StrCat(counts.blocks, " blocks, ", counts.launches, " launches, ", counts.ranges, " ranges",
                          counts.times ? "" : "; without times, so one event is one microsecond");
  return status;
}

absl::Status ExportCsv(const Options& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<TraceFile> file = LoadTrace(options.file);
  if (!file.ok()) return file.status();
  *summary = absl::StrCat(file->trace.events.size(), " events; threads, streams and times are not kept");
  return sink(FormatEventCsv(file->trace));
}

absl::Status ExportMinimalloc(const Options& options, const TextSink& sink, std::string* summary) {
  absl::StatusOr<InstanceInput> input = ReadInstance(options.file);
  if (!input.ok()) return input.status();
  *summary = absl::StrCat(input->named.instance.blocks.size(), " blocks, ", input->what);
  return sink(FormatCsv(input->named.instance, input->named.ids, nullptr));
}

struct Format {
  const char* name;
  Exporter exporter;
  bool is_model;  // --as-published, --memory and --force are for these
};
constexpr Format kFormats[] = {
    {"lp", ExportLp, true},          {"mps", ExportMps, true},
    {"minimalloc", ExportMinimalloc, false}, {"csv", ExportCsv, false},
    {"svg", ExportSvg, false},       {"chrome", ExportChrome, false},
    {"torch-snapshot", ExportTorchSnapshot, false}};

const Format* FindFormat(const std::string& name) {
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

int Export(const Options& options) {
  const Format& format = *FindFormat(options.format);
  if (!format.is_model && (options.as_published || options.force)) {
    return Fail("--as-published and --force are for models, not for the format " + options.format);
  }
  if (!options.memory.empty() && !options.as_published) return Fail("--memory is W of the model --as-published");
  std::error_code error;
  if (!options.out.empty() && std::filesystem::equivalent(options.out, options.file, error)) {
    return Fail("--out " + options.out + " is the input");
  }
  FileSink file(options.out);
  std::string summary;
  absl::Status status = format.exporter(
      options, [&](absl::string_view text) { return file.Append(text); }, &summary);
  if (status.ok()) status = file.Close();
  if (!status.ok()) return Fail(std::string(status.message()));
  fprintf(stderr, "hotpack export: %s\n", summary.c_str());  // not to stdout, where the model may go
  return 0;
}

int RunExport(const Options& options) {
  const InterruptGuard guard;
  const int exit_code = Export(options);
  InterruptGuard::EndIfInterrupted();
  return exit_code;
}

}  // namespace

void AddExportCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("export",
                         "Writes an instance for a solver, or a recording for people and other programs to look at");
  command->add_option("FILE", options->file, "A minimalloc CSV, an event CSV or a trace file")->required();
  command->add_option("--format", options->format, "One of " + FormatNames() +
                                                        ". lp, mps: the exact model; minimalloc: what is packed; csv: "
                                                        "the events; svg: the packed iteration as a picture; chrome: "
                                                        "for Perfetto and Chrome's tracing; torch-snapshot: a memory snapshot of PyTorch with the whole "
                                                        "recording, its blocks at the addresses that best-fit gives "
                                                        "them in one segment")
      ->required()
      ->check(
          [](const std::string& name) {
            return FindFormat(name) != nullptr ? std::string() : "'" + name + "' is none of " + FormatNames();
          },
          "NAME");
  command->add_flag("--as-published", options->as_published,
                    "The paper's equations alone: in bytes, W the memory there is, no lower bound");
  command->add_option("--memory", options->memory, "W with --as-published; 16G if not given")->check(SizeOption());
  command->add_option("-o,--out", options->out, "Write to this file, not to standard output");
  command->add_flag("--force", options->force,
                    "Write the model also of more than " + std::to_string(kModelPairLimit) + " overlapping pairs");
  command->footer(
      "Example:\n  hotpack export resnet50-train.csv --format lp --out model.lp\n"
      "  cbc model.lp sec 60 solve solution model.sol\n  hotpack verify resnet50-train.csv model.sol\n"
      "  hotpack export job.trace --format svg --out job.svg\n"
      "  hotpack export job.trace --format torch-snapshot --out job.pickle\n"
      "  python -m torch.cuda._memory_viz trace_plot job.pickle");
  command->callback([options, exit_code] { *exit_code = RunExport(*options); });
}

}  // namespace hotpack
