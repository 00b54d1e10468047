// Runs a program and collects what it prints.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace hotpack_test {

struct Outcome {
  int code = 0;  // 128 + signal if killed; 127 if it could not be started
  std::string out;
  std::string err;
};

// `environment`: set (or, with an empty value, removed) on top of this process's. The program is killed after 120 s.
Outcome RunProgram(const std::vector<std::string>& command, const std::map<std::string, std::string>& environment = {});

// The sanitizers' runtime has to be the first of all preloads; empty where the build has no sanitizer. Ends in ':'.
std::string SanitizerPreload();

// A fresh directory, removed at the end of the object's life.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);

}  // namespace hotpack_test
