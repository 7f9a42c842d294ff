// SPDX-License-Identifier: BSD-3-Clause
// The commands of `rocebox`. Each returns the exit status: 0 done, 1 the run failed or an expectation did not hold,
// 2 bad arguments or configuration (nothing was started).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/config/one_line.h"
#include "runtime/drives/run_files.h"
#include "runtime/packet/pool.h"
#include "runtime/process/eal.h"
#include "runtime/telemetry/json_report.h"

namespace CLI {
class App;
}

namespace rocebox::cli {

/// How much of its report a run prints.
struct ReportOptions {
  bool quiet = false;  ///< nothing of it
  bool full = false;   ///< all rows of every table
};

struct ReplayArguments {
  std::string config;  ///< `-`: standard input; empty: `line`
  config::OneLine line;
  std::vector<std::string> in, out;  ///< PORT=FILE
  std::vector<std::string> filters;  ///< PORT=FILTER
  std::vector<std::string> plugins;
  std::string seed;  ///< empty: the configuration's
  std::string json;  ///< file for the report as JSON; `-`: standard output instead of the text
  std::string trace;
  std::vector<std::string> trace_outs;
  ReportOptions report;
};
int replay(const ReplayArguments& arguments);

struct SimArguments {
  std::string config;                 ///< `-`: standard input
  std::vector<std::string> settings;  ///< KEY=VALUE
  std::vector<std::string> sweeps;    ///< KEY=V1,V2
  std::int64_t seeds = 1, jobs = 1;
  std::string csv, plot;  ///< folders; empty: none
  std::vector<std::string> plugins;
  std::string seed;  ///< empty: the configuration's
  std::string json;  ///< as in ReplayArguments
  std::string trace;
  std::vector<std::string> trace_outs;
  ReportOptions report;
  bool notes_told = false;  ///< of the configuration, by a sweep for all of its runs
  bool only_check = false;  ///< make all that the run needs, and then end: how a sweep finds mistakes before its runs
};
int sim(const SimArguments& arguments);
/// The configuration with its settings and seed; throws ConfigError.
config::RunConfig load_sim(const SimArguments& arguments, Registry& registry);

struct RunArguments {
  std::string config;  ///< as in ReplayArguments
  config::OneLine line;
  std::vector<std::string> ports;  ///< PORT=BINDING
  std::vector<std::string> plugins;
  std::vector<std::string> eal;  ///< for DPDK's EAL, as they are
  std::string seed;              ///< empty: the configuration's
  std::string cores;             ///< such as 1,3-5; empty: as the configuration says
  std::string duration;          ///< such as 10s; empty: until a signal
  std::string json;              ///< as in ReplayArguments
  std::string name;              ///< of the instance; empty: made from the configuration's
  std::string metrics;           ///< ADDRESS:PORT; empty: as the configuration says
  std::string trace;             ///< as in ReplayArguments
  std::vector<std::string> trace_outs;
  ReportOptions report;
};
int run(const RunArguments& arguments);

struct LabArguments {
  enum class What { kRun, kUp, kDown, kSchema };
  What what = What::kRun;
  std::string config;
  std::string name;  ///< empty: the configuration's
  std::vector<std::string> plugins;
  std::string json;  ///< as in ReplayArguments
  ReportOptions report;
};
int lab(const LabArguments& arguments);
/// Checks the configuration of a lab, and prints what would be built.
void check_lab(const std::string& text, const std::string& path, const std::vector<std::string>& plugins);

struct CheckArguments {
  std::string config;  ///< as in ReplayArguments
  config::OneLine line;
  std::vector<std::string> settings;  ///< KEY=VALUE
  std::vector<std::string> plugins;
  bool schema = false, strict = false, resources = false, routes = false;
};
int check(const CheckArguments& arguments);
/// Whether a kernel of the device models hardware: see KernelOptions::make_strict.
bool models_hardware(const config::DeviceConfig& device);
/// Makes each such device in strict mode. `strict`: packets of every kind are sent through it, and what it does that
/// the hardware could not is told; false when there is something. `resources`: what it takes of the hardware is
/// printed. Throws ConfigError when that does not fit.
bool check_hardware(const config::RunConfig& config, bool strict, bool resources);

struct KernelsArguments {
  std::string name;
  std::vector<std::string> plugins;
  bool json = false;
};
int kernels(const KernelsArguments& arguments);

struct ModelArguments {
  std::string name;                   ///< empty: list them
  std::vector<std::string> settings;  ///< KEY=VALUE
  std::string seed;                   ///< empty: 1
  std::string plot;                   ///< folder; empty: none
  std::string json;                   ///< as in ReplayArguments
  bool options = false;               ///< only show what can be set
  std::vector<std::string> plugins;
  ReportOptions report;
};
int model(const ModelArguments& arguments);

struct TopArguments {
  std::string instance;  ///< name, or path of a socket; empty: the only one that runs
  std::string interval;  ///< such as 1s
  bool once = false;
  bool json = false;
  bool list = false;
};
int top(const TopArguments& arguments);

struct ReloadArguments {
  std::string instance;  ///< name or socket; empty: the only one
};
int reload(const ReloadArguments& arguments);

/// Of `trace` and `capture`: what is recorded of a live run, see RecordingRequest.
struct RecordArguments {
  bool trace = false;
  std::string instance;            ///< name, or path of its socket; empty: the only one that runs
  std::string filter;              ///< a TraceFilter
  std::vector<std::string> ports;  ///< DEVICE.PORT, with `:rx` or `:tx`
  std::vector<std::string> drops;  ///< patterns of reasons
  std::vector<std::string> files;  ///< `-`: standard output
  std::string duration;            ///< such as 10s; empty: until a signal
  std::uint64_t count = 0;         ///< 0: no limit
  std::uint32_t snap_bytes = 0;    ///< 0: whole packets
  bool list = false;               ///< only tell what is being recorded
  std::string stop;                ///< only end this one
};
int record(const RecordArguments& arguments);

/// A registry with the in-tree kernels and `plugins`. Throws ConfigError.
Registry make_registry(const std::vector<std::string>& plugins);
/// Loads a configuration; throws ConfigError with every mistake, one a line. `-` is standard input where pipes are
/// taken.
config::RunConfig load_or_throw(const std::string& path, Registry& registry, config::Pipes pipes);
/// The same for the one that is given of both; `how`: how to give it in one line, for messages.
config::RunConfig load_or_throw(const std::string& path, const config::OneLine& line, Registry& registry,
                                const std::string& how);
/// What --set gives. Throws ConfigError.
std::vector<config::Setting> settings_of(const std::vector<std::string>& texts);
/// Throws ConfigError for what a drive other than the virtual one does not run: `live` captures at joined ports, replay
/// workloads.
void refuse_virtual(const config::RunConfig& config, bool live);
/// Starts DPDK's environment with memory for the configuration's pool. Throws ConfigError.
void start_for(const config::RunConfig& config);
/// What DPDK's environment is to be for a live run: memory for its pool and ports, and its cores. Throws ConfigError
/// when there is not as much memory.
EalOptions live_options(const config::RunConfig& config, const std::vector<unsigned>& cores);
/// The configuration's pool: in huge pages where there are some and it is not for ports. Throws ConfigError.
Pool make_pool(const config::RunConfig& config, bool for_ports = false);

/// Throws ConfigError when an output of the run is one of its inputs, or another output; tells of what killed runs
/// left.
void check_files(const RunFiles& files);
/// The files of a trace: those named, and standard output or stderr when none of them is for text. Throws ConfigError.
std::vector<std::string> trace_files(const std::string& filter, const std::vector<std::string>& named,
                                     bool text_to_stdout);
/// The number behind --seed; throws ConfigError.
std::int64_t seed_of(const std::string& text);
/// What is wrong with the words of a command line, with the nearest command or option where one is not known; `why` is
/// what the parser found.
std::string argument_error(const CLI::App& app, const std::vector<std::string>& words, const std::string& why);
/// Tells a person of it on standard error: `rocebox: ...`, control characters written out.
void tell(std::string_view text);
/// The same without `rocebox:`, of what begins with its own place: mistakes, and expectations that did not hold.
void tell_placed(std::string_view lines);
void tell_placed(const std::vector<std::string>& lines);
/// Prints a line, or lines, on standard output that may have names of files and users in them, control characters
/// written out.
void print_line(std::string_view text);
void print_lines(std::string_view text);
/// Prints `head` and behind it the text, which on a terminal goes on below itself where the line ends; in a pipe a line
/// stays a line.
void print_wrapped(const std::string& head, std::string_view text);
/// Whether a person reads this on a terminal that shows colors, and has not asked for none (NO_COLOR).
bool shows_colors(std::FILE* stream);
/// Prints a report for a person. Throws std::runtime_error when it cannot be written.
void print_report(Json report, std::FILE* stream, const ReportOptions& options);

}  // namespace rocebox::cli
