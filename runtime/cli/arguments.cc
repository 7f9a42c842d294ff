// SPDX-License-Identifier: BSD-3-Clause
// What each command takes, and what --help says of it.
#include "runtime/cli/arguments.h"

#include <CLI/CLI.hpp>

namespace rocebox::cli {
namespace {

void add_plugins(CLI::App& command, std::vector<std::string>& plugins) {
  command.add_option("--plugin", plugins, "Load the components of this .so as well (may be given again)")
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
  command.add_flag("--full", report.full,
                   "Print every row of the report's tables; without it 20 of each at most, and in `sim` with more than "
                   "8 devices none of devices and links");
  command.add_flag("-q,--quiet", report.quiet,
                   "Print no report and no progress; warnings and expectations that fail are told all the same");
}

void add_set(CLI::App& command, std::vector<std::string>& settings) {
  command
      .add_option("--set", settings,
                  "A value in place of the configuration's: a name under `parameters:`, or a path of keys as "
                  "links.haul.loss (may be given again)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
}

constexpr const char* kConfig = "Configuration (YAML); `-` is standard input";

// Device `bump` in one line, in place of a configuration; `where` is where its packets come from.
CLI::Option* add_bump(CLI::App& command, const std::string& option, std::vector<std::string>& where,
                      const std::string& doc) {
  return command.add_option(
      option, where,
      "Instead of CONFIG: device `bump`" + doc + ", with the kernels behind --: KERNEL [OPTION=VALUE]...");
}

void add_between(CLI::App& command, config::OneLine& line) {
  add_bump(command, "--between", line.between,
           " between two interfaces (or bindings, as of --port), which are its ports `a` and `b`")
      ->type_name("A B")
      ->expected(2);
}

void add_from(CLI::App& command, config::OneLine& line) {
  add_bump(command, "--from", line.from,
           ", at whose port `a` the packets of FILE arrive (it may be given again), and which leave by `b`")
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

void add_sim(CLI::App& app, SimArguments& a) {
  CLI::App* command =
      app.add_subcommand("sim", "Run the workloads of a configuration over its devices and links, in virtual time");
  command->add_option("CONFIG", a.config, kConfig)->required();
  add_set(*command, a.settings);
  command
      ->add_option("--sweep", a.sweeps,
                   "Run with each of these values of KEY, as of --set; several sweeps: with every combination (may be "
                   "given again)")
      ->type_name("KEY=V1,V2")
      ->allow_extra_args(false);
  command->add_option("--seeds", a.seeds, "Run each with so many seeds, one after the other from the first one")
      ->type_name("N");
  command->add_option("--jobs", a.jobs, "So many runs of a sweep at a time; the table is the same")->type_name("N");
  command->add_option("--csv", a.csv, "Write tables of the report into this folder, of a sweep its table")
      ->type_name("DIR");
  command
      ->add_option("--plot", a.plot,
                   "Draw completion times, goodput, signals and links over time into this folder, as SVG and PNG; "
                   "needs matplotlib")
      ->type_name("DIR");
  command->add_option("--seed", a.seed, "Seed of all randomness, instead of the configuration's")->type_name("N");
  add_report(*command, a.json, a.report);
  add_trace(*command, a.trace, a.trace_outs);
  add_plugins(*command, a.plugins);
  command->add_flag("--only-check", a.only_check)->group("");  // what a sweep starts first: for no user
  command->add_flag("--notes-told", a.notes_told)->group("");  // what a sweep starts: for no user
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
      app.add_subcommand("check", "Check a configuration; print it with its options' values, and what would run");
  command->add_option("CONFIG", a.config, kConfig);
  add_between(*command, a.line);
  add_from(*command, a.line);
  add_set(*command, a.settings);
  command->add_flag("--strict", a.strict,
                    "Send packets through each device that models hardware; tell what that could not do");
  command->add_flag("--resources", a.resources, "Print what programs take of the hardware that is modelled");
  command->add_flag("--routes", a.routes, "Print the routes of a topology instead: switch, prefix, next hops");
  command->add_flag("--schema", a.schema, "Print the JSON Schema of configurations instead, for editors");
  add_plugins(*command, a.plugins);
}

void add_kernels(CLI::App& app, KernelsArguments& a) {
  CLI::App* command = app.add_subcommand("kernels", "List kernels and programs of switches, or every option of one");
  command->add_option("NAME", a.name, "Show the options, counters and examples of this kernel or program");
  command->add_flag("--json", a.json, "Print it as JSON");
  add_plugins(*command, a.plugins);
}

void add_model(CLI::App& app, ModelArguments& a) {
  CLI::App* command =
      app.add_subcommand("model", "Compute the figures of a system's theory, or list the models that there are");
  command->add_option("NAME", a.name, "The model; without it they are listed");
  command->add_option("--set", a.settings, "An option of the model, such as rtt=10ms (may be given again)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--options", a.options, "Show what can be set, and compute nothing");
  command
      ->add_option("--plot", a.plot,
                   "Draw the figures into this folder, as SVG and PNG, beside report.json; needs matplotlib")
      ->type_name("DIR");
  command->add_option("--seed", a.seed, "Seed of all randomness; 1 when left out")->type_name("N");
  add_report(*command, a.json, a.report);
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
                   "What is dropped for this reason, such as DEVICE.KERNEL.drop_loss or '*drop_loss', or for 'all' "
                   "(may be given again)")
      ->type_name("REASON")
      ->allow_extra_args(false);
  command->add_option("--count", a.count, "Stop after N packets")->type_name("N");
  command->add_option("--snap", a.snap_bytes, "Keep at most so many bytes of each packet")->type_name("BYTES");
  command->add_option("-w,--write", a.files, "The file: pcapng, or pcap when its name ends so; `-` is standard output")
      ->type_name("FILE")
      ->expected(1);
}

}  // namespace

void declare_commands(CLI::App& app, Arguments& arguments) {
  add_replay(app, arguments.replay);
  add_sim(app, arguments.sim);
  add_run(app, arguments.run);
  add_lab(app, arguments.lab);
  add_check(app, arguments.check);
  add_kernels(app, arguments.kernels);
  add_model(app, arguments.model);
  add_top(app, arguments.top);
  add_reload(app, arguments.reload);
  add_trace_command(app, arguments.trace);
  add_capture_command(app, arguments.capture);
}

}  // namespace rocebox::cli
