#include "tools/commands/man_page.h"

#include <sstream>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "preload/process/option_table.h"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_codes.h"

namespace hotpack {
namespace {

// Escapes text for roff. A backslash begins an escape. A line that begins with a dot or a quote would be a request. A
// plain "-" may become a hyphen that does not work in a shell.
std::string Escaped(const std::string& text) {
  std::string escaped;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) escaped += "\\&";
    line_begins = c == '\n';
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '`') {
      escaped += "\\(ga";
    } else if (c == '\'') {
      escaped += "\\(aq";
    } else if (c == '"') {
      escaped += "\\(dq";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::vector<const CLI::Option*> ListedOptions(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

bool IsFlag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

// Returns the placeholder of the value: "FILE", "N", ...
std::string ValueName(const CLI::Option& option) {
  if (IsFlag(option)) return "";
  const std::string type = option.get_type_name();
  return type.empty() || type == "TEXT" ? "VALUE" : type;
}

// Returns "-o, --out FILE"; for a positional "FILE".
std::string NamesOf(const CLI::Option& option) {
  if (option.get_positional()) return absl::StrCat("\\fI", Escaped(option.get_name(true)), "\\fR");
  std::string names;
  const auto add = [&](const std::string& name) {
    absl::StrAppend(&names, names.empty() ? "" : ", ", "\\fB", Escaped(name), "\\fR");
  };
  for (const std::string& name : option.get_snames()) add("-" + name);
  for (const std::string& name : option.get_lnames()) add("--" + name);
  if (const std::string value = ValueName(option); !value.empty())
    absl::StrAppend(&names, " \\fI", Escaped(value), "\\fR");
  return names;
}

void AppendOption(const CLI::Option& option, std::string* page) {
  std::string meaning = option.get_description();
  if (const std::string fallback = option.get_default_str(); !fallback.empty() && !IsFlag(option)) {
    absl::StrAppend(&meaning, meaning.empty() ? "" : ". ", "Default: ", fallback);
  }
  absl::StrAppend(page, ".TP\n", NamesOf(option), "\n", Escaped(meaning), "\n");
}

// Indented lines are examples, the others text.
void AppendFooter(const std::string& footer, std::string* page) {
  std::istringstream lines(footer);
  bool example = false;
  absl::StrAppend(page, ".PP\n");
  for (std::string line; std::getline(lines, line);) {
    const bool indented = absl::StartsWith(line, "  ");
    if (indented != example) absl::StrAppend(page, indented ? ".PP\n.RS 4\n.nf\n" : ".fi\n.RE\n.PP\n");
    example = indented;
    absl::StrAppend(page, Escaped(indented ? line.substr(2) : line), "\n");
  }
  if (example) absl::StrAppend(page, ".fi\n.RE\n");
}

void AppendCommand(const CLI::App& command, std::string* page) {
  std::string synopsis = absl::StrCat("\\fBhotpack ", command.get_name(), "\\fR [\\fIoptions\\fR]");
  if (command.get_prefix_command()) absl::StrAppend(&synopsis, " \\-\\- \\fICMD\\fR ...");
  for (const CLI::Option* option : ListedOptions(command)) {
    if (!option->get_positional() || command.get_prefix_command()) continue;
    const std::string name = absl::StrCat("\\fI", Escaped(option->get_name(true)), "\\fR");
    absl::StrAppend(&synopsis, " ", option->get_required() ? name : absl::StrCat("[", name, "]"));
  }
  absl::StrAppend(page, ".SS ", command.get_name(), "\n", synopsis, "\n.PP\n", Escaped(command.get_description()),
                  "\n");
  for (const CLI::Option* option : ListedOptions(command)) AppendOption(*option, page);
  if (const std::string footer = command.get_footer(); !footer.empty()) AppendFooter(footer, page);
}

}  // namespace

std::string ManPage(const CLI::App& app, const std::string& version) {
  std::string page =
      absl::StrCat(".\\\" Made by hotpack help --man.\n.TH HOTPACK 1 \"\" \"hotpack ", version,
                   "\" \"User Commands\"\n.SH NAME\nhotpack \\- plans a CUDA job\\(aqs device memory\n"
                   ".SH SYNOPSIS\n\\fBhotpack\\fR \\fICOMMAND\\fR [\\fIoptions\\fR] ...\n"
                   ".SH DESCRIPTION\nhotpack runs CUDA programs under an allocator that watches one iteration, packs "
                   "its allocations into one arena and serves them by fixed offsets, and it shows, packs, converts "
                   "and replays recordings of what programs asked for.\n.SH COMMANDS\n");
  for (const CLI::App* command : ListedCommands(app)) AppendCommand(*command, &page);
  absl::StrAppend(&page, ".SH EXIT STATUS\n");
  for (const ExitCode& row : kExitCodes) absl::StrAppend(&page, ".TP\n.B ", row.code, "\n", Escaped(row.meaning), "\n");
  absl::StrAppend(&page, ".SH ENVIRONMENT\n");
  for (const OptionRow& row : kOptionRows) {
    std::string meaning = row.meaning;
    std::erase(meaning, '`');
    absl::StrAppend(&page, ".TP\n.B ", Escaped(row.variable), "\n",
                    Escaped(absl::StrCat(meaning, " (", row.values, "). Default: ", row.fallback)), "\n");
  }
  return page;
}

}  // namespace hotpack
