#include "tools/check/google_benchmark.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <vector>

namespace hotpack::check {
namespace {

using Samples = std::map<std::string, std::vector<double>>;

double NanosecondsOf(const std::string& unit) {
  if (unit == "ns") return 1;
  if (unit == "us") return 1e3;
  if (unit == "ms") return 1e6;
  if (unit == "s") return 1e9;
  throw std::invalid_argument("the unit of time '" + unit + "'");
}

// Returns the name without the words about the way of measuring.
std::string PlainName(std::string name) {
  for (const char* word : {"/real_time", "/iterations:"}) {
    const size_t begin = name.find(word);
    if (begin == std::string::npos) continue;
    const size_t end = name.find('/', begin + 1);
    name.erase(begin, end == std::string::npos ? end : end - begin);
  }
  return name;
}

// Parses the file's document. It contains NaN, which is no JSON, for means of figures that are all 0.
nlohmann::json Read(const std::string& path) {
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  for (const std::string word : {": NaN", ": Infinity", ": -Infinity"}) {
    for (size_t at = 0; (at = text.find(word, at)) != std::string::npos;) text.replace(at, word.size(), ": null");
  }
  return nlohmann::json::parse(text, nullptr, false);
}

// Reads one repetition. Appends the names in their order to *names.
void Take(const nlohmann::json& line, std::vector<std::string>* names, Samples* times, Samples* ratios, Step* step) {
  if (line.value("run_type", "iteration") != "iteration") return;  // a mean of other runs
  const std::string name = PlainName(line.at("run_name").get<std::string>());
  if (line.value("error_occurred", false)) {
    step->Check(false, name, "it measures what its name says", line.value("error_message", "an error"));
    return;
  }
  if (times->count(name) == 0) names->push_back(name);
  (*times)[name].push_back(line.at("real_time").get<double>() * NanosecondsOf(line.at("time_unit").get<std::string>()));
  if (line.contains("ratio")) (*ratios)[name].push_back(line.at("ratio").get<double>());
}

}  // namespace

void AddBenchmarks(const std::string& path, Step* step) {
  const nlohmann::json document = Read(path);
  std::vector<std::string> names;
  Samples times, ratios;
  std::string wrong = "none";
  try {
    for (const nlohmann::json& line : document.at("benchmarks")) Take(line, &names, &times, &ratios, step);
  } catch (const std::exception& error) {
    names.clear();
    wrong = error.what();
  }
  for (const std::string& name : names) {
    step->AddFigure(name, "ns", times[name]);
    step->AddFigure(name + ", ratio", "ratio", ratios[name]);
  }
  if (names.empty()) step->Check(false, "benchmarks", "a document with times", wrong);
}

const Figure* FindFigure(const Step& step, const std::string& name) {
  const auto found =
      std::find_if(step.figures.begin(), step.figures.end(), [&](const Figure& f) { return f.name == name; });
  return found != step.figures.end() ? &*found : nullptr;
}

}  // namespace hotpack::check
