#include <algorithm>
#include <filesystem>
#include <utility>

#include "profiler/trace_file.h"
#include "remat/core/update_slices.h"
#include "remat/files/dtr_log.h"
#include "remat/files/graph_json.h"
#include "remat/networks/generator.h"
#include "tools/remat/plan_commands.h"
#include "tools/remat/trace_graph.h"

namespace hotpack {
namespace {

// A recording begins with a byte that never occurs in text, or with the columns of the text form.
bool IsTrace(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] != '{' && text[first] != '[';
}

}  // namespace

absl::StatusOr<remat::Graph> ReadPlanGraph(const std::string& what) {
  std::error_code ignored;
  if (remat::NamesGenerator(what) && !std::filesystem::exists(what, ignored)) return remat::Generate(what);
  absl::StatusOr<std::string> text = ReadWholeFile(what);
  if (!text.ok()) return text.status();
  if (IsTrace(*text)) {
    const absl::StatusOr<TraceFile> trace = ParseTrace(*text, what);
    if (!trace.ok()) return trace.status();
    return GraphFromTrace(*trace, what);
  }
  // Both begin with a brace, but a log has a whole object in each line.
  const std::string first = text->substr(0, text->find('\n'));
  const bool is_log = first.find("\"INSTRUCTION\"") != std::string::npos;
  return is_log ? remat::ParseDtrLog(*text, what) : remat::ParseGraphJson(*text, what);
}

PlanGraph InSlices(remat::Graph program, int count) {
  PlanGraph planned;
  planned.program = std::move(program);
  planned.graph = planned.program;
  if (count == 0 || planned.program.updates.empty()) return planned;
  planned.slice_bytes = std::max<Bytes>(1, remat::SliceBytes(planned.program, count));
  remat::SlicedGraph sliced = remat::SliceUpdates(planned.program, planned.slice_bytes);
  planned.graph = std::move(sliced.graph);
  planned.slices = std::move(sliced.slices);
  return planned;
}

}  // namespace hotpack
