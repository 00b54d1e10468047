// Models in LP and MPS text read back, as far as packer/model_writer.h writes them. For tests.
#pragma once

#include <map>
#include <set>
#include <string>

namespace hotpack::testing {

struct ModelRow {
  std::map<std::string, double> terms;  // coefficient of each variable
  char sense = '=';                     // '<', '>' or '='
  double right = 0;
  bool operator==(const ModelRow&) const = default;
};

struct ModelBounds {
  double least = 0;
  double most = 1e300;
  bool operator==(const ModelBounds&) const = default;
};

struct ModelText {
  std::map<std::string, double> objective;
  std::map<std::string, ModelRow> rows;
  std::map<std::string, ModelBounds> bounds;  // of every variable
  std::set<std::string> integers;
  bool operator==(const ModelText&) const = default;
};

// Throws std::runtime_error if the text is not as expected.
ModelText ReadLp(const std::string& text);
ModelText ReadMps(const std::string& text);

// Returns the name of the first row, bound or integrality that `values` violates; empty if there is none. Exact.
std::string FirstViolation(const ModelText& model, const std::map<std::string, double>& values);

}  // namespace hotpack::testing
