// The report page: one self-contained HTML file (docs/report.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "tools/compare/compare_facts.h"
#include "tools/report/report_model.h"

namespace hotpack {

// Blocks shown individually. Beyond that the page omits those with the smallest area (size times life), and notes it.
inline constexpr size_t kPageBlocks = 250'000;

struct PageInput {
  std::string name;                 // of the recording
  std::string title;                // empty: the recorded program's name, or the recording's
  const TraceFile* file = nullptr;  // null: a packing instance
  const ReportModel* model = nullptr;
  Comparison comparison;          // with other allocators; without requests: none
  std::string peers_note;         // a remark about it
  nlohmann::ordered_json stats;   // of `hotpack run` (docs/statistics.md), null without a run
  nlohmann::ordered_json budget;  // of that run: tools/report/budget_section.h; null without one
  std::string command;            // the command that ran, empty if unknown
  size_t block_limit = kPageBlocks;
};

// Returns the data that the page's script draws: figures, names and columns.
nlohmann::ordered_json PageData(const PageInput& input);

// Returns the whole page. O(blocks + events).
std::string Page(const PageInput& input);

std::string EscapeHtml(absl::string_view text);

}  // namespace hotpack
