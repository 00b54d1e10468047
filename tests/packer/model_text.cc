#include "model_text.h"

#include <cmath>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace hotpack::testing {
namespace {

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

[[noreturn]] void Bad(const std::string& line) { throw std::runtime_error("not understood: " + line); }

double Number(const std::string& word) {
  size_t end = 0;
  const double number = std::stod(word, &end);
  if (end != word.size()) Bad(word);
  return number;
}

bool IsNumber(const std::string& word) {
  return word.find_first_not_of("-0123456789") == std::string::npos && word != "-";
}

// "a - 3 b + c": up to the sense, or to the end.
size_t ReadTerms(const std::vector<std::string>& words, size_t at, std::map<std::string, double>* terms) {
  double sign = 1, factor = 1;
  for (; at < words.size() && words[at] != "<=" && words[at] != ">=" && words[at] != "="; ++at) {
    if (words[at] == "+" || words[at] == "-") {
      sign = words[at] == "-" ? -1 : 1;
    } else if (IsNumber(words[at])) {
      factor = Number(words[at]);
    } else {
      if (!terms->emplace(words[at], sign * factor).second) Bad(words[at] + " twice in a row");
      sign = factor = 1;
    }
  }
  return at;
}

void ReadLpBound(const std::string& line, const std::vector<std::string>& words, ModelText* model) {
  if (words.size() == 3 && words[1] == "=") {
    model->bounds[words[0]] = {Number(words[2]), Number(words[2])};
  } else if (words.size() == 5 && words[1] == "<=" && words[3] == "<=") {
    model->bounds[words[2]] = {Number(words[0]), Number(words[4])};
  } else {
    Bad(line);
  }
}

void ReadLpRow(const std::string& line, const std::vector<std::string>& words, ModelText* model) {
  ModelRow row;
  const size_t at = ReadTerms(words, 1, &row.terms);
  if (words.empty() || words[0].back() != ':' || at + 2 != words.size()) Bad(line);
  row.sense = words[at][0];
  row.right = Number(words[at + 1]);
  if (!model->rows.emplace(words[0].substr(0, words[0].size() - 1), row).second) Bad(line);
}

void ReadMpsBound(const std::string& line, const std::vector<std::string>& words, ModelText* model) {
  if (words.size() < 3) Bad(line);
  ModelBounds& bounds = model->bounds[words[2]];
  if (words[0] == "UP") {
    bounds.most = Number(words.at(3));
  } else if (words[0] == "FX") {
    bounds = {Number(words.at(3)), Number(words.at(3))};
  } else if (words[0] == "BV") {
    bounds = {0, 1};
  } else if (words[0] != "PL") {
    Bad(line);
  }
}

}  // namespace

ModelText ReadLp(const std::string& text) {
  ModelText model;
  std::istringstream in(text);
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.size() > 255) Bad(line);
    if (line[0] == '\\') continue;
    if (line[0] != ' ') {
      section = line;
      continue;
    }
    const std::vector<std::string> words = Words(line);
    if (section == "Minimize") {
      ReadTerms(words, 1, &model.objective);
    } else if (section == "Subject To") {
      ReadLpRow(line, words, &model);
    } else if (section == "Bounds") {
      ReadLpBound(line, words, &model);
    } else if (section == "Generals" || section == "Binaries") {
      if (!model.integers.insert(words.at(0)).second) Bad(line);
      if (section == "Binaries") model.bounds[words[0]] = {0, 1};
    } else {
      Bad(line);
    }
  }
  if (section != "End") Bad("no end");
  for (const auto& [name, row] : model.rows) {
    for (const auto& [variable, factor] : row.terms) model.bounds.try_emplace(variable);
  }
  return model;
}

ModelText ReadMps(const std::string& text) {
  ModelText model;
  std::istringstream in(text);
  std::string section;
  bool integer = false;
  for (std::string line; std::getline(in, line);) {
    if (line.size() > 255) Bad(line);
    if (line[0] == '*') continue;
    const std::vector<std::string> words = Words(line);
    if (line[0] != ' ') {
      section = words[0];
    } else if (section == "ROWS") {
      if (words[0] != "N") model.rows[words.at(1)].sense = words[0] == "L" ? '<' : words[0] == "G" ? '>' : '=';
    } else if (words.size() == 3 && words[1] == "'MARKER'") {
      integer = words[2] == "'INTORG'";
    } else if (section == "COLUMNS") {
      if (integer) model.integers.insert(words.at(0));
      auto& terms = words.at(1) == "obj" ? model.objective : model.rows.at(words[1]).terms;
      if (!terms.emplace(words[0], Number(words.at(2))).second) Bad(line);
    } else if (section == "RHS") {
      model.rows.at(words.at(1)).right = Number(words.at(2));
    } else if (section == "BOUNDS") {
      ReadMpsBound(line, words, &model);
    } else {
      Bad(line);
    }
  }
  if (section != "ENDATA") Bad("no end");
  return model;
}

std::string FirstViolation(const ModelText& model, const std::map<std::string, double>& values) {
  for (const auto& [name, bounds] : model.bounds) {
    const double value = values.at(name);
    if (value < bounds.least || value > bounds.most) return "bounds of " + name;
    if (model.integers.count(name) != 0 && value != std::floor(value)) return "integrality of " + name;
  }
  for (const auto& [name, row] : model.rows) {
    double left = 0;
    for (const auto& [variable, factor] : row.terms) left += factor * values.at(variable);
    const bool met = row.sense == '<' ? left <= row.right : row.sense == '>' ? left >= row.right : left == row.right;
    if (!met) return "row " + name;
  }
  return "";
}

}  // namespace hotpack::testing
