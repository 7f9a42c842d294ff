// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/limits.h"
#include "runtime/process/file_place.h"

namespace rocebox {

namespace {

void add_line(std::string& text, const std::string& line) { text += (text.empty() ? "" : "\n") + line; }

std::string at_place(const std::string& place, const std::string& text) {
  return place.empty() ? text : place + ": " + text;
}

}  // namespace

ReplayInput::ReplayInput(const std::vector<config::CaptureBinding>& bindings,
                         const std::function<FabricPort(const config::PortName&)>& resolve, const StopRequest* stop)
    : stop_(stop) {
  std::string mistakes;
  for (const config::CaptureBinding& binding : bindings) {
    try {
      filters_.emplace_back(binding.filter);
    } catch (const ConfigError& error) {
      add_line(mistakes,
               at_place(binding.filter_place, fmt::format("port `{}`: {}", binding.port.text(), error.what())));
      filters_.emplace_back("");
    }
    for (const std::string& path : binding.in) add(path, {&filters_.back(), &binding, resolve(binding.port)}, mistakes);
  }
  if (!mistakes.empty()) throw ConfigError(mistakes);
}

void ReplayInput::add(const std::string& path, const Target& target, std::string& mistakes) {
  const config::CaptureBinding& binding = *target.binding;
  const std::string key = file_key(path, STDIN_FILENO);
  for (Source& source : sources_) {
    if (key.empty() ? source.path != path : source.key != key) continue;
    // Every record goes to one port: behind one that takes all, or the same, nothing is left.
    for (const Target& other : source.targets) {
      if (!other.binding->filter.empty() && other.binding->filter != binding.filter) continue;
      const std::string ports = other.binding->port == binding.port
                                    ? fmt::format("is named twice for port `{}`", binding.port.text())
                                    : fmt::format(
                                          "port `{}` would get nothing: all that it could have goes to port `{}`; "
                                          "give both a filter, as in --filter '{}=src host A'",
                                          binding.port.text(), other.binding->port.text(), other.binding->port.text());
      return add_line(mistakes, at_place(binding.in_place, shown_file(path) + ": " + ports));
    }
    source.targets.push_back(target);
    return;
  }
  Source& source = sources_.emplace_back();
  source.path = path;
  source.key = key;
  source.targets.push_back(target);
  if (InputStream::waits(path)) return;
  try {
    source.reader = std::make_unique<CaptureReader>(path, WaitHooks{stop_, {}});
  } catch (const ConfigError& error) {
    add_line(mistakes, at_place(binding.in_place, error.what()));
  }
}

void ReplayInput::open(const WaitHooks& hooks) {
  Nanos earliest = INT64_MAX;
  for (Source& source : sources_) {
    if (!source.reader) source.reader = std::make_unique<CaptureReader>(source.path, hooks);
    fetch(source);
    if (!source.ended) earliest = std::min(earliest, source.head.at);
  }
  origin_ = earliest == INT64_MAX ? 0 : earliest;
}

void ReplayInput::rewind() {
  handed_out_ = nullptr;
  latest_ = INT64_MIN;
  for (Source& source : sources_) {
    source.reader = std::make_unique<CaptureReader>(source.path, WaitHooks{stop_, {}});
    source.ended = false;
    fetch(source);
  }
}

// Reads on to the next record that a port wants.
void ReplayInput::fetch(Source& source) {
  while (true) {
    switch (source.reader->next(source.head)) {
      case CaptureReader::Status::kPacket:
        break;
      case CaptureReader::Status::kCut:
        source.cut = true;
        [[fallthrough]];
      case CaptureReader::Status::kEnd:
        source.ended = true;
        return;
      case CaptureReader::Status::kBroken:
        throw std::runtime_error(fmt::format("{}: record {}: {}", shown_file(source.path), source.reader->records() + 1,
                                             source.reader->error()));
    }
    if (source.head.bytes.size() > kPacketBytesMax) {
      source.too_long++;
      source.head.bytes = source.head.bytes.first(kPacketBytesMax);
    }
    for (const Target& target : source.targets) {
      if (!target.filter->matches(source.head)) continue;
      source.head_to = target.port;
      return;
    }
    source.unselected++;
  }
}

bool ReplayInput::next(CaptureRecord& record, FabricPort& to) {
  if (handed_out_) fetch(*handed_out_);
  handed_out_ = nullptr;
  for (Source& source : sources_)
    if (!source.ended && (!handed_out_ || source.head.at < handed_out_->head.at)) handed_out_ = &source;
  if (!handed_out_) return false;
  Source& source = *handed_out_;
  record = source.head;
  to = source.head_to;
  if (record.at < latest_) source.time_went_back++;
  record.at = latest_ = std::max(latest_, record.at);
  if (source.packets++ == 0) source.first = record.at;
  source.last = record.at;
  source.bytes += record.wire_bytes;
  if (record.bytes.size() < record.wire_bytes) source.snapped++;
  return true;
}

std::uint64_t ReplayInput::position() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_)
    if (source.reader) sum += source.reader->position();
  return sum;
}

std::uint64_t ReplayInput::file_bytes() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_)
    if (source.reader) sum += source.reader->file_bytes();
  return sum;
}

Json ReplayInput::row(const Source& source, Nanos origin) {
  Json row = {{"file", source.path},
              {"packets", source.packets},
              {"bytes", source.bytes},
              {"first_ns", source.packets ? source.first - origin : 0},
              {"last_ns", source.packets ? source.last - origin : 0},
              {"snapped", source.snapped},
              {"unselected", source.unselected},
              {"too_long", source.too_long},
              {"time_went_back", source.time_went_back},
              {"cut", source.cut}};
  if (const std::string note = source.note(); !note.empty()) row["note"] = note;
  return row;
}

void ReplayInput::report(Json& inputs) const {
  inputs = Json::array();
  for (const Source& source : sources_) inputs.push_back(row(source, origin_));
}

std::string ReplayInput::Source::note() const {
  std::string text;
  if (cut) text = fmt::format("the file ends inside record {}; all before it was used", reader->records() + 1);
  if (reader && reader->ignored_rest())
    text +=
        fmt::format("{}behind its packed capture stands something else, which was ignored", text.empty() ? "" : "; ");
  if (packets == 0 && unselected > 0)
    text += fmt::format("{}no packet of {} passes the filter `{}`", text.empty() ? "" : "; ", unselected,
                        targets[0].binding->filter);
  return text;
}

std::vector<std::string> ReplayInput::warnings() const {
  std::vector<std::string> lines;
  for (const Source& source : sources_)
    if (source.packets == 0 && source.unselected > 0)
      lines.push_back(fmt::format("{}: {}", shown_file(source.path), source.note()));
  return lines;
}

}  // namespace rocebox
