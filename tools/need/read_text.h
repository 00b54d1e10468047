// Reads a small file.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace hotpack {

// Returns what is in the file; nothing if it cannot be read.
inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace hotpack
