// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay_outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/kernel/kernel.h"
#include "runtime/process/file_place.h"

namespace rocebox {

ReplayOutputs::ReplayOutputs(const config::RunConfig& config, ExtraOutputs extra,
                             const std::function<FabricPort(const config::PortName&)>& resolve)
    : extra_(std::move(extra)) {
  for (const config::CaptureBinding& binding : config.captures)
    if (!binding.out.empty()) plan_capture(binding, resolve(binding.port));
  RunFiles files(config);
  files.writes(extra_);
  files.check();
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

void ReplayOutputs::open(const std::vector<std::string>& devices) {
  const Waiting waiting(Patience::kEndless, extra_.stop);
  for (Capture& capture : captures_)
    capture.writer = std::make_unique<CaptureWriter>(capture.path, capture.interfaces, waiting);
  if (!extra_.traces.empty()) trace_.emplace(extra_.traces, devices, waiting);
  if (!extra_.json.empty()) json_ = std::make_unique<OutputFile>(extra_.json, waiting);
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
