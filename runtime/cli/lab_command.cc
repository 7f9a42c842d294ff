// SPDX-License-Identifier: BSD-3-Clause
// `rocebox lab run|up|down|schema`: testbeds on this machine.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>
#include <set>
#include <vector>

#include "runtime/capture/output_file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/lab_skeleton.h"
#include "runtime/config/printable.h"
#include "runtime/lab/lab.h"
#include "runtime/telemetry/expectations.h"

namespace rocebox::cli {
namespace {

void write_json(std::optional<OutputFile>& file, const Json& report) {
  if (!file) return;
  const std::string text = json_text(report);
  file->write(text.data(), text.size());
  file->close();
  file->publish();
}

// What is written in appliances and has no effect; those in one file share their notes.
void tell_notes(const lab::LabConfig& config) {
  std::set<std::string> told;
  for (const lab::ApplianceConfig& appliance : config.appliances)
    for (const std::string& note : appliance.config.notes)
      if (told.insert(note).second) tell_placed(note);
}

lab::LabConfig load_lab(const LabArguments& arguments) {
  lab::LabConfig config =
      lab::load(config::read_text_file(arguments.config, config::Pipes::kTaken), arguments.config, arguments.plugins);
  tell_notes(config);
  if (arguments.name.empty()) return config;
  lab::require_lab_name(arguments.name, "--name");
  config.name = arguments.name;
  return config;
}

// All that the lab and its appliances read and write.
RunFiles files_of(const LabArguments& arguments, const lab::LabConfig& config) {
  RunFiles files;
  files.reads(config.path, "the configuration");
  for (const std::string& plugin : arguments.plugins) files.reads(plugin, "a plugin");
  for (const lab::ApplianceConfig& appliance : config.appliances) {
    files.add(RunFiles(appliance.config), fmt::format("of appliance `{}`", appliance.name));
  }
  for (const lab::TrafficStep& step : config.traffic)
    files.others_write(step.output, fmt::format("the output of `{}`", step.name));
  files.writes(arguments.json, "the JSON report");
  return files;
}

Json head(const lab::LabConfig& config) {
  Json report;
  report["schema_version"] = kReportSchemaVersion;
  report["command"] = "lab run";
  report["config"] = config.file;
  report["lab"] = config.name;
  return report;
}

// What a command printed as JSON is for expectations and --json; a person would have to wade through it.
Json without_printed_json(Json report) {
  for (auto& [name, row] : report["traffic"].items()) row.erase("json");
  return report;
}

int run_lab(const LabArguments& arguments) {
  const lab::LabConfig config = load_lab(arguments);
  check_files(files_of(arguments, config));
  Expectations expectations;
  expectations.read(config.file, config.expectations, lab::skeleton(config, appliance_skeletons(config)));
  std::optional<OutputFile> json;
  if (!arguments.json.empty()) json.emplace(arguments.json);
  Json report = head(config);
  std::vector<std::string> failures;
  {
    lab::Interrupts interrupts;
    lab::Lab lab(config, arguments.plugins, interrupts);
    lab.up();
    const bool quiet = arguments.report.quiet;
    if (!quiet)
      fmt::print(stderr, "rocebox lab run {}: {} host(s), {} appliance(s), {} command(s)\n", config.name,
                 config.hosts.size(), config.appliances.size(), config.traffic.size());
    report.update(lab.run(failures, [quiet](const lab::TrafficStep& step) {
      if (!quiet && isatty(STDERR_FILENO))
        fmt::print(stderr, "  {}\n", config::printable(fmt::format("{} in {}: {}", step.name, step.host, step.run)));
    }));
  }
  expectations.add_to(report);
  report["failures"] = failures;
  write_json(json, report);
  if (!is_standard_output(arguments.json)) print_report(without_printed_json(report), stdout, arguments.report);
  for (const std::string& failure : failures) tell(failure);
  const std::vector<std::string> unmet = expectations.failures(report);
  tell_placed(unmet);
  return failures.empty() && unmet.empty() ? 0 : 1;
}

int lab_up(const LabArguments& arguments) {
  const lab::LabConfig config = load_lab(arguments);
  Expectations().read(config.file, config.expectations, lab::skeleton(config, appliance_skeletons(config)));
  check_files(files_of(arguments, config));
  lab::Interrupts interrupts;
  lab::Lab lab(config, arguments.plugins, interrupts);
  lab.up();
  print_lines(fmt::format("lab {} stands\n{}take it down: rocebox lab down {}\n", config.name, lab.how_to_enter(),
                          config.name));
  lab.leave();
  return 0;
}

int lab_down(const LabArguments& arguments) {
  const std::string name = arguments.name.empty() ? lab::lab_name(arguments.config) : arguments.name;
  lab::require_lab_name(name, "--name");
  RunFiles files;
  files.reads(arguments.config, "the configuration");
  files.writes(arguments.json, "the JSON report");
  check_files(files);
  std::optional<OutputFile> json;
  if (!arguments.json.empty()) json.emplace(arguments.json);
  const lab::TakenDown done = lab::take_down(name);
  write_json(json, {{"schema_version", kReportSchemaVersion},
                    {"command", "lab down"},
                    {"lab", name},
                    {"killed", done.killed},
                    {"appliances", done.reports}});
  if (is_standard_output(arguments.json)) return 0;
  if (done.anything) {
    print_line(fmt::format("lab {} is down{}", name,
                           done.killed ? fmt::format("; {} process(es) had to be killed", done.killed) : ""));
    return 0;
  }
  const std::vector<std::string> others = lab::standing_labs();
  print_line(fmt::format("nothing of lab {} is here{}", name,
                         others.empty() ? "" : fmt::format("; these stand: {}", fmt::join(others, ", "))));
  return 0;
}

}  // namespace

int lab(const LabArguments& arguments) {
  switch (arguments.what) {
    case LabArguments::What::kRun:
      return run_lab(arguments);
    case LabArguments::What::kUp:
      return lab_up(arguments);
    case LabArguments::What::kDown:
      return lab_down(arguments);
    case LabArguments::What::kSchema:
      fmt::print("{}\n", lab::schema(make_registry(arguments.plugins)).dump(2));
      return 0;
  }
  return 0;
}

void check_lab(const std::string& text, const std::string& path, const std::vector<std::string>& plugins) {
  const lab::LabConfig config = lab::load(text, path, plugins);
  tell_notes(config);
  Expectations().read(config.file, config.expectations, lab::skeleton(config, appliance_skeletons(config)));
  print_line(fmt::format("# {}: good. What `rocebox lab run` would build:", config.file));
  for (const lab::HostConfig& host : config.hosts)
    for (const lab::Interface& each : host.interfaces)
      print_line(fmt::format("#   host {}{}: {} mtu {} {}", host.name, host.machine ? ", a virtual machine" : "",
                             each.name, each.mtu, fmt::join(each.addresses, ", ")));
  for (const lab::WireConfig& wire : config.wires)
    print_line(fmt::format("#   wire {}{}", wire.text, wire.tap || wire.machine ? ", a TAP" : ""));
  for (const lab::TrafficStep& step : config.traffic)
    print_line(fmt::format("#   {} in {}{}: {}", step.name, step.host, step.background ? ", in the background" : "",
                           step.run));
  for (const config::ExpectationText& expectation : config.expectations)
    print_line(fmt::format("#   expect {}", expectation.text));
  for (const lab::ApplianceConfig& appliance : config.appliances)
    print_lines(fmt::format("# appliance {}, the options that count, with their values:\n{}", appliance.name,
                            config::effective_yaml(appliance.config)));
}

}  // namespace rocebox::cli
