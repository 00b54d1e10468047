// The command over a driver and a runtime that do nothing but say which calls they got (fake_cuda.cc).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/support/subprocess.h"

namespace hotpack_test {

inline const std::string kData = HOTPACK_SOURCE_DIR "/tests/data/";
inline const std::map<std::string, std::string> kFakeCuda = {{"LD_LIBRARY_PATH", HOTPACK_FAKE_CUDA},
                                                             {"LD_PRELOAD", ""}};

inline Outcome Hotpack(std::vector<std::string> arguments, std::map<std::string, std::string> environment = kFakeCuda) {
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  return RunProgram(arguments, environment);
}

// Without their ends. What is behind the last one is left out.
inline std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

}  // namespace hotpack_test
