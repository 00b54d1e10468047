#include "tools/commands/completion.h"

#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/cli/choices.h"
#include "tools/cli/command_line.h"

namespace hotpack {
namespace {

std::vector<const CLI::Option*> NamedOptions(const CLI::App& command) {
  return command.get_options(
      [](const CLI::Option* option) { return !option->get_group().empty() && !option->get_positional(); });
}

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// Returns every spelling: "-o", "--out".
std::vector<std::string> Spellings(const CLI::Option& option) {
  std::vector<std::string> spellings;
  for (const std::string& name : option.get_snames()) spellings.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) spellings.push_back("--" + name);
  return spellings;
}

// Returns the first sentence, for a list of candidates.
std::string Short(const std::string& description) {
  std::string text = description.substr(0, description.find_first_of(".;\n"));
  return text.substr(0, text.find(": "));
}

// In single quotes of a POSIX shell.
std::string ShellQuoted(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

}  // namespace

std::string BashCompletion(const CLI::App& app) {
  std::string names, cases, values;
  for (const CLI::App* command : ListedCommands(app)) {
    std::vector<std::string> words;
    for (const CLI::Option* option : NamedOptions(*command)) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
      const Choices& choices = ChoicesOf(option);
      for (const std::string& spelling : choices.names.empty() ? std::vector<std::string>() : Spellings(*option)) {
        absl::StrAppend(&values, "    ", command->get_name(), ":", spelling, ") values=\"",
                        absl::StrJoin(choices.names, " "), "\" list=", choices.list ? 1 : 0, " ;;\n");
      }
    }
    absl::StrAppend(&names, names.empty() ? "" : " ", command->get_name());
    absl::StrAppend(&cases, "    ", command->get_name(), ") words=\"", absl::StrJoin(words, " "), "\" ;;\n");
  }
  return absl::StrCat(
      "# bash completion for hotpack, made by hotpack help --bash-completion\n"
      "_hotpack() {\n"
      "  local word=${COMP_WORDS[COMP_CWORD]} before= words= values= list=0 given=\n"
      "  COMPREPLY=()\n"
      "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
      "    COMPREPLY=($(compgen -W \"",
      names,
      " --help --version\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  before=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  # bash cuts words at \"=\"\n"
      "  if [ \"$word\" = \"=\" ]; then word=\n"
      "  elif [ \"$before\" = \"=\" ]; then before=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  elif [[ $word == --*=* ]]; then before=${word%%=*} given=${word%%=*}= word=${word#*=}\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]}:$before in\n",
      values,
      "  esac\n"
      "  if [ -n \"$values\" ]; then\n"
      "    if [ $list = 1 ] && [[ $word == *,* ]]; then given=$given${word%,*}, word=${word##*,}; fi\n"
      "    COMPREPLY=($(compgen -P \"$given\" -W \"$values\" -- \"$word\"))\n"
      "    return\n"
      "  fi\n"
      "  case ${COMP_WORDS[1]} in\n",
      cases,
      "  esac\n"
      "  if [ \"${word#-}\" != \"$word\" ]; then COMPREPLY=($(compgen -W \"$words\" -- \"$word\")); fi\n"
      "}\n"
      "complete -o default -F _hotpack hotpack\n");
}

std::string ZshCompletion(const CLI::App& app) {
  std::string names, cases;
  const auto plain = [](const std::string& text) {
    return absl::StrReplaceAll(text, {{"[", "("}, {"]", ")"}, {":", ","}, {"\\", ""}});
  };
  for (const CLI::App* command : ListedCommands(app)) {
    absl::StrAppend(&names, "    ", ShellQuoted(command->get_name() + ":" + plain(Short(command->get_description()))),
                    "\n");
    absl::StrAppend(&cases, "    ", command->get_name(), ")\n      _arguments");
    for (const CLI::Option* option : NamedOptions(*command)) {
      const Choices& choices = ChoicesOf(option);
      std::string value;
      if (TakesValue(*option)) {
        value = choices.names.empty() ? ":value:_files"
                : choices.list        ? absl::StrCat(":value:_sequence compadd - ", absl::StrJoin(choices.names, " "))
                                      : absl::StrCat(":value:(", absl::StrJoin(choices.names, " "), ")");
      }
      const std::string about = absl::StrCat("[", plain(Short(option->get_description())), "]");
      for (const std::string& spelling : Spellings(*option)) {
        const bool joined = TakesValue(*option) && spelling.substr(0, 2) == "--";
        absl::StrAppend(&cases, " \\\n        ", ShellQuoted(absl::StrCat(spelling, joined ? "=" : "", about, value)));
      }
    }
    absl::StrAppend(&cases, " \\\n        '*:file:_files' ;;\n");
  }
  return absl::StrCat(
      "#compdef hotpack\n# zsh completion for hotpack, made by hotpack help --zsh-completion\n"
      "_hotpack() {\n"
      "  local -a commands=(\n",
      names,
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=$words[2]\n"
      "  shift words\n"
      "  (( CURRENT -= 1 ))\n"
      "  case $command in\n",
      cases,
      "  esac\n"
      "}\n"
      "if [[ ${funcstack[1]} == _hotpack ]]; then _hotpack \"$@\"; else compdef _hotpack hotpack; fi\n");
}

std::string FishCompletion(const CLI::App& app) {
  const auto quoted = [](const std::string& text) {  // fish knows \\ and \' between single quotes
    return absl::StrCat("'", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}}), "'");
  };
  std::string script = "# fish completion for hotpack, made by hotpack help --fish-completion\n";
  for (const CLI::App* command : ListedCommands(app)) {
    absl::StrAppend(&script, "complete -c hotpack -f -n __fish_use_subcommand -a ", command->get_name(), " -d ",
                    quoted(Short(command->get_description())), "\n");
  }
  for (const CLI::App* command : ListedCommands(app)) {
    for (const CLI::Option* option : NamedOptions(*command)) {
      absl::StrAppend(&script, "complete -c hotpack -n '__fish_seen_subcommand_from ", command->get_name(), "'");
      for (const std::string& name : option->get_snames()) absl::StrAppend(&script, " -s ", name);
      for (const std::string& name : option->get_lnames()) absl::StrAppend(&script, " -l ", name);
      const Choices& choices = ChoicesOf(option);
      if (TakesValue(*option) && choices.names.empty()) absl::StrAppend(&script, " -r");
      const std::string names = absl::StrJoin(choices.names, " ");
      if (!choices.names.empty()) {
        const std::string words = choices.list ? absl::StrCat("(__fish_append , ", names, ")") : names;
        absl::StrAppend(&script, " -x -a ", quoted(words));
      }
      absl::StrAppend(&script, " -d ", quoted(Short(option->get_description())), "\n");
    }
  }
  return script;
}

}  // namespace hotpack
