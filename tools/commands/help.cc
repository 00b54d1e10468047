#include "tools/commands/help.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "tools/cli/command_line.h"
#include "tools/cli/exit_codes.h"
#include "tools/commands/completion.h"
#include "tools/commands/man_page.h"

namespace hotpack {
namespace {

struct HelpArguments {
  std::string command;
  bool man = false;
  bool bash_completion = false, zsh_completion = false, fish_completion = false;
};

int RunHelp(const CLI::App& app, const std::string& version, const HelpArguments& options) {
  std::string text;
  if (options.man) {
    text = ManPage(app, version);
  } else if (options.bash_completion) {
    text = BashCompletion(app);
  } else if (options.zsh_completion) {
    text = ZshCompletion(app);
  } else if (options.fish_completion) {
    text = FishCompletion(app);
  } else if (options.command.empty()) {
    text = app.get_formatter()->make_help(&app, "hotpack", CLI::AppFormatMode::Normal);
  } else {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(command->get_name());
      if (command->get_name() == options.command) text = command->help("hotpack");
    }
    if (text.empty()) {
      fprintf(stderr, "hotpack help: %s\n", NoSuchCommand(options.command, names).c_str());
      return kExitBadUse;
    }
  }
  fwrite(text.data(), 1, text.size(), stdout);
  return kExitDone;
}

}  // namespace

void AddHelpCommand(CLI::App& app, const std::string& version, int* exit_code) {
  auto options = std::make_shared<HelpArguments>();
  CLI::App* command = app.add_subcommand("help", "Explains a command, as its --help does");
  CLI::Option* name = command->add_option("COMMAND", options->command, "Such as run");
  CLI::Option* man = command->add_flag("--man", options->man, "Print the man page, hotpack(1)")->excludes(name);
  CLI::Option* shells[] = {command->add_flag("--bash-completion", options->bash_completion,
                                             "Print a script that completes commands, options and values in bash"),
                           command->add_flag("--zsh-completion", options->zsh_completion, "The same for zsh"),
                           command->add_flag("--fish-completion", options->fish_completion, "The same for fish")};
  for (CLI::Option* shell : shells) {
    shell->excludes(name)->excludes(man);
    for (CLI::Option* other : shells) {
      if (other != shell) shell->excludes(other);
    }
  }
  command->footer("Example:\n  hotpack help pack\n  hotpack help --man | man -l -");
  const CLI::App* whole = &app;
  command->callback([options, whole, version, exit_code] { *exit_code = RunHelp(*whole, version, *options); });
}

}  // namespace hotpack
