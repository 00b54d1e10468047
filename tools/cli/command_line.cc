#include "tools/cli/command_line.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>
#include <string>

#include "CLI/CLI.hpp"
#include "tools/cli/choices.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/nearest_name.h"

namespace hotpack {
namespace {

// Returns "hotpack", or with the chosen subcommand.
std::string NameOf(const CLI::App& app) {
  auto chosen = app.get_subcommands();
  return chosen.empty() ? "hotpack" : "hotpack " + chosen[0]->get_name();
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// Null: there is none.
const CLI::App* Subcommand(const CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

// Returns the words up to a "=" and without the value: "--trace", or "-o" of "-ofile".
std::string OptionName(const std::string& word) {
  const bool is_long = word.compare(0, 2, "--") == 0;
  return is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
}

std::vector<std::string> OptionNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// CLI11 drops empty items of a list.
bool HasEmptyItem(const std::string& list) {
  return list.empty() || list.front() == ',' || list.back() == ',' || list.find(",,") != std::string::npos;
}

// Returns the first word that looks like an option and is none of the chosen subcommand's, and its meaning; empty:
// there is none. CLI11 would name the words behind it, in the reverse order, because it takes the value for an operand.
std::string UnknownOption(const CLI::App& app, int argc, char** argv) {
  const CLI::App* command = argc > 1 ? Subcommand(app, argv[1]) : nullptr;
  if (command == nullptr) return "";
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return "";
    const bool is_number = word.size() > 1 && (isdigit(static_cast<unsigned char>(word[1])) != 0 || word[1] == '.');
    if (word.size() < 2 || word[0] != '-' || is_number) {
      if (command->get_prefix_command()) return "";  // the program: what follows is its own
      if (const CLI::App* inner = Subcommand(*command, word)) command = inner;
      continue;
    }
    const std::string name = OptionName(word);
    const CLI::Option* option = command->get_option_no_throw(name);
    if (option != nullptr) {
      const bool has_value = name.size() < word.size();
      if (option->get_items_expected_max() > 0 && !has_value) ++i;
      const std::string value = has_value ? word.substr(name.size() + 1) : i < argc ? argv[i] : "";
      if (ChoicesOf(option).list && HasEmptyItem(value)) return name + ": '" + value + "' has an empty name";
      continue;
    }
    const std::string meant = NearestName(name, OptionNames(*command));
    if (!meant.empty()) return "unknown option " + name + ": did you mean " + meant + "?";
    return "unknown option " + name +
           (command->get_prefix_command() ? " (the program's own options go behind --)" : "");
  }
  return "";
}

// Prints one line for any error. Options of a subcommand are reported under its name.
int UsageError(const CLI::App& app, const char* first_argument, std::string reason) {
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  const std::string name = NameOf(app);
  if (name == "hotpack" && first_argument != nullptr && first_argument[0] != '-') {
    reason = NoSuchCommand(first_argument, CommandNames(app));
  }
  fprintf(stderr, "%s: %s\n", name.c_str(), reason.c_str());
  return kExitBadUse;
}

// `hotpack` alone: the commands by task.
int ShortHelp(const CLI::App& app) {
  std::string text = "hotpack: no command was given. The commands:", group;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_group() == group) {
      text += ", " + command->get_name();
      continue;
    }
    group = command->get_group();
    constexpr size_t kColumn = 22;
    text +=
        "\n  " + group + std::string(group.size() < kColumn ? kColumn - group.size() : 1, ' ') + command->get_name();
  }
  fprintf(stderr, "%s\nhotpack --help says what each does, hotpack COMMAND --help its options.\n", text.c_str());
  return kExitBadUse;
}

// Fails the command if its output did not arrive. (A closed reader ends it by SIGPIPE.)
int Finish(const std::string& name, int code) {
  errno = 0;
  std::cout.flush();
  const bool whole = fflush(stdout) == 0 && ferror(stdout) == 0 && std::cout.good();
  if (whole) return code;
  fprintf(stderr, "%s: standard output: cannot be written%s%s\n", name.c_str(), errno != 0 ? ": " : "",
          errno != 0 ? strerror(errno) : "");
  return code == kExitDone ? kExitBadUse : code;
}

int Parse(CLI::App& app, int argc, char** argv, const int& exit_code) {
  if (argc == 1) return ShortHelp(app);
  if (const std::string reason = UnknownOption(app, argc, argv); !reason.empty()) {
    fprintf(stderr, "hotpack %s: %s\n", argv[1], reason.c_str());
    return kExitBadUse;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return UsageError(app, argc > 1 ? argv[1] : nullptr, error.what());
  } catch (const std::bad_alloc&) {
    return UsageError(app, nullptr, "there is not enough memory for it");
  } catch (const std::exception& error) {
    return UsageError(app, nullptr, error.what());
  }
  return exit_code;
}

}  // namespace

std::string NoSuchCommand(const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(name, names);
  return "there is no command '" + name + "'" +
         (nearest.empty() ? ", see hotpack --help" : ": did you mean " + nearest + "?");
}

std::vector<const CLI::App*> ListedCommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::string CommandFooter() {
  return "Examples:\n"
         "  hotpack run -- python train.py                    # under hotpack; its last line has the figures\n"
         "  hotpack run --simulate --report out.html -- python train.py   # without a GPU, with a page\n"
         "  hotpack compare snapshot.pickle                   # what other allocators would hold\n"
         "hotpack COMMAND --help explains a command. Exit codes: 0 done, 1 failed, 2 bad use or input; run: the\n"
         "program's. man hotpack has all of them.";
}

int RunCommandLine(CLI::App& app, int argc, char** argv, const int& exit_code) {
  const int code = Parse(app, argc, argv, exit_code);
  return Finish(NameOf(app), code);
}

}  // namespace hotpack
