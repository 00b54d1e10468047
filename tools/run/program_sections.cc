#include "tools/run/program_sections.h"

#include <filesystem>
#include <fstream>

namespace hotpack {
namespace {

using Json = nlohmann::ordered_json;

constexpr uintmax_t kMaxBytes = 4 << 20;

Json Numbers(const Json& object) {
  Json numbers = Json::object();
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) numbers[name] = value;
  }
  return numbers;
}

}  // namespace

ProgramSections ReadSections(const std::string& path) {
  ProgramSections sections;
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) || std::filesystem::file_size(path, error) > kMaxBytes || error) {
    return sections;
  }
  std::ifstream file(path);
  const Json all = Json::parse(file, nullptr, false);
  if (!all.is_object()) return sections;
  for (const auto& [name, section] : all.items()) {
    if (!section.is_object()) continue;
    const auto figures = section.find("figures"), report = section.find("report");
    if (figures != section.end() && figures->is_object()) sections.figures[name] = Numbers(*figures);
    if (report != section.end() && report->is_object()) sections.report[name] = *report;
  }
  return sections;
}

ProgramSections ReadSections(const std::string& directory, const std::vector<ProcessStats>& processes) {
  for (const ProcessStats& process : processes) {
    ProgramSections sections = ReadSections(directory + "/sections." + std::to_string(process.pid));
    if (!sections.figures.empty() || !sections.report.empty()) return sections;
  }
  return {};
}

}  // namespace hotpack
