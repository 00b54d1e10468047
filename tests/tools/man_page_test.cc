// Texts made from the definitions of the options: hotpack(1) and bash's completion.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/subprocess.h"
#include "tests/tools/help_text.h"
#include "tools/cli/exit_codes.h"

namespace {

using hotpack_test::Outcome;
using hotpack_test::ReadFile;
using testing::HasSubstr;

Outcome Hotpack(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), HOTPACK_COMMAND);
  return hotpack_test::RunProgram(arguments, {{"LD_PRELOAD", hotpack_test::SanitizerPreload()}});
}

Outcome Shell(const std::string& script, const std::vector<std::string>& arguments = {}) {
  std::vector<std::string> command = {"/bin/bash", "-c", script, "bash"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return hotpack_test::RunProgram(command, {{"LD_PRELOAD", ""}});
}

std::vector<std::string> Subcommands() { return hotpack_test::SubcommandsIn(Hotpack({"--help"}).out); }

// The options that a subcommand's help lists.
std::set<std::string> OptionsOf(const std::string& subcommand) {
  const std::string help = Hotpack({subcommand, "--help"}).out;
  std::set<std::string> options;
  const std::regex name("\n  (-[a-z],)?(--[a-z-]+)");
  for (std::sregex_iterator i(help.begin(), help.end(), name), end; i != end; ++i) {
    options.insert((*i)[2]);
    if (const std::string one = (*i)[1]; !one.empty()) options.insert(one.substr(0, 2));
  }
  return options;
}

// The part of the man page that is about a subcommand, without roff's escapes.
std::string Section(const std::string& page, const std::string& subcommand) {
  const size_t begin = page.find("\n.SS " + subcommand + "\n");
  if (begin == std::string::npos) return "";
  const size_t end = std::min(page.find("\n.SS ", begin + 1), page.find("\n.SH ", begin + 1));
  return std::regex_replace(page.substr(begin, end - begin), std::regex("\\\\(f[BIR]|(?=-))"), "");
}

TEST(ManPage, HasEveryOptionOfEverySubcommand) {
  const std::string page = Hotpack({"help", "--man"}).out;
  ASSERT_GE(Subcommands().size(), 10u);
  for (const std::string& subcommand : Subcommands()) {
    const std::string section = Section(page, subcommand);
    ASSERT_NE(section, "") << subcommand;
    ASSERT_TRUE(OptionsOf(subcommand).contains("--help"));
    for (const std::string& option : OptionsOf(subcommand)) {
      EXPECT_THAT(section, testing::ContainsRegex("(\n|, )" + option + "(,| |\n)")) << subcommand;
    }
    EXPECT_THAT(section, HasSubstr("Example:")) << subcommand;
  }
  for (const auto& row : hotpack::kExitCodes) EXPECT_THAT(page, HasSubstr(std::string("\n.B ") + row.code + "\n"));
  EXPECT_TRUE(std::all_of(page.begin(), page.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }))
      << "what is not ASCII needs an escape";
}

TEST(ManPage, RoffHasNothingToSay) {
  if (Shell("command -v groff").code != 0) GTEST_SKIP() << "groff is not installed (groff-base)";
  const Outcome outcome = Shell("\"$1\" help --man | groff -Tutf8 -ww -man", {HOTPACK_COMMAND});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  const std::string text = std::regex_replace(outcome.out, std::regex("\x1b\\[[0-9;]*m|.\b"), "");
  EXPECT_THAT(text, HasSubstr("hotpack run [options] -- CMD ..."));
  EXPECT_THAT(text, HasSubstr("\n           cbc model.lp sec 60 solve solution model.sol\n"))
      << "examples keep their lines";
}

TEST(ManPage, TheDocumentHasTheSameExitCodes) {
  std::string expected = "| code | meaning |\n|---|---|\n";
  for (const auto& row : hotpack::kExitCodes) expected += std::string("| ") + row.code + " | " + row.meaning + " |\n";
  EXPECT_THAT(ReadFile(HOTPACK_SOURCE_DIR "/docs/command.md"), HasSubstr(expected));
}

std::string Completed(const std::string& words) {
  return Shell(
             "source <(\"$1\" help --bash-completion); COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
             "_hotpack; echo ${COMPREPLY[@]}",
             {HOTPACK_COMMAND, words})
      .out;
}

TEST(Completion, Bash) {
  EXPECT_EQ(Completed("hotpack pa"), "pack\n");
  EXPECT_EQ(Completed("hotpack pack --al"), "--algorithm\n");
  EXPECT_EQ(Completed("hotpack export --f"), "--format --force\n");
  EXPECT_EQ(Completed("hotpack pack job"), "\n") << "files are bash's own affair";
  EXPECT_THAT(Completed("hotpack --"), HasSubstr("--version"));
}

TEST(Completion, BashCompletesValues) {
  EXPECT_EQ(Completed("hotpack export --format ch"), "chrome\n");
  EXPECT_EQ(Completed("hotpack export --format=ch"), "--format=chrome\n");
  EXPECT_EQ(Completed("hotpack export --format = ch"), "chrome\n") << "bash cuts words at =";
  EXPECT_EQ(Completed("hotpack compare --peers=pytorch,tfl"), "--peers=pytorch,tflite\n");
  EXPECT_THAT(Completed("hotpack compare --peers py"), HasSubstr("pytorch-expandable"));
  EXPECT_EQ(Completed("hotpack replay --api d"), "driver\n");
}

// Each option of each subcommand is in both, and the shells take them, where they are installed.
TEST(Completion, ZshAndFish) {
  for (const std::string shell : {"zsh", "fish"}) {
    const std::string script = Hotpack({"help", "--" + shell + "-completion"}).out;
    for (const std::string& subcommand : Subcommands()) {
      EXPECT_THAT(script, HasSubstr(subcommand)) << shell;
      for (const std::string& option : OptionsOf(subcommand)) {
        if (option.compare(0, 2, "--") != 0) continue;
        EXPECT_THAT(script, HasSubstr(shell == "fish" ? " -l " + option.substr(2) : option)) << shell;
      }
    }
    EXPECT_THAT(script, HasSubstr("pytorch-expandable")) << shell;
    if (Shell("command -v " + shell).code != 0) continue;
    const Outcome outcome =
        Shell("\"$1\" help --" + shell + "-completion > /dev/shm/hotpack-completion.$$; " + shell +
                  " -n /dev/shm/hotpack-completion.$$; code=$?; rm /dev/shm/hotpack-completion.$$; exit $code",
              {HOTPACK_COMMAND});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
  }
}

}  // namespace
