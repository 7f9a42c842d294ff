// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay_outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/kernel/kernel.h"

namespace rocebox {

ReplayOutputs::ReplayOutputs(const config::RunConfig& config, ExtraOutputs extra,
                             const std::function<FabricPort(const config::PortName&)>& resolve)
    : extra_(std::move(extra)) {
  for (const config::CaptureBinding& binding : config.captures)
    if (!binding.out.empty()) plan_capture(binding, resolve(binding.port));
  refuse_shared(config);
  for (const std::string& trace : extra_.traces)
    if (trace.ends_with(".pcap"))
      throw ConfigError(trace + ": a trace is text, or packets with comments in a .pcapng; pcap has no comments");
}

void ReplayOutputs::plan_capture(const config::CaptureBinding& binding, FabricPort port) {
  const std::string key = file_key(binding.out, STDOUT_FILENO);
  auto capture = std::find_if(captures_.begin(), captures_.end(),
                              [&](const Capture& c) { return key.empty() ? c.path == binding.out : c.key == key; });
  if (capture == captures_.end()) capture = captures_.insert(captures_.end(), Capture{binding.out, key, {}, nullptr});
  if (is_pcapng_name(capture->path) != is_pcapng_name(binding.out))
    throw ConfigError(
        fmt::format("{} and {}: are one file, which cannot be both pcap and pcapng", capture->path, binding.out));
  if (ports_.size() <= port.device) ports_.resize(port.device + 1);
  if (ports_[port.device].size() <= port.port) ports_[port.device].resize(port.port + std::size_t{1});
  ports_[port.device][port.port] = {static_cast<int>(capture - captures_.begin()),
                                    static_cast<unsigned>(capture->interfaces.size())};
  capture->interfaces.push_back(binding.port.text());
}

// Every output against every input, and against every other output.
void ReplayOutputs::refuse_shared(const config::RunConfig& config) const {
  struct Use {
    std::string key, path, what;
    bool output = true, plain_text = false;  // plain text on standard output may follow other text
  };
  std::vector<Use> uses;
  for (const config::CaptureBinding& binding : config.captures)
    for (const std::string& in : binding.in)
      uses.push_back(
          {file_key(in, STDIN_FILENO), in, fmt::format("an input of port `{}`", binding.port.text()), false});
  for (const Capture& capture : captures_)
    uses.push_back({capture.key, capture.path, fmt::format("the capture of port `{}`", capture.interfaces[0])});
  for (const std::string& trace : extra_.traces)
    uses.push_back(
        {file_key(trace, STDOUT_FILENO), trace, "a trace", true, is_standard_output(trace) && !is_pcapng_name(trace)});
  if (!extra_.json.empty()) uses.push_back({file_key(extra_.json, STDOUT_FILENO), extra_.json, "the JSON report"});
  if (extra_.text_to_stdout)
    uses.push_back({file_key("-", STDOUT_FILENO), "standard output", "the report as text", true, true});
  std::string mistakes;
  for (std::size_t i = 0; i < uses.size(); i++) {
    if (!uses[i].output || uses[i].key.empty()) continue;
    for (std::size_t k = 0; k < i; k++) {
      if (uses[k].key != uses[i].key || (uses[i].plain_text && uses[k].plain_text)) continue;
      mistakes += fmt::format("{}{}: would be {} and is {}{}; an output must be a file of its own",
                              mistakes.empty() ? "" : "\n", is_dash(uses[i].path) ? "standard output" : uses[i].path,
                              uses[i].what, uses[k].what,
                              uses[k].path == uses[i].path ? "" : fmt::format(" ({})", uses[k].path));
      break;
    }
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
}

void ReplayOutputs::open(const std::vector<std::string>& devices) {
  for (Capture& capture : captures_) capture.writer = std::make_unique<CaptureWriter>(capture.path, capture.interfaces);
  if (!extra_.traces.empty()) trace_.emplace(extra_.traces, devices);
  if (!extra_.json.empty()) json_ = std::make_unique<OutputFile>(extra_.json);
}

void ReplayOutputs::for_each_file(const std::function<void(OutputFile&)>& each) {
  for (Capture& capture : captures_) each(capture.writer->file());
  if (trace_) trace_->for_each_file(each);
}

void ReplayOutputs::check() {
  for_each_file([](const OutputFile& file) {
    if (const std::string why = file.failed(); !why.empty()) throw std::runtime_error(why);
  });
}

bool ReplayOutputs::flush_direct() {
  bool good = true;
  for_each_file([&good](OutputFile& file) {
    if (file.direct()) file.flush();
    good &= file.failed().empty();
  });
  return good;
}

void ReplayOutputs::finish(const std::function<std::string()>& json_report) {
  for_each_file([](OutputFile& file) { file.close(); });
  if (json_) {
    const std::string text = json_report();
    json_->write(text.data(), text.size());
    json_->close();
  }
  for_each_file([](OutputFile& file) { file.publish(); });
  if (json_) json_->publish();
}

Json ReplayOutputs::row(const Capture& capture) {
  return {{"file", capture.path},
          {"packets", capture.writer ? capture.writer->packets() : 0},
          {"bytes", capture.writer ? capture.writer->bytes() : 0}};
}

void ReplayOutputs::report(Json& outputs) const {
  outputs = Json::array();
  for (const Capture& capture : captures_) outputs.push_back(row(capture));
}

}  // namespace rocebox
