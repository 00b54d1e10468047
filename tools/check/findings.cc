#include "tools/check/findings.h"

#include <stdexcept>

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
