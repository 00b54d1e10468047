#include "tools/need/fold_modules.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hotpack {
namespace {

// "layer.0.fc" becomes "layer.*.fc".
std::string PatternOf(const std::string& name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    const bool number = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    pattern += (begin == 0 ? "" : ".") + (number ? "*" : word);
    begin = end + 1;
  }
  return pattern;
}

void MostFirst(std::vector<std::pair<std::string, uint64_t>>* kinds) {
  std::stable_sort(kinds->begin(), kinds->end(), [](const auto& a, const auto& b) { return a.second > b.second; });
}

// The modules of one pattern that share a row.
struct Alike {
  std::vector<const PeakPart*> modules;  // the largest one first
};

PeakPart RowOf(const std::string& pattern, const Alike& alike) {
  if (alike.modules.size() == 1) return *alike.modules.front();
  PeakPart row;
  const bool only_numbers = pattern.find_first_not_of("*.") == std::string::npos;  // of a Sequential, "*" says little
  row.name = only_numbers
                 ? alike.modules.front()->name + " and " + std::to_string(alike.modules.size() - 1) + " like it"
                 : std::to_string(alike.modules.size()) + " x " + pattern;
  std::map<std::string, uint64_t> kinds;
  for (const PeakPart* module : alike.modules) {
    row.bytes += module->bytes;
    for (const auto& [kind, bytes] : module->kinds) kinds[kind] += bytes;
  }
  row.kinds.assign(kinds.begin(), kinds.end());
  MostFirst(&row.kinds);
  return row;
}

}  // namespace

std::vector<PeakPart> FoldModules(const std::vector<PeakPart>& modules) {
  std::vector<const PeakPart*> largest_first;
  for (const PeakPart& module : modules) largest_first.push_back(&module);
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [](const PeakPart* a, const PeakPart* b) { return a->bytes > b->bytes; });
  std::map<std::string, std::vector<Alike>> groups;
  for (const PeakPart* module : largest_first) {
    std::vector<Alike>& rows = groups[PatternOf(module->name)];
    const bool alike = !rows.empty() && 10 * module->bytes >= 9 * rows.back().modules.front()->bytes;
    if (!alike) rows.emplace_back();
    rows.back().modules.push_back(module);
  }
  std::vector<PeakPart> folded;
  for (const auto& [pattern, rows] : groups) {
    for (const Alike& alike : rows) folded.push_back(RowOf(pattern, alike));
  }
  std::stable_sort(folded.begin(), folded.end(),
                   [](const PeakPart& a, const PeakPart& b) { return a.bytes > b.bytes; });
  return folded;
}

}  // namespace hotpack
