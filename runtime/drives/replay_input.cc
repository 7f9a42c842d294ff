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
  for (InputFile& file : files_) {
    if (key.empty() ? file.path != path : file.key != key) continue;
    // Every record goes to one port: behind one that takes all, or the same, nothing is left.
    for (const Target& other : file.targets) {
      if (!other.binding->filter.empty() && other.binding->filter != binding.filter) continue;
      const std::string ports = other.binding->port == binding.port
                                    ? fmt::format("is named twice for port `{}`", binding.port.text())
                                    : fmt::format(
                                          "port `{}` would get nothing: all that it could have goes to port `{}`; "
                                          "give both a filter, as in --filter '{}=src host A'",
                                          binding.port.text(), other.binding->port.text(), other.binding->port.text());
      return add_line(mistakes, at_place(binding.in_place, shown_file(path) + ": " + ports));
    }
    file.targets.push_back(target);
    return;
  }
  InputFile& file = files_.emplace_back();
  file.path = path;
  file.key = key;
  file.targets.push_back(target);
  if (InputStream::waits(path)) return;
  try {
    file.reader = std::make_unique<CaptureReader>(path, WaitHooks{stop_, {}});
  } catch (const ConfigError& error) {
    add_line(mistakes, at_place(binding.in_place, error.what()));
  }
}

void ReplayInput::open(const WaitHooks& hooks) {
  Nanos earliest = INT64_MAX;
  for (InputFile& file : files_) {
    if (!file.reader) file.reader = std::make_unique<CaptureReader>(file.path, hooks);
    fetch(file);
    if (!file.ended) earliest = std::min(earliest, file.head.at);
  }
  origin_ = earliest == INT64_MAX ? 0 : earliest;
}

void ReplayInput::rewind() {
  handed_out_ = nullptr;
  latest_ = INT64_MIN;
  for (InputFile& file : files_) {
    file.reader = std::make_unique<CaptureReader>(file.path, WaitHooks{stop_, {}});
    file.ended = false;
    fetch(file);
  }
}

// Reads on to the next record that a port wants.
void ReplayInput::fetch(InputFile& file) {
  while (true) {
    switch (file.reader->next(file.head)) {
      case CaptureReader::Status::kPacket:
        break;
      case CaptureReader::Status::kCut:
        file.cut = true;
        [[fallthrough]];
      case CaptureReader::Status::kEnd:
        file.ended = true;
        return;
      case CaptureReader::Status::kBroken:
        throw std::runtime_error(
            fmt::format("{}: record {}: {}", shown_file(file.path), file.reader->records() + 1, file.reader->error()));
    }
    if (file.head.bytes.size() > kPacketBytesMax) {
      file.too_long++;
      file.head.bytes = file.head.bytes.first(kPacketBytesMax);
    }
    for (const Target& target : file.targets) {
      if (!target.filter->matches(file.head)) continue;
      file.head_to = target.port;
      return;
    }
    file.unselected++;
  }
}

bool ReplayInput::next(CaptureRecord& record, FabricPort& to) {
  if (handed_out_) fetch(*handed_out_);
  handed_out_ = nullptr;
  for (InputFile& file : files_)
    if (!file.ended && (!handed_out_ || file.head.at < handed_out_->head.at)) handed_out_ = &file;
  if (!handed_out_) return false;
  InputFile& file = *handed_out_;
  record = file.head;
  to = file.head_to;
  if (record.at < latest_) file.time_went_back++;
  record.at = latest_ = std::max(latest_, record.at);
  if (file.packets++ == 0) file.first = record.at;
  file.last = record.at;
  file.bytes += record.wire_bytes;
  if (record.bytes.size() < record.wire_bytes) file.snapped++;
  return true;
}

std::uint64_t ReplayInput::position() const {
  std::uint64_t sum = 0;
  for (const InputFile& file : files_)
    if (file.reader) sum += file.reader->position();
  return sum;
}

std::uint64_t ReplayInput::file_bytes() const {
  std::uint64_t sum = 0;
  for (const InputFile& file : files_)
    if (file.reader) sum += file.reader->file_bytes();
  return sum;
}

Json ReplayInput::row(const InputFile& file, Nanos origin) {
  Json row = {{"file", file.path},
              {"packets", file.packets},
              {"bytes", file.bytes},
              {"first_ns", file.packets ? file.first - origin : 0},
              {"last_ns", file.packets ? file.last - origin : 0},
              {"snapped", file.snapped},
              {"unselected", file.unselected},
              {"too_long", file.too_long},
              {"time_went_back", file.time_went_back},
              {"cut", file.cut}};
  if (const std::string note = file.note(); !note.empty()) row["note"] = note;
  return row;
}

void ReplayInput::report(Json& inputs) const {
  inputs = Json::array();
  for (const InputFile& file : files_) inputs.push_back(row(file, origin_));
}

std::string ReplayInput::InputFile::note() const {
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
  for (const InputFile& file : files_)
    if (file.packets == 0 && file.unselected > 0)
      lines.push_back(fmt::format("{}: {}", shown_file(file.path), file.note()));
  return lines;
}

}  // namespace rocebox
