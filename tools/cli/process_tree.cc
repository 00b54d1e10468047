#include "tools/cli/process_tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>

namespace hotpack {
namespace {

struct Status {
  char state = 'X';
  int parent = 0;
};

// Of /proc/PID/stat: "PID (NAME) STATE PARENT ...", where the name may have any characters.
Status StatusOf(int pid) {
  const std::string text = ProcessFile(pid, "stat");
  Status status;
  const size_t name_end = text.rfind(')');
  if (name_end != std::string::npos) std::istringstream(text.substr(name_end + 1)) >> status.state >> status.parent;
  return status;
}

}  // namespace

std::vector<int> AllProcesses() {
  std::vector<int> all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    int pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc() && end == name.data() + name.size()) all.push_back(pid);
  }
  std::sort(all.begin(), all.end());
  return all;
}

// Not by /proc/PID/task/*/children, which some kernels lack.
std::vector<int> Children(int pid) {
  std::vector<int> all = AllProcesses();
  std::erase_if(all, [pid](int each) { return StatusOf(each).parent != pid; });
  return all;
}

std::vector<int> Descendants(int pid) {
  std::multimap<int, int> children;
  for (const int child : AllProcesses()) children.emplace(StatusOf(child).parent, child);
  std::vector<int> all;
  const auto add = [&](int parent) {
    const auto [begin, end] = children.equal_range(parent);
    for (auto child = begin; child != end; ++child) all.push_back(child->second);
  };
  add(pid);
  // Processes that begin meanwhile may reuse ids, so that the parents could form a circle.
  for (size_t i = 0; i < all.size() && all.size() <= children.size(); ++i) add(all[i]);
  return all;
}

bool IsRunning(int pid) {
  const char state = StatusOf(pid).state;
  return state != 'Z' && state != 'X' && state != 'x';
}

std::string ProcessFile(int pid, const char* name, int* error) {
  const std::string path = "/proc/" + std::to_string(pid) + "/" + name;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char piece[4096];
  ssize_t got = file < 0 ? -1 : 1;
  while (got > 0 && (got = read(file, piece, sizeof(piece))) > 0) text.append(piece, static_cast<size_t>(got));
  if (error != nullptr) *error = got < 0 ? errno : 0;
  if (file >= 0) close(file);
  return text;
}

std::string ProgramName(int pid) {
  std::string name = ProcessFile(pid, "comm");
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

}  // namespace hotpack
