#include "tools/recording/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace hotpack {
namespace {

// Returns the index at which the parameter list at the end of `text` begins; the end if there is none. Parentheses may
// be nested.
size_t ParametersAt(const std::string& text) {
  if (text.empty() || text.back() != ')') return text.size();
  int depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return text.size();
}

}  // namespace

std::string Demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), free);
  if (status != 0 || text == nullptr) return name;
  std::string result(text.get());
  const size_t end = ParametersAt(result);
  return end > 0 ? result.substr(0, end) : result;
}

}  // namespace hotpack
