// The order of the layers, and the forbidden contents of the project's files.
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

std::string Read(const fs::path& path);

// The permitted includes of a folder: folders (ending in a slash) and single files; "everything".
using Layers = std::map<std::string, std::set<std::string>>;

// The rows of the table between <!-- layers --> and <!-- end -->: `folder/` | may include | ...
Layers ParseLayers(const std::string& page) {
  const size_t begin = page.find("<!-- layers -->"), end = page.find("<!-- end -->", begin);
  Layers layers;
  if (begin == std::string::npos || end == std::string::npos) return layers;
  static const std::regex row(R"re(^\| `([a-z_/]+/)` \| ([^|]*) \|)re", std::regex::ECMAScript | std::regex::multiline);
  static const std::regex name(R"re(`([a-z_/.]+)`)re");
  const std::string table = page.substr(begin, end - begin);
  for (std::sregex_iterator i(table.begin(), table.end(), row), last; i != last; ++i) {
    std::set<std::string>& allowed = layers[(*i)[1]];
    const std::string cell = (*i)[2];
    if (cell == "everything") allowed.insert(cell);
    for (std::sregex_iterator k(cell.begin(), cell.end(), name); k != last; ++k) allowed.insert((*k)[1]);
  }
  return layers;
}

const Layers& ProjectLayers() {
  static const auto* layers = new Layers(ParseLayers(Read(fs::path(HOTPACK_SOURCE_DIR) / "docs/architecture.md")));
  return *layers;
}

// The row with the longest folder that `path` lies in; "": none.
std::string LayerOf(const Layers& layers, const std::string& path) {
  std::string layer;
  for (const auto& [folder, allowed] : layers) {
    if (path.rfind(folder, 0) == 0 && folder.size() > layer.size()) layer = folder;
  }
  return layer;
}

// One line for each include of the file `path` that reaches into a layer it may not use.
std::vector<std::string> WrongIncludes(const Layers& layers, const std::string& path, const std::string& text) {
  static const std::regex include_line(R"re(^[ \t]*#[ \t]*include[ \t]*["<](?:\.\./)*([a-z][a-z_/.0-9]*)[">])re",
                                       std::regex::ECMAScript | std::regex::multiline);
  std::vector<std::string> wrong;
  const std::string layer = LayerOf(layers, path);
  if (layer.empty()) return wrong;
  const std::set<std::string>& allowed = layers.at(layer);
  if (allowed.count("everything") != 0) return wrong;
  for (std::sregex_iterator i(text.begin(), text.end(), include_line), end; i != end; ++i) {
    const std::string target = (*i)[1], other = LayerOf(layers, target);
    if (other.empty() || other == layer) continue;  // not ours
    const bool is_allowed = std::any_of(allowed.begin(), allowed.end(), [&target](const std::string& name) {
      return name == target || (name.back() == '/' && target.rfind(name, 0) == 0);
    });
    if (!is_allowed) wrong.push_back(layer + " includes " + other + ": " + i->str());
  }
  return wrong;
}

// The lines of `text` in which `pattern` occurs, with their numbers.
std::vector<std::string> LinesWith(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (std::regex_search(line, pattern)) found.push_back(std::to_string(number) + ": " + line);
  }
  return found;
}

// One line for each thing in `text` that only makes sense on one machine.
std::vector<std::string> MachineNames(const std::string& text) {
  // Written in pieces, so that this file does not find itself.
  static const std::regex pattern(
      "(?:^|[^A-Za-z0-9_.$}])/(?:wo"
      "rk|ro"
      "ot|ho"
      "me|tmp/w"
      "t)/|"
      "(?:pypi\\.o"
      "rg|pythonh"
      "osted|conda\\.a"
      "naconda|deb\\.de"
      "bian\\.org|"
      "developer\\.download\\.n"
      "vidia|docker\\.i"
      "o|ghcr\\.i"
      "o)",
      std::regex::ECMAScript | std::regex::multiline);
  return LinesWith(text, pattern);
}

// One line for each thing in `text` that only programs with several threads need.
std::vector<std::string> ThreadNames(const std::string& text) {
  static const std::regex pattern(
      R"re(#[ \t]*include[ \t]*<(?:thread|mutex|shared_mutex|atomic|future|condition_variable|pthread\.h)>|)re"
      R"re(std::(?:jthread|thread|async|atomic|mutex)\b)re");
  return LinesWith(text, pattern);
}

// The environment variables that `text` names in quotes (C and C++) or expands (shell).
std::set<std::string> EnvironmentVariables(const std::string& text) {
  static const std::regex pattern(R"re((?:"|\$\{?)((?:HOTPACK|SIMGPU)_[A-Z0-9_]*[A-Z0-9])(?:[":=}]|\b))re");
  std::set<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) names.insert((*i)[1]);
  return names;
}

// Returns the targets of the page's links of the form [text](path), without those to other sites and within the page.
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
    const bool skipped = name == ".git" || name == ".cache" || name == "__pycache__" || name.ends_with("_cache") ||
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

TEST(LayeringTest, EachFileIncludesOnlyLayersBelowIt) {
  const Layers& layers = ProjectLayers();
  ASSERT_GE(layers.size(), 40u) << "docs/architecture.md has no table of layers";
  std::map<std::string, size_t> checked, checked_of;  // files by row, and by the folder at the top
  for (const fs::path& path : ProjectFiles()) {
    if (!IsSource(path)) continue;
    ++checked[LayerOf(layers, path.string())];
    ++checked_of[path.begin()->string() + "/"];
    for (const std::string& line : WrongIncludes(layers, path.string(), Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
      ADD_FAILURE() << path.string() << ": " << line;
    }
  }
  for (const auto& [folder, allowed] : layers) {
    EXPECT_GE(checked[folder], 1u) << "no files in " << folder;
    const std::string top = folder.substr(0, folder.find('/') + 1);
    EXPECT_GE(checked_of[top], top == "python/" ? 3u : 8u) << "few files in " << folder;
  }
  EXPECT_LE(checked[""], 4u) << "files that no row of docs/architecture.md has";
}

// The tests of these layers do not run under ThreadSanitizer (cmake/HotpackBuild.cmake).
TEST(LayeringTest, SingleThreadedLayersStartNoThread) {
  const char* const folders[] = {"remat/", "bench/train/", "tests/remat/", "tests/bench/", "tests/fuzz/"};
  size_t checked = 0;
  for (const fs::path& path : ProjectFiles()) {
    const std::string name = path.string();
    const bool listed = std::any_of(std::begin(folders), std::end(folders),
                                    [&name](const char* folder) { return name.starts_with(folder); });
    if (!IsSource(path) || !listed) continue;
    ++checked;
    for (const std::string& line : ThreadNames(Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
      ADD_FAILURE() << name << ": " << line;
    }
  }
  EXPECT_GE(checked, 200u);
}

TEST(LayeringTest, NoFileNamesAMachineOrARegistry) {
  for (const fs::path& path : ProjectFiles()) {
    if (!IsText(path)) continue;
    for (const std::string& line : MachineNames(Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
      ADD_FAILURE() << path.string() << ":" << line;
    }
  }
}

TEST(LayeringTest, EveryEnvironmentVariableIsDocumented) {
  std::map<std::string, std::string> used;  // name -> a file that uses it
  std::string documents;
  for (const fs::path& path : ProjectFiles()) {
    const std::string folder = path.begin()->string();
    const std::string name = path.filename().string();
    const bool script = path.extension().empty() && (folder == "tools" || folder == ".ci");
    if (path.extension() == ".md" && (folder == "docs" || name == "README.md")) {
      documents += Read(fs::path(HOTPACK_SOURCE_DIR) / path);
    } else if ((IsSource(path) || script) && name != "layering_test.cc") {
      for (const std::string& variable : EnvironmentVariables(Read(fs::path(HOTPACK_SOURCE_DIR) / path))) {
        used.emplace(variable, path.string());
      }
    }
  }
  for (const auto& [variable, path] : used) {
    const std::regex whole_word("\\b" + variable + "\\b");
    EXPECT_TRUE(std::regex_search(documents, whole_word))
        << variable << " is used in " << path << " and documented nowhere";
  }
}

TEST(LayeringTest, PagesLinkToFilesThatExist) {
  const fs::path root = HOTPACK_SOURCE_DIR;
  for (const fs::path& path : ProjectFiles()) {
    if (path.extension() != ".md") continue;
    for (const std::string& link : RelativeLinks(Read(root / path))) {
      EXPECT_TRUE(fs::exists(root / path.parent_path() / link)) << path.string() << " links to " << link;
    }
  }
}

// The checks themselves detect violations.
TEST(LayeringTest, ChecksFindPlantedFaults) {
  const Layers layers = ParseLayers(
      "text\n<!-- layers -->\n| folder | may include | for |\n|---|---|---|\n| `packer/` | nothing of ours | a |\n"
      "| `runtime/` | `packer/` | b |\n| `runtime/engine/` | `packer/` `runtime/` | c |\n| `preload/` | `runtime/` | d "
      "|\n"
      "| `tools/` | `packer/` `preload/process/option_table.h` | e |\n| `tests/` | everything | f |\n<!-- end -->\n| "
      "`x/` | y | z |\n");
  ASSERT_EQ(layers.size(), 6u);
  const auto wrong = [&layers](const std::string& path, const std::string& include) {
    return WrongIncludes(layers, path, "#include <vector>\n#include \"absl/a/b.h\"\n" + include + "\n").size();
  };
  EXPECT_EQ(ThreadNames("#include <thread>\nstd::jthread t;\nstd::this_thread::yield();\n").size(), 2u);
  EXPECT_EQ(wrong("packer/a.cc", "#include \"packer/types.h\""), 0u);
  EXPECT_EQ(wrong("packer/a.cc", "  # include \"runtime/event.h\""), 1u);
  EXPECT_EQ(wrong("runtime/a.cc", "#include <runtime/engine/engine.h>"), 1u) << "a folder above in the same one";
  EXPECT_EQ(wrong("runtime/engine/a.cc", "#include \"runtime/memory/arena.h\""), 0u);
  EXPECT_EQ(wrong("runtime/a.cc", "#include \"../preload/hooks.h\""), 1u);
  EXPECT_EQ(wrong("tools/a.cc", "#include \"preload/process/option_table.h\""), 0u);
  EXPECT_EQ(wrong("tools/a.cc", "#include \"preload/process/options.h\""), 1u);
  EXPECT_EQ(wrong("tests/a.cc", "#include \"preload/process/options.h\""), 0u);
  EXPECT_EQ(wrong("elsewhere/a.cc", "#include \"preload/process/options.h\""), 0u);

  const std::string home = std::string("/ro") + "ot/x";
  EXPECT_EQ(MachineNames("a\nin " + home + "\n").size(), 1u);
  EXPECT_EQ(MachineNames(std::string("see py") + "pi.org\n").size(), 1u);
  EXPECT_EQ(
      MachineNames("/usr/local/cuda and ../shared/traces and frame" + std::string("wo") + "rk/ are fine\n").size(), 0u);

  EXPECT_EQ(EnvironmentVariables("getenv(\"HOTPACK_TRACE\"); HOTPACK_API void f(); \"SIMGPU_MEMORY\""),
            (std::set<std::string>{"HOTPACK_TRACE", "SIMGPU_MEMORY"}));
  EXPECT_EQ(EnvironmentVariables("echo ${HOTPACK_SHARED:-x} $HOTPACK_OTHER"),
            (std::set<std::string>{"HOTPACK_OTHER", "HOTPACK_SHARED"}));
  EXPECT_EQ(RelativeLinks("see [a](docs/a.md#part), [b](https://b.example/c) and f(x)(y)"),
            (std::vector<std::string>{"docs/a.md"}));
}

}  // namespace
}  // namespace hotpack
