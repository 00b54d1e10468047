// PTX text: parameters of kernels and module variables (PTX ISA, "State spaces, types, and variables").
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "simgpu/driver/image.h"

namespace simgpu {
namespace {

// Returns the bytes of a parameter declaration: ".param .u64 name", ".param .align 8 .b8 name[24]". 0: not understood.
uint32_t PtxBytes(const std::string& declaration) {
  uint32_t unit = 0;
  for (const char* type : {".b", ".u", ".s", ".f"}) {
    for (size_t at = declaration.find(type); at != std::string::npos; at = declaration.find(type, at + 1)) {
      const int bits = atoi(declaration.c_str() + at + 2);
      if (bits == 8 || bits == 16 || bits == 32 || bits == 64 || bits == 128) unit = bits / 8;
    }
  }
  const size_t bracket = declaration.find('[');
  return bracket == std::string::npos ? unit : unit * atoi(declaration.c_str() + bracket + 1);
}

uint32_t PtxAlignment(const std::string& declaration, uint32_t bytes) {
  const size_t at = declaration.find(".align");
  return at != std::string::npos ? atoi(declaration.c_str() + at + 6) : std::clamp<uint32_t>(bytes, 1, 16);
}

void ReadEntries(const std::string& text, Image* image) {
  for (size_t at = text.find(".entry"); at != std::string::npos; at = text.find(".entry", at + 1)) {
    const size_t name = text.find_first_not_of(" \t\r\n", at + 6);
    const size_t name_end = text.find_first_of(" \t\r\n({", name);
    if (name == std::string::npos || name_end == std::string::npos) return;
    std::vector<KernelParameter> parameters;
    const size_t open = text.find_first_not_of(" \t\r\n", name_end);
    if (open != std::string::npos && text[open] == '(') {
      const size_t close = std::min(text.find(')', open), text.size());
      uint32_t offset = 0;
      for (size_t from = open + 1; from < close;) {
        const size_t to = std::min(text.find(',', from), close);
        const std::string declaration = text.substr(from, to - from);
        const uint32_t bytes = PtxBytes(declaration);
        if (bytes > 0) {
          const uint32_t alignment = std::max<uint32_t>(PtxAlignment(declaration, bytes), 1);
          offset = (offset + alignment - 1) / alignment * alignment;
          parameters.push_back({offset, bytes});
          offset += bytes;
        }
        from = to + 1;
      }
    }
    image->kernels.try_emplace(text.substr(name, name_end - name), std::move(parameters));
  }
}

// Returns the bytes of an initialiser: "{0, 0, 192, 63}", "0f3FC00000", "7". Names of other variables count as zero.
std::vector<char> InitialBytes(const std::string& text, uint32_t unit, uint64_t bytes) {
  std::vector<char> data;
  for (size_t from = text.find_first_not_of("{ "); from < text.size();) {
    const size_t to = std::min(text.find_first_of(",}", from), text.size());
    const std::string token = text.substr(from, to - from);
    uint64_t value = 0;
    if (token.starts_with("0f") || token.starts_with("0d")) {
      value = strtoull(token.c_str() + 2, nullptr, 16);
    } else {
      value = static_cast<uint64_t>(strtoll(token.c_str(), nullptr, 0));
    }
    for (uint32_t i = 0; i < unit; ++i) data.push_back(static_cast<char>(value >> (8 * i)));
    from = text.find_first_not_of(",} ", to);
  }
  data.resize(bytes);
  return data;
}

// Reads ".visible .global .align 4 .b8 table[12] = {…};" at the beginning of a line.
void ReadVariable(const std::string& statement, Image* image) {
  const size_t equals = statement.find('=');
  std::string declaration = statement.substr(0, equals);
  while (!declaration.empty() && isspace(static_cast<unsigned char>(declaration.back())) != 0) declaration.pop_back();
  const size_t name_end = std::min(declaration.find('['), declaration.size());
  const size_t name = declaration.find_last_of(" \t", name_end - 1) + 1;
  DeviceVariable variable;
  variable.bytes = PtxBytes(declaration);
  if (variable.bytes == 0 || name == 0) return;
  const uint32_t unit = PtxBytes(declaration.substr(0, name));
  if (equals != std::string::npos) {
    variable.initial = InitialBytes(statement.substr(equals + 1), unit, variable.bytes);
  }
  image->variables.try_emplace(declaration.substr(name, name_end - name), std::move(variable));
}

void ReadVariables(const std::string& text, Image* image) {
  for (size_t line = 0; line < text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    size_t at = line;
    for (const char* linkage : {".visible ", ".weak ", ".extern "}) {
      if (text.compare(at, strlen(linkage), linkage) == 0) at += strlen(linkage);
    }
    if (text.compare(at, 8, ".global ") == 0 || text.compare(at, 7, ".const ") == 0) {
      ReadVariable(text.substr(at, std::min(text.find(';', at), text.size()) - at), image);
    }
    line = end + 1;
  }
}

}  // namespace

void ReadPtx(const std::string& text, Image* image) {
  ReadEntries(text, image);
  ReadVariables(text, image);
}

}  // namespace simgpu
