// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/tracer.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "runtime/kernel/kernel.h"

namespace rocebox {

TraceOutput::TraceOutput(const std::vector<std::string>& files, std::FILE* text,
                         const std::vector<std::string>& devices) {
  for (const std::string& file : files) {
    if (file.ends_with(".pcapng")) {
      captures_.emplace_back(file, devices);
      continue;
    }
    std::FILE* stream = file == "-" ? stdout : std::fopen(file.c_str(), "w");
    if (!stream) throw ConfigError(fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
    texts_.push_back({file, stream, stream != stdout});
  }
  if (texts_.empty() && text) texts_.push_back({"standard output", text, false});
}

TraceOutput::~TraceOutput() {
  for (TextFile& text : texts_)
    if (text.owned && text.file) std::fclose(text.file);
}

void TraceOutput::write(unsigned device, Nanos origin, const TraceEvent& event, const std::string& line) {
  for (TextFile& text : texts_) std::fprintf(text.file, "%s\n", line.c_str());
  for (CaptureWriter& capture : captures_) capture.write(device, origin + event.at, event.packet, line);
}

void TraceOutput::finish() {
  for (TextFile& text : texts_) {
    bool failed = std::fflush(text.file) != 0 || std::ferror(text.file);
    if (text.owned && std::fclose(std::exchange(text.file, nullptr)) != 0) failed = true;
    if (failed) throw std::runtime_error(fmt::format("{}: cannot be written: {}", text.path, std::strerror(errno)));
  }
  for (CaptureWriter& capture : captures_) capture.finish();
}

void Tracer::record(const TraceEvent& event) {
  std::string port;
  if (event.verdict == TraceVerdict::kArrive || event.verdict == TraceVerdict::kLeave)
    port = device_.ports()[event.port];
  const std::string_view reason = event.reason ? device_.counter_name(event.reason) : std::string_view();
  output_.write(number_, origin_, event, trace_line(event, device_.name(), port, reason));
}

}  // namespace rocebox
