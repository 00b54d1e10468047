#include "tools/check/findings.h"

#include <algorithm>
#include <utility>

namespace hotpack::check {
namespace {

Result ResultFromName(const std::string& name) {
  for (const Result result : {Result::kPass, Result::kFail, Result::kDiffers, Result::kSkip}) {
    if (name == ResultName(result)) return result;
  }
  throw std::invalid_argument("'" + name + "' is no result");
}

Findings FromJson(const nlohmann::json& json) {
  Findings all;
  for (const nlohmann::json& one : json.at("findings")) {
    all.findings.push_back({one.at("name").get<std::string>(), ResultFromName(one.at("result").get<std::string>()),
                            one.at("expected").get<std::string>(), one.at("seen").get<std::string>()});
  }
  for (const nlohmann::json& one : json.at("figures")) {
    all.figures.push_back({one.at("name").get<std::string>(), one.at("unit").get<std::string>(),
                           one.at("median").get<double>(), one.at("low").get<double>(), one.at("high").get<double>(),
                           one.at("samples").get<size_t>()});
  }
  return all;
}

}  // namespace

const char* ResultName(Result result) {
  switch (result) {
    case Result::kPass:
      return "pass";
    case Result::kFail:
      return "fail";
    case Result::kDiffers:
      return "differs";
    case Result::kSkip:
      return "skip";
  }
  return "fail";
}

Figure Summarize(std::string name, std::string unit, std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t count = samples.size(), half = count / 2;
  const size_t tenth = (count + 9) / 10;  // nearest rank, from either end
  const double median = count % 2 == 1 ? samples[half] : (samples[half - 1] + samples[half]) / 2;
  return {std::move(name), std::move(unit), median, samples[tenth - 1], samples[count - tenth], count};
}

nlohmann::ordered_json ToJson(const Finding& finding) {
  return {{"name", finding.name},
          {"result", ResultName(finding.result)},
          {"expected", finding.expected},
          {"seen", finding.seen}};
}

nlohmann::ordered_json ToJson(const Figure& figure) {
  return {{"name", figure.name}, {"unit", figure.unit}, {"median", figure.median},
          {"low", figure.low},   {"high", figure.high}, {"samples", figure.samples}};
}

std::optional<Findings> ParseFindings(const std::string& text, std::string* error) {
  for (size_t begin = text.find('{'); begin != std::string::npos; begin = text.find("\n{", begin)) {
    if (text[begin] == '\n') ++begin;
    const nlohmann::json json = nlohmann::json::parse(text.substr(begin), nullptr, false);
    if (json.is_discarded()) continue;
    try {
      return FromJson(json);
    } catch (const std::exception& wrong) {
      *error = wrong.what();
      return std::nullopt;
    }
  }
  *error = "no JSON object on its stdout";
  return std::nullopt;
}

}  // namespace hotpack::check
