// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/tracer.h"

namespace rocebox {

void check_trace_file(const std::string& file) {
  if (file.ends_with(".pcap"))
    throw ConfigError(file + ": a trace is text, or packets with comments in a .pcapng; pcap has no comments");
}

TraceOutput::TraceOutput(const std::vector<std::string>& files, const std::vector<std::string>& interfaces,
                         Waiting waiting) {
  for (const std::string& file : files) {
    if (is_pcapng_name(file) || file.ends_with(".pcap"))
      captures_.emplace_back(file, interfaces, waiting);
    else
      texts_.emplace_back(file, waiting);
  }
}

void TraceOutput::write(unsigned interface, Nanos at, const CapturedFrame& frame, std::string_view line) {
  for (OutputFile& text : texts_) {
    text.write(line.data(), line.size());
    text.write("\n", 1);
  }
  for (CaptureWriter& capture : captures_) capture.write(interface, at, frame, line);
}

void TraceOutput::write_lost(std::uint64_t events) {
  for (CaptureWriter& capture : captures_) capture.write_lost(events);
}

void TraceOutput::for_each_file(const std::function<void(OutputFile&)>& each) {
  for (OutputFile& text : texts_) each(text);
  for (CaptureWriter& capture : captures_) each(capture.file());
}

void Tracer::record(const TraceEvent& event) {
  std::string port;
  if (event.verdict == TraceVerdict::kArrive || event.verdict == TraceVerdict::kLeave)
    port = device_.ports()[event.port];
  const std::string_view reason = event.reason ? device_.books().counter_name(event.reason) : std::string_view();
  output_.write(number_, origin_ + event.at, {event.packet.bytes(), event.packet.wire_bytes()},
                trace_line(event, device_.name(), port, reason));
}

}  // namespace rocebox
