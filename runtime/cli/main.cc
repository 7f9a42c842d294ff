// SPDX-License-Identifier: BSD-3-Clause
// The `rocebox` command: arguments in, exit status out.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "runtime/cli/arguments.h"
#include "runtime/process/eal.h"
#include "runtime/process/no_memory.h"

namespace rocebox::cli {
namespace {

constexpr int kFailed = 1, kBadArguments = 2;

// A full disk shows when the last bytes are written.
void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(errno));
}

int dispatch(const CLI::App& app, const Arguments& a) {
  const int status = app.got_subcommand("replay")    ? replay(a.replay)
                     : app.got_subcommand("sim")     ? sim(a.sim)
                     : app.got_subcommand("run")     ? run(a.run)
                     : app.got_subcommand("check")   ? check(a.check)
                     : app.got_subcommand("top")     ? top(a.top)
                     : app.got_subcommand("reload")  ? reload(a.reload)
                     : app.got_subcommand("trace")   ? record(a.trace)
                     : app.got_subcommand("capture") ? record(a.capture)
                     : app.got_subcommand("lab")     ? lab(a.lab)
                     : app.got_subcommand("model")   ? model(a.model)
                                                     : kernels(a.kernels);
  flush_stdout();
  return status;
}

// What stands behind `--` where --between or --from stands before it: kernels with their options, and behind a second
// `--` arguments for EAL. Without these `--` means what it does everywhere: options end there.
struct Behind {
  int arguments;  // that are left for the parser, the command's name among them
  std::vector<std::string> words, eal;
};

Behind split_one_line(int argc, char** argv) {
  const auto is = [](const char* word, std::string_view option) {
    return word == option || std::string_view(word).starts_with(std::string(option) + "=");
  };
  const auto is_mark = [](const char* word) { return std::string_view(word) == "--"; };
  char** const mark = std::find_if(argv, argv + argc, is_mark);
  Behind behind{argc, {}, {}};
  if (std::none_of(argv, mark, [&](const char* word) { return is(word, "--between") || is(word, "--from"); }))
    return behind;
  behind.arguments = static_cast<int>(mark - argv);
  char** const words = std::min(mark + 1, argv + argc);
  char** const second = std::find_if(words, argv + argc, is_mark);
  behind.words.assign(words, second);
  behind.eal.assign(std::min(second + 1, argv + argc), argv + argc);
  return behind;
}

int command(int argc, char** argv) {
  CLI::App app("rocebox: an emulated SmartNIC and programmable-switch datapath for RoCEv2", "rocebox");
  app.require_subcommand(1);
  app.set_version_flag("--version", "rocebox " ROCEBOX_VERSION);
  app.footer(
      "`rocebox COMMAND --help` lists what a command takes; `man rocebox` explains it.\n"
      "Exit status: 0 done; 1 the run failed or an expectation did not hold; 2 bad arguments or configuration.");
  Arguments arguments;
  declare_commands(app, arguments);
  const Behind behind = split_one_line(argc, argv);
  try {
    app.parse(behind.arguments, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() != 0) {
      tell_placed(argument_error(app, {argv + 1, argv + argc}, error.what()));
      return kBadArguments;
    }
    app.exit(error);  // --help, --version
    if (std::cout.flush()) return 0;
    std::fprintf(stderr, "rocebox: standard output cannot be written: %s\n", std::strerror(errno));
    return kFailed;
  }
  arguments.replay.line.words = arguments.run.line.words = arguments.check.line.words = behind.words;
  arguments.run.eal.insert(arguments.run.eal.end(), behind.eal.begin(), behind.eal.end());
  try {
    if (!behind.eal.empty() && !app.got_subcommand("run"))
      throw ConfigError("a second `--` is for EAL's arguments, which only `run` takes");
    return dispatch(app, arguments);
  } catch (const ConfigError& error) {
    tell_placed(error.what());
    return kBadArguments;
  } catch (const std::exception& error) {
    if (is_no_memory(error)) throw;
    tell(error.what());
    return kFailed;
  }
}

// Where one of these was closed, the next file that is opened would take its place, and be what `-` means. What reads
// or writes it gets an error; messages to nobody are none.
void open_standard_descriptors() {
  for (const auto& [descriptor, mode] :
       {std::pair(STDIN_FILENO, O_WRONLY), {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_RDWR}})
    if (fcntl(descriptor, F_GETFD) < 0 && open("/dev/null", mode) != descriptor)
      std::abort();  // the least that is free
}

}  // namespace
}  // namespace rocebox::cli

int main(int argc, char** argv) {
  rocebox::cli::open_standard_descriptors();
  rocebox::expect_no_memory();
  try {
    rocebox::leave_process(rocebox::cli::command(argc, argv));
  } catch (const std::exception&) {
    rocebox::leave_process(rocebox::say_no_memory());  // nothing else comes here
  }
}
