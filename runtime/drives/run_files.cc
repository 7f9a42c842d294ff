// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/run_files.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "runtime/capture/capture_writer.h"
#include "runtime/capture/output_file.h"
#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {
namespace {

std::string short_key(const std::string& key) { return fmt::format("{:016x}", XXH3_64bits(key.data(), key.size())); }

}  // namespace

RunFiles::RunFiles(const config::RunConfig& config) {
  if (config.origin != config::ConfigOrigin::kArguments) reads(config.path, "the configuration");
  for (const config::DeviceConfig& device : config.devices)
    reads(device.pipeline, fmt::format("the pipeline of device `{}`", device.name));
  for (const auto& [file, what] : config.input_files) reads(file, what);
  for (const std::string& plugin : config.plugin_files) reads(plugin, "a plugin");
  for (const config::CaptureBinding& binding : config.captures)
    for (const std::string& in : binding.in) reads(in, fmt::format("an input of port `{}`", binding.port.text()), true);
  for (const config::CaptureBinding& binding : config.captures)
    if (!binding.out.empty())
      add({file_key(binding.out, STDOUT_FILENO), binding.out,
           fmt::format("the capture of port `{}`", binding.port.text()), true, false, true});
  for (const config::LiveBinding& binding : config.live_ports) add_devargs(binding.live.devargs);
}

void RunFiles::add(Use use) {
  for (const Use& other : uses_)
    if (use.capture && other.capture && !use.key.empty() && other.key == use.key) return;
  uses_.push_back(std::move(use));
}

void RunFiles::reads(const std::string& path, const std::string& what, bool packets) {
  if (path.empty()) return;
  Use use{file_key(path, STDIN_FILENO), path, what, false};
  use.packets = packets;
  use.stream = follow(path, STDIN_FILENO).descriptor >= 0;
  add(std::move(use));
}

void RunFiles::writes(const std::string& path, const std::string& what) {
  if (!path.empty()) add({file_key(path, STDOUT_FILENO), path, what});
}

void RunFiles::others_write(const std::string& path, const std::string& what) {
  if (!path.empty()) add({file_key(path, STDOUT_FILENO), path, what, true, false, false, false});
}

void RunFiles::writes_text(const std::string& path, const std::string& what) {
  add({file_key(path, STDOUT_FILENO), path, what, true, is_standard_output(path)});
}

void RunFiles::writes(const ExtraOutputs& extra) {
  for (const std::string& trace : extra.traces)
    is_pcapng_name(trace) ? writes(trace, "a trace") : writes_text(trace, "a trace");
  writes(extra.json, "the JSON report");
  if (extra.text_to_stdout) writes_text("-", "the report as text");
}

void RunFiles::add_devargs(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (word.starts_with("rx_pcap=")) reads(word.substr(8), "what a driver reads");
    if (word.starts_with("tx_pcap=")) writes(word.substr(8), "what a driver writes");
    at = end + 1;
  }
}

void RunFiles::add(const RunFiles& others, const std::string& of) {
  for (Use use : others.uses_) {
    use.what += " " + of;
    use.capture = false;  // two processes do not share one
    uses_.push_back(std::move(use));
  }
}

void RunFiles::merge(const RunFiles& later) {
  for (const Use& use : later.uses_)
    if (std::none_of(uses_.begin(), uses_.end(),
                     [&](const Use& known) { return known.key == use.key && known.path == use.path; }))
      uses_.push_back(use);
}

std::vector<std::string> RunFiles::Use::keys() const {
  std::vector<std::string> all = {key};
  if (!is_dash(path)) all.push_back(file_key(path, STDOUT_FILENO));
  if (all.size() == 2 && all[0] == all[1]) all.pop_back();
  std::erase(all, "");
  return all;
}

// The first of a configuration and of packets that come by one stream takes all that is there.
std::string RunFiles::read_twice(std::size_t number) const {
  const Use& use = uses_[number];
  if (!use.packets || !use.stream) return "";
  for (const Use& other : uses_)
    if (!other.output && !other.packets && other.stream && other.key == use.key)
      return fmt::format("{}: would be {} and is {}; what comes from there is read once: give one of both as a file",
                         shown_file(use.path), use.what, other.what);
  return "";
}

std::string RunFiles::shown(const Use& use) { return use.output ? shown_output(use.path) : shown_file(use.path); }

void RunFiles::check() const {
  std::string mistakes;
  const auto add_line = [&mistakes](const std::string& line) { mistakes += (mistakes.empty() ? "" : "\n") + line; };
  for (std::size_t i = 0; i < uses_.size(); i++) {
    const Use& use = uses_[i];
    if (!use.output) {
      if (const std::string why = read_twice(i); !why.empty()) add_line(why);
      continue;
    }
    try {
      if (use.ours) refuse_packed_name(use.path);
    } catch (const ConfigError& error) {
      add_line(error.what());
    }
    if (use.key.empty()) continue;
    for (std::size_t k = 0; k < uses_.size(); k++) {
      const Use& other = uses_[k];
      if (k == i || other.key != use.key || (use.plain_text && other.plain_text)) continue;
      if (other.output && k > i) continue;  // told when it is the other's turn
      add_line(fmt::format("{}: would be {} and is {}{}; an output must be a file of its own", shown_output(use.path),
                           use.what, other.what, other.path == use.path ? "" : fmt::format(" ({})", shown(other))));
      break;
    }
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
}

std::string RunFiles::what_is(const std::string& path) const {
  const std::string key = file_key(path, STDOUT_FILENO);
  for (const Use& use : uses_)
    for (const std::string& known : use.keys())
      if (known == key) return use.what;
  return "";
}

std::vector<std::string> RunFiles::left_behind() const {
  std::vector<std::string> lines;
  for (const Use& use : uses_)
    if (use.output && use.ours)
      for (const std::string& part : rocebox::left_behind(use.path))
        lines.push_back(
            fmt::format("{}: was left by a run that was killed, or is another program's; no run writes it, "
                        "and it may be removed",
                        part));
  return lines;
}

std::vector<std::string> RunFiles::rows() const {
  std::vector<std::string> rows;
  for (const Use& use : uses_)
    for (const std::string& key : use.keys()) rows.push_back(fmt::format("{} {}", short_key(key), use.what));
  return rows;
}

std::string RunFiles::key_of(const std::string& path) {
  const std::string key = file_key(path, STDOUT_FILENO);
  return key.empty() ? key : short_key(key);
}

}  // namespace rocebox
