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

#include "runtime/cli/commands.h"
#include "runtime/cli/no_memory.h"
#include "runtime/packet/eal.h"

namespace rocebox::cli {
namespace {

constexpr int kFailed = 1, kBadArguments = 2;

void add_plugins(CLI::App& command, std::vector<std::string>& plugins) {
  command.add_option("--plugin", plugins, "Load kernels from this .so as well (may be given again)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_trace(CLI::App& command, std::string& filter, std::vector<std::string>& files) {
  command.add_option("--trace", filter, "Follow packets: 'qpn=0x11 psn=100-120 opcode=17 src=IP dst=IP', or 'all'")
      ->type_name("FILTER");
  command
      .add_option("--trace-out", files,
                  "Where the trace goes: .pcapng gets packets with comments, other names text (may be given again)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_report(CLI::App& command, std::string& json, ReportOptions& report) {
  command.add_option("--json", json, "Write the report as JSON; `-`: to standard output, instead of the text")
      ->type_name("FILE");
  command.add_flag("--full", report.full, "Print every row of the report's tables; without it the first 20 of each");
  command.add_flag("-q,--quiet", report.quiet,
                   "Print no report and no progress; warnings and expectations that fail are told all the same");
}

constexpr const char* kConfig = "Configuration (YAML); `-` is standard input";

void add_between(CLI::App& command, config::OneLine& line) {
  command
      .add_option("--between", line.between,
                  "Instead of CONFIG: device `bump` between two interfaces (or bindings, as of --port), which are its "
                  "ports `a` and `b`, with the kernels behind --: KERNEL [OPTION=VALUE]...")
      ->type_name("A B")
      ->expected(2);
}

void add_from(CLI::App& command, config::OneLine& line) {
  command
      .add_option("--from", line.from,
                  "Instead of CONFIG: device `bump`, at whose port `a` the packets of FILE arrive, and which leave by "
                  "`b`, with the kernels behind --: KERNEL [OPTION=VALUE]... (may be given again)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_replay(CLI::App& app, ReplayArguments& a) {
  CLI::App* command =
      app.add_subcommand("replay", "Run captures through a configuration; time is the captures' timestamps");
  command->add_option("CONFIG", a.config, kConfig);
  add_from(*command, a.line);
  command
      ->add_option("--in", a.in,
                   "Packets of FILE arrive at PORT, instead of the configuration's files and filter for it; `-` is "
                   "standard input")
      ->type_name("PORT=FILE")
      ->allow_extra_args(false);
  command->add_option("--filter", a.filters, "Only packets that pass this libpcap filter arrive at PORT")
      ->type_name("PORT=FILTER")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--out", a.out,
          "What leaves by PORT goes to FILE (.pcap or .pcapng); `-` is standard output, `-.pcapng` too; with --from "
          "a FILE alone is for port `b`")
      ->type_name("PORT=FILE")
      ->allow_extra_args(false);
  command->add_option("--seed", a.seed, "Seed of all randomness, instead of the configuration's")->type_name("N");
  add_report(*command, a.json, a.report);
  add_trace(*command, a.trace, a.trace_outs);
  add_plugins(*command, a.plugins);
}

void add_run(CLI::App& app, RunArguments& a) {
  CLI::App* command = app.add_subcommand("run", "Run live traffic through a configuration, until Ctrl-C");
  command->add_option("CONFIG", a.config, kConfig);
  add_between(*command, a.line);
  command
      ->add_option("--port", a.ports, "What PORT is bound to, instead of what the configuration says: 'a={tap: tap0}'")
      ->type_name("PORT=BINDING")
      ->allow_extra_args(false);
  command->add_option("--cores", a.cores, "One shard on each of these CPUs, such as 1,3-5; instead of `live: shards:`")
      ->type_name("LIST");
  command->add_option("--duration", a.duration, "Stop after this time, such as 10s")->type_name("TIME");
  command->add_option("--seed", a.seed, "Seed of all randomness, instead of the configuration's")->type_name("N");
  add_report(*command, a.json, a.report);
  command
      ->add_option("--name", a.name,
                   "Name of this run for `rocebox top` and dpdk-telemetry.py; without it the configuration's file name")
      ->type_name("NAME");
  command
      ->add_option("--metrics", a.metrics,
                   "Serve /metrics (OpenMetrics) at this address, such as 127.0.0.1:9464; instead of `live: metrics:`")
      ->type_name("ADDRESS:PORT");
  add_trace(*command, a.trace, a.trace_outs);
  command->add_option("EAL", a.eal, "Behind --: arguments for DPDK's EAL; with --between behind a second --");
  add_plugins(*command, a.plugins);
}

void add_check(CLI::App& app, CheckArguments& a) {
  CLI::App* command =
      app.add_subcommand("check", "Check a configuration; print it with every option's value, and what would run");
  command->add_option("CONFIG", a.config, kConfig);
  add_between(*command, a.line);
  add_from(*command, a.line);
  command->add_flag("--strict", a.strict, "Send packets through each switch; tell what no hardware could do");
  command->add_flag("--resources", a.resources, "Print what the programs of each switch take of its chip");
  command->add_flag("--schema", a.schema, "Print the JSON Schema of configurations instead, for editors");
  add_plugins(*command, a.plugins);
}

void add_kernels(CLI::App& app, KernelsArguments& a) {
  CLI::App* command = app.add_subcommand("kernels", "List kernels and programs of switches, or every option of one");
  command->add_option("NAME", a.name, "Show the options, counters and examples of this kernel or program");
  command->add_flag("--json", a.json, "Print it as JSON");
  add_plugins(*command, a.plugins);
}

void add_reload(CLI::App& app, ReloadArguments& a) {
  CLI::App* command = app.add_subcommand("reload", "Have a live run read its configuration again");
  command->add_option("INSTANCE", a.instance, "Name of the run, or path of its socket; may be left out when one runs");
}

void add_top(CLI::App& app, TopArguments& a) {
  CLI::App* command =
      app.add_subcommand("top", "Show what a live run does now: rates, drops, latencies, what its kernels count");
  command->add_option("INSTANCE", a.instance, "Name of the run, or path of its socket; may be left out when one runs");
  command->add_flag("--once", a.once, "Print one interval and end");
  command->add_option("--interval", a.interval, "Time from one look to the next; 1s when left out")->type_name("TIME");
  command->add_flag("--json", a.json, "Print a line of JSON each time");
  command->add_flag("--list", a.list, "List the runs that are going on, with their sockets, and end");
}

void add_lab(CLI::App& app, LabArguments& a) {
  CLI::App* lab = app.add_subcommand("lab", "Testbeds on this machine: hosts, appliances and wires from one file");
  lab->require_subcommand(1);
  const auto add = [&](const char* name, const char* doc, LabArguments::What what) {
    CLI::App* command = lab->add_subcommand(name, doc);
    command->callback([&a, what] { a.what = what; });
    return command;
  };
  CLI::App* run =
      add("run", "Build a lab, run its traffic, check what it expects, take it down again", LabArguments::What::kRun);
  CLI::App* up = add("up", "Build a lab and let it stand", LabArguments::What::kUp);
  CLI::App* down = add("down", "Take a lab down, whatever is left of it", LabArguments::What::kDown);
  CLI::App* schema = add("schema", "Print the JSON Schema of labs, for editors", LabArguments::What::kSchema);
  for (CLI::App* command : {run, up}) command->add_option("CONFIG", a.config, kConfig)->required();
  down->add_option("CONFIG", a.config, "Configuration (YAML), or the name of the lab")->required();
  for (CLI::App* command : {run, up, down})
    command->add_option("--name", a.name, "Name of the lab, instead of the configuration's")->type_name("NAME");
  add_report(*run, a.json, a.report);
  down->add_option("--json", a.json, "Write the appliances' reports as JSON; `-`: to standard output")
      ->type_name("FILE");
  for (CLI::App* command : {run, up, schema}) add_plugins(*command, a.plugins);
}

void add_record(CLI::App& command, RecordArguments& a) {
  command.add_option("INSTANCE", a.instance, "Name of the run, or path of its socket; may be left out when one runs");
  command
      .add_option("--filter", a.filter, "Of these packets: 'qpn=0x11 psn=100-120 opcode=17 src=IP dst=IP', or 'all'")
      ->type_name("FILTER");
  command.add_option("--duration", a.duration, "Stop after this time, such as 10s")->type_name("TIME");
  command.add_flag("--list", a.list, "List the traces and captures of the run, and end");
  command.add_option("--stop", a.stop, "End the trace or capture of this number in --list, and end")->type_name("ID");
}

void add_trace_command(CLI::App& app, RecordArguments& a) {
  CLI::App* command = app.add_subcommand("trace", "Follow packets of a live run stage by stage, until Ctrl-C");
  add_record(*command, a);
  a.trace = true;
  command->add_option("--count", a.count, "Stop after N events")->type_name("N");
  command
      ->add_option(
          "-w,--write", a.files,
          "Where the trace goes: .pcapng gets packets with comments, other names text; without one for text it "
          "goes to standard output (may be given again)")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

void add_capture_command(CLI::App& app, RecordArguments& a) {
  CLI::App* command =
      app.add_subcommand("capture", "Capture packets of a live run at its ports or where it drops them");
  add_record(*command, a);
  command->add_option("--port", a.ports, "What passes this port; :rx or :tx for one direction (may be given again)")
      ->type_name("DEVICE.PORT[:rx|:tx]")
      ->allow_extra_args(false);
  command
      ->add_option("--drop", a.drops,
                   "What is dropped for this reason, such as bump.link.forward_drop_loss or '*drop_loss', or for 'all' "
                   "(may be given again)")
      ->type_name("REASON")
      ->allow_extra_args(false);
  command->add_option("--count", a.count, "Stop after N packets")->type_name("N");
  command->add_option("--snap", a.snap_bytes, "Keep at most so many bytes of each packet")->type_name("BYTES");
  command->add_option("-w,--write", a.files, "The file: pcapng, or pcap when its name ends so; `-` is standard output")
      ->type_name("FILE")
      ->expected(1);
}

// A full disk shows when the last bytes are written.
void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw std::runtime_error(std::string("standard output cannot be written: ") + std::strerror(errno));
}

// The arguments of every command.
struct Arguments {
  ReplayArguments replay;
  RunArguments run;
  CheckArguments check;
  LabArguments lab;
  KernelsArguments kernels;
  TopArguments top;
  ReloadArguments reload;
  RecordArguments trace, capture;
};

int dispatch(const CLI::App& app, const Arguments& a) {
  const int status = app.got_subcommand("replay")    ? replay(a.replay)
                     : app.got_subcommand("run")     ? run(a.run)
                     : app.got_subcommand("check")   ? check(a.check)
                     : app.got_subcommand("top")     ? top(a.top)
                     : app.got_subcommand("reload")  ? reload(a.reload)
                     : app.got_subcommand("trace")   ? record(a.trace)
                     : app.got_subcommand("capture") ? record(a.capture)
                     : app.got_subcommand("lab")     ? lab(a.lab)
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
  add_replay(app, arguments.replay);
  add_run(app, arguments.run);
  add_lab(app, arguments.lab);
  add_check(app, arguments.check);
  add_kernels(app, arguments.kernels);
  add_top(app, arguments.top);
  add_reload(app, arguments.reload);
  add_trace_command(app, arguments.trace);
  add_capture_command(app, arguments.capture);
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
  rocebox::cli::expect_no_memory();
  try {
    rocebox::leave_process(rocebox::cli::command(argc, argv));
  } catch (const std::exception&) {
    rocebox::leave_process(rocebox::cli::say_no_memory());  // nothing else comes here
  }
}
