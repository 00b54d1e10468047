// hotpack import: converts recordings of other allocators to hotpack's.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "packer/csv.h"
#include "profiler/trace_file.h"
#include "tools/cli/choices.h"
#include "tools/cli/commands.h"
#include "tools/cli/output_file.h"
#include "tools/cli/progress.h"
#include "tools/formats/any_recording.h"
#include "tools/formats/byte_stream.h"
#include "tools/formats/minimalloc_import.h"
#include "tools/recording/recording_builder.h"
#include "tools/recording/trace_output.h"

namespace hotpack {
namespace {

struct ImportArguments {
  std::string file;
  std::string out;
  std::string format = "auto";
  int device = -1;  // -1: not given
  bool force = false;
};

int FailImport(const std::string& message) {
  fprintf(stderr, "hotpack import: %s\n", message.c_str());
  return 2;
}

// "1 release", "2 releases".
std::string Count(uint64_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "s");
}

void AddTo(std::string* list, const std::string& item) { absl::StrAppend(list, list->empty() ? "" : ", ", item); }

absl::StatusOr<Imported> ImportSnapshotOf(const ImportArguments& options, ByteSource source) {
  const std::optional<int> device = options.device < 0 ? std::nullopt : std::optional<int>(options.device);
  return ImportSnapshot(options.file, device, std::move(source));
}

absl::StatusOr<Imported> ImportRmmLogOf(const ImportArguments& options, ByteSource source) {
  return ImportRmmLog(options.file, std::move(source));
}

absl::StatusOr<Imported> ImportMinimalloc(const ImportArguments& options, ByteSource) {
  absl::StatusOr<NamedInstance> named = ReadCsvFile(options.file);
  if (!named.ok()) return named.status();
  absl::StatusOr<ImportedInstance> instance = RecordingOf(*named, options.file);
  if (!instance.ok()) return instance.status();
  Imported imported;
  imported.summary = absl::StrCat("packing instance: ", Count(instance->allocations, "allocation"), ", one iteration");
  if (instance->has_offsets) AddTo(&imported.left_out, "offsets");
  if (instance->has_alignments) AddTo(&imported.left_out, "alignments");
  if (instance->gaps > 0)
    AddTo(&imported.left_out, Count(instance->gaps, "gap") + " (the block is allocated again after it)");
  imported.trace = std::move(instance->trace);
  return imported;
}

// Imports an event CSV, or a trace file that is to become one.
absl::StatusOr<Imported> ImportRecording(const ImportArguments& options, ByteSource) {
  absl::StatusOr<AnyRecording> recording = LoadAnyRecording(options.file);
  if (!recording.ok()) return recording.status();
  TraceFile* const file = &recording->file;
  Imported imported;
  imported.left_out = recording->remark;
  uint64_t allocations = 0;
  for (const Event& event : file->trace.events) allocations += event.kind == EventKind::kAllocate ? 1 : 0;
  imported.summary = absl::StrCat("recording: ", Count(allocations, "allocation"), ", ", UnreleasedBlocks(file->trace),
                                  " not released");
  imported.began_ns = file->origin.created_ns;
  imported.notes = std::move(file->notes);
  imported.trace = std::move(file->trace);
  return imported;
}

struct ImportFormat {
  const char* name;
  absl::StatusOr<Imported> (*importer)(const ImportArguments& options, ByteSource source);
};
constexpr ImportFormat kImportFormats[] = {{"torch-snapshot", ImportSnapshotOf},
                                           {"rmm-log", ImportRmmLogOf},
                                           {"minimalloc", ImportMinimalloc},
                                           {"event-csv", ImportRecording},
                                           {"trace", ImportRecording}};
constexpr char kFormatNames[] = "auto, torch-snapshot, rmm-log, minimalloc, event-csv, trace";

const ImportFormat* FindImportFormat(const std::string& name) {
  for (const ImportFormat& format : kImportFormats) {
    if (name == format.name) return &format;
  }
  return nullptr;
}

// Returns the format of a file by its first bytes; null if it is unknown.
const ImportFormat* Recognise(std::string_view begin) {
  if (LooksLikeSnapshot(begin)) return FindImportFormat("torch-snapshot");
  if (LooksLikeRmmLog(begin)) return FindImportFormat("rmm-log");
  switch (RecogniseFormat(begin)) {
    case FileFormat::kTraceFile:
      return FindImportFormat("trace");
    case FileFormat::kEventCsv:
      return FindImportFormat("event-csv");
    case FileFormat::kOther:
      break;
  }
  return LooksLikeMinimalloc(begin) ? FindImportFormat("minimalloc") : nullptr;
}

// Returns the first bytes of a file, as many as exist.
absl::StatusOr<std::string> BeginOf(const std::string& path) {
  absl::StatusOr<ByteSource> source = FileSource(path);
  if (!source.ok()) return source.status();
  std::string begin(256, '\0');
  absl::StatusOr<size_t> bytes = (*source)(begin.data(), begin.size());
  if (!bytes.ok()) return bytes.status();
  begin.resize(*bytes);
  return begin;
}

absl::StatusOr<const ImportFormat*> ChooseFormat(const ImportArguments& options) {
  if (options.format != "auto") return FindImportFormat(options.format);
  std::error_code error;
  if (!std::filesystem::is_regular_file(options.file, error) && std::filesystem::exists(options.file, error) &&
      !std::filesystem::is_directory(options.file, error)) {
    return absl::InvalidArgumentError(options.file + ": is no regular file: --format has to say what it holds");
  }
  absl::StatusOr<std::string> begin = BeginOf(options.file);
  if (!begin.ok()) return begin.status();
  if (begin->empty()) return absl::InvalidArgumentError(options.file + ": the file is empty");
  const ImportFormat* format = Recognise(*begin);
  if (const std::string kind = format == nullptr ? OtherKindOfFile(*begin) : ""; !kind.empty()) {
    return absl::InvalidArgumentError(options.file + ": is " + kind);
  }
  if (format == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.file,
                     ": neither a PyTorch snapshot (a pickle of protocol 2 to 5), nor an RMM log with its "
                     "header, nor a packing instance (minimalloc), nor a recording"));
  }
  return format;
}

absl::StatusOr<Imported> ImportWithProgress(const ImportFormat& format, const ImportArguments& options,
                                            ByteSource source) {
  std::error_code error;
  const uintmax_t bytes = std::filesystem::file_size(options.file, error);
  Progress progress("reading " + options.file, error ? 0 : bytes);
  uint64_t read = 0;
  return format.importer(options, [&](char* to, size_t most) {
    absl::StatusOr<size_t> got = source(to, most);
    if (got.ok()) progress.Reached(read += *got);
    return got;
  });
}

absl::Status Import(const ImportArguments& options) {
  absl::Status status = CheckOutput("--out", options.out, options.force, {options.file});
  if (!status.ok()) return status;
  absl::StatusOr<const ImportFormat*> format = ChooseFormat(options);
  if (!format.ok()) return format.status();
  if (options.device >= 0 && (*format)->importer != ImportSnapshotOf) {
    return absl::InvalidArgumentError("--device is for PyTorch snapshots");
  }
  absl::StatusOr<ByteSource> source = FileSource(options.file);
  if (!source.ok()) return source.status();
  absl::StatusOr<Imported> imported = ImportWithProgress(**format, options, *std::move(source));
  if (!imported.ok()) return imported.status();
  if (absl::EndsWith(options.out, ".csv") && !imported->notes.empty()) {
    AddTo(&imported->left_out, "launches, ranges and stacks, which an event CSV cannot hold");
  }
  status = WriteRecording(imported->trace, imported->notes, imported->began_ns, options.out);
  if (!status.ok()) return status;
  fprintf(stderr, "hotpack import: %s\n", imported->summary.c_str());  // not stdout, which may get the recording
  if (!imported->left_out.empty()) fprintf(stderr, "hotpack import: left out: %s\n", imported->left_out.c_str());
  return absl::OkStatus();
}

int RunImport(const ImportArguments& options) {
  const absl::Status status = Import(options);
  return status.ok() ? 0 : FailImport(std::string(status.message()));
}

}  // namespace

void AddImportCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ImportArguments>();
  CLI::App* command = app.add_subcommand(
      "import", "Turns a PyTorch memory snapshot, an RMM log or a packing instance into a recording");
  command
      ->add_option(
          "FILE", options->file,
          "What torch.cuda.memory._dump_snapshot wrote after _record_memory_history(), an RMM log, a minimalloc CSV, "
          "or a recording to be written in the other format")
      ->required();
  AddOutputOption(
      command, "-o,--out", &options->out,
      "The recording: an event CSV if it ends in .csv, else a trace file. \"-\": a trace file, to standard output")
      ->required();
  NoteChoices(command->add_option("--format", options->format, std::string("What FILE is, one of ") + kFormatNames)
                  ->check(
                      [](const std::string& name) {
                        return name == "auto" || FindImportFormat(name) != nullptr
                                   ? std::string()
                                   : "'" + name + "' is none of " + kFormatNames;
                      },
                      "NAME")
                  ->capture_default_str(),
              absl::StrSplit(kFormatNames, ", "));
  command
      ->add_option("--device", options->device, "Which device of a snapshot; if not given, the one with most entries")
      ->check(CLI::Range(0, 65535));
  AddForceFlag(command, &options->force);
  command->footer(
      "Example:\n  hotpack import snapshot.pickle -o job.trace\n  hotpack show job.trace\n"
      "What is taken over and what is lost: docs/snapshots.md");
  command->callback([options, exit_code] {
    options->out = OutputPath(options->out);
    *exit_code = RunImport(*options);
  });
}

}  // namespace hotpack
