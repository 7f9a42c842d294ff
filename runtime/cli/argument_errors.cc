// SPDX-License-Identifier: BSD-3-Clause
// What is wrong with a command line, said so that a person can mend it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "runtime/cli/commands.h"
#include "runtime/config/document.h"

namespace rocebox::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options([](const CLI::Option*) { return true; }))
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// The option among the words that the command does not have; empty when there is none.
std::string unknown_option(const std::vector<std::string>& words, const std::vector<std::string>& known) {
  for (const std::string& word : words) {
    if (word == "--") break;
    const std::string name = word.substr(0, word.find('='));
    if (name.starts_with("--") && std::find(known.begin(), known.end(), name) == known.end()) return name;
  }
  return "";
}

}  // namespace

std::string argument_error(const CLI::App& app, const std::vector<std::string>& words, const std::string& why) {
  const CLI::App* at = &app;
  std::string path = app.get_name();
  std::size_t next = 0;
  std::vector<std::string> commands = command_names(*at);
  while (next < words.size() && std::find(commands.begin(), commands.end(), words[next]) != commands.end()) {
    at = at->get_subcommand(words[next]);
    path += " " + words[next++];
    commands = command_names(*at);
  }
  const std::string help = fmt::format("\n`{} --help` shows what there is.", path);
  const std::vector<std::string> rest(words.begin() + static_cast<std::ptrdiff_t>(next), words.end());
  const std::vector<std::string> options = option_names(*at);
  if (const std::string option = unknown_option(rest, options); !option.empty())
    return fmt::format("{}: there is no option `{}`{}{}", path, option,
                       config::nearest(option, options).empty() ? "" : config::suggestion(option, options), help);
  if (commands.empty()) return fmt::format("{}: {}{}", path, why, help);
  if (rest.empty()) return fmt::format("{}: give a command: {}{}", path, fmt::join(commands, ", "), help);
  return fmt::format("{}: there is no command `{}`{}{}", path, rest[0], config::suggestion(rest[0], commands), help);
}

}  // namespace rocebox::cli
