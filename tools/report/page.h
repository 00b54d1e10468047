// The report page: one HTML file that needs nothing else (docs/report.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tools/compare/compare_facts.h"
#include "tools/report/report_model.h"

namespace hotpack {

// Blocks of which more is told than their number; beyond that the ones with the smallest area (size times life) are
// left out of the page, which says so.
inline constexpr size_t kPageBlocks = 250'000;

struct PageInput {
  std::string name;                 // of the recording
  std::string title;                // empty: the recorded program's name, or the recording's
  const TraceFile* file = nullptr;  // null: of a packing instance
  const ReportModel* picture = nullptr;
  Comparison comparison;         // with other allocators; of no requests: there is none
  std::string peers_note;        // what there is to say about it
  nlohmann::ordered_json stats;  // of `hotpack run` (docs/statistics.md), null where there was none
  std::string command;           // what was run, empty if not known
  size_t block_limit = kPageBlocks;
};

// What the page's script draws: figures, names and columns.
nlohmann::ordered_json PageData(const PageInput& input);

// The whole page. O(blocks + events).
std::string Page(const PageInput& input);

std::string EscapeHtml(absl::string_view text);

}  // namespace hotpack
