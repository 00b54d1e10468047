// The order of the rooms, and what no file of the project may contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace hotpack {
namespace {

namespace fs = std::filesystem;

// What each room may include, besides its own files. Rooms not named (tools, bench, tests) may include all.
const std::map<std::string, std::set<std::string>>& AllowedRooms() {
  static const auto* allowed = new std::map<std::string, std::set<std::string>>{
      {"simgpu", {}},
      {"packer", {}},
      {"profiler", {"packer"}},
      {"planner", {"packer"}},
      {"runtime", {"packer", "profiler"}},
      {"preload", {"packer", "profiler", "runtime"}},
  };
  return *allowed;
}

const std::set<std::string>& AllRooms() {
  static const auto* rooms = new std::set<std::string>{"simgpu", "packer", "profiler", "runtime", "preload",
                                                       "tools",  "bench",  "tests",    "planner", "python"};
  return *rooms;
}

// One line for each include of `room`'s file that reaches into a room it may not use.
std::vector<std::string> WrongIncludes(const std::string& room, const std::string& text) {
  static const std::regex include_line(R"re(^[ \t]*#[ \t]*include[ \t]*["<](?:\.\./)*([a-z]+)/[^">]*[">])re",
                                       std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> wrong;
  const auto allowed = AllowedRooms().find(room);
  if (allowed == AllowedRooms().end()) return wrong;
  for (std::sregex_iterator i(text.begin(), text.end(), include_line), end; i != end; ++i) {
    const std::string target = (*i)[1];
    if (target == room || AllRooms().count(target) == 0 || allowed->second.count(target) != 0) continue;
    wrong.push_back(room + " includes " + target + ": " + i->str());
  }
  return wrong;
}

// One line for each thing in `text` that only makes sense on one machine.
std::vector<std::string> MachineNames(const std::string& text) {
  // Written in pieces, so that this file does not find itself.
  static const std::regex pattern("(?:^|[^A-Za-z0-9_.$}])/(?:wo" "rk|ro" "ot|ho" "me|tmp/w" "t)/|"
                                  "(?:pypi\\.o" "rg|pythonh" "osted|conda\\.a" "naconda|deb\\.de" "bian\\.org|"
                                  "developer\\.download\\.n" "vidia|docker\\.i" "o|ghcr\\.i" "o)",
                                  std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (std::regex_search(line, pattern)) found.push_back(std::to_string(number) + ": " + line);
  }
  return found;
}

// The environment variables that `text` names in quotes (C and C++) or expands (shell).
std::set<std::string> EnvironmentVariables(const std::string& text) {
  static const std::regex pattern(R"re((?:"|\$\{?)((?:HOTPACK|SIMGPU)_[A-Z0-9_]*[A-Z0-9])(?:[":=}]|\b))re");
  std::set<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) names.insert((*i)[1]);
  return names;
}

// What the page's links of the form [text](path) name, those to other sites and within the page left out.
std::vector<std::string> RelativeLinks(const std::string& text) {
  static const std::regex pattern(R"re(\]\(([^)#\s]+)(?:#[^)]*)?\))re");
  std::vector<std::string> links;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    if ((*i)[1].str().find("://") == std::string::npos) links.push_back((*i)[1]);
  }
  return links;
}

bool IsSource(const fs::path& path) {
  static const std::set<std::string> suffixes = {".cc", ".h", ".c", ".cu", ".cpp"};
  return suffixes.count(path.extension().string()) != 0;
}

bool IsText(const fs::path& path) {
  static const std::set<std::string> suffixes = {".md", ".txt", ".cmake", ".in", ".json", ".py", ".sh", ".map", ".svg"};
  return IsSource(path) || suffixes.count(path.extension().string()) != 0 || path.extension().empty();
}

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

// Every file of the project, relative to its root: builds, version control and hidden caches left out.
std::vector<fs::path> ProjectFiles() {
  const fs::path root = HOTPACK_SOURCE_DIR;
  std::vector<fs::path> files;
  for (auto i = fs::recursive_directory_iterator(root); i != fs::recursive_directory_iterator(); ++i) {
    const std::string name = i->path().filename().string();
    const bool skipped = name == ".git" || name == ".cache" || name == "__pycache__" ||
                         (i.depth() == 0 && (name == "build" || name.rfind("build-", 0) == 0));
    if (i->is_directory() && skipped) {
      i.disable_recursion_pending();
    } else if (i->is_regular_file() && !skipped) {
      files.push_back(i->path().lexically_relative(root));
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Room(const fs::path& path) { return path.begin()->string(); }

TEST(RoomsTest, EachRoomIncludesOnlyRoomsBelowIt) {
  size_t checked = 0;
  for (const fs::path& path : ProjectFiles()) {
    if (!IsSource(path) || AllowedRooms().count(Room(path)) == 0) continue;
    ++checked;
    for (const std::string& line : WrongIncludes(Room(path), Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
      ADD_FAILURE() << path.string() << ": " << line;
    }
  }
  EXPECT_GE(checked, 8u) << "the walk found too few files to mean anything";
}

TEST(RoomsTest, NoFileNamesAMachineOrARegistry) {
  for (const fs::path& path : ProjectFiles()) {
    if (!IsText(path)) continue;
    for (const std::string& line : MachineNames(Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
      ADD_FAILURE() << path.string() << ":" << line;
    }
  }
}

TEST(RoomsTest, EveryEnvironmentVariableIsDocumented) {
  std::map<std::string, std::string> used;  // name -> a file that uses it
  std::string documents;
  for (const fs::path& path : ProjectFiles()) {
    const std::string room = Room(path);
    const std::string name = path.filename().string();
    const bool script = path.extension().empty() && (room == "tools" || room == ".ci");
    if (path.extension() == ".md" && (room == "docs" || name == "README.md")) {
      documents += Read(fs::path(HOTPACK_SOURCE_DIR) / path);
    } else if ((IsSource(path) || script) && name != "rooms_test.cc") {
      for (const std::string& variable : EnvironmentVariables(Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
        used.emplace(variable, path.string());
      }
    }
  }
  for (const auto& [variable, path] : used) {
    const std::regex whole_word("\\b" + variable + "\\b");
    EXPECT_TRUE(std::regex_search(documents, whole_word)) << variable << " is used in " << path << " and documented nowhere";
  }
}

TEST(RoomsTest, PagesLinkToFilesThatExist) {
  const fs::path root = HOTPACK_SOURCE_DIR;
  for (const fs::path& path : ProjectFiles()) {
    if (path.extension() != ".md") continue;
    for (const std::string& link : RelativeLinks(Read(root / path))) {
      EXPECT_TRUE(fs::exists(root / path.parent_path() / link)) << path.string() << " links to " << link;
    }
  }
}

// The checks themselves find what they are for.
TEST(RoomsTest, ChecksFindPlantedFaults) {
  EXPECT_EQ(WrongIncludes("packer", "#include \"packer/types.h\"\n#include <vector>\n#include \"absl/a/b.h\"\n").size(), 0u);
  EXPECT_EQ(WrongIncludes("packer", "// x\n  # include \"profiler/event.h\"\n").size(), 1u);
  EXPECT_EQ(WrongIncludes("simgpu", "#include <runtime/include/hotpack.h>\n").size(), 1u);
  EXPECT_EQ(WrongIncludes("runtime", "#include \"../preload/hooks.h\"\n").size(), 1u);
  EXPECT_EQ(WrongIncludes("preload", "#include \"runtime/engine.h\"\n").size(), 0u);
  EXPECT_EQ(WrongIncludes("tools", "#include \"packer/pack.h\"\n").size(), 0u);

  const std::string home = std::string("/ro") + "ot/x";
  EXPECT_EQ(MachineNames("a\nin " + home + "\n").size(), 1u);
  EXPECT_EQ(MachineNames(std::string("see py") + "pi.org\n").size(), 1u);
  EXPECT_EQ(MachineNames("/usr/local/cuda and ../shared/traces and frame" + std::string("wo") + "rk/ are fine\n").size(), 0u);

  EXPECT_EQ(EnvironmentVariables("getenv(\"HOTPACK_TRACE\"); HOTPACK_API void f(); \"SIMGPU_MEMORY\""),
            (std::set<std::string>{"HOTPACK_TRACE", "SIMGPU_MEMORY"}));
  EXPECT_EQ(EnvironmentVariables("echo ${HOTPACK_SHARED:-x} $HOTPACK_OTHER"),
            (std::set<std::string>{"HOTPACK_OTHER", "HOTPACK_SHARED"}));
  EXPECT_EQ(RelativeLinks("see [a](docs/a.md#part), [b](https://b.example/c) and f(x)(y)"),
            (std::vector<std::string>{"docs/a.md"}));
}

}  // namespace
}  // namespace hotpack
