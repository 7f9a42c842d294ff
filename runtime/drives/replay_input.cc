// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/replay_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "runtime/limits.h"

namespace rocebox {

ReplayInput::ReplayInput(const std::vector<config::CaptureBinding>& bindings,
                         const std::function<FabricPort(const config::PortName&)>& resolve) {
  for (const config::CaptureBinding& binding : bindings) {
    for (const std::string& path : binding.in) {
      auto source =
          std::find_if(sources_.begin(), sources_.end(), [&](const Source& s) { return s.reader.path() == path; });
      if (source == sources_.end()) {
        sources_.emplace_back(path);
        source = sources_.end() - 1;
      }
      source->targets.push_back({CaptureFilter(binding.filter), resolve(binding.port)});
    }
  }
  Nanos earliest = INT64_MAX;
  for (Source& source : sources_) {
    fetch(source);
    if (!source.ended) earliest = std::min(earliest, source.head.at);
  }
  origin_ = earliest == INT64_MAX ? 0 : earliest;
}

// Reads on to the next record that a port wants.
void ReplayInput::fetch(Source& source) {
  while (true) {
    switch (source.reader.next(source.head)) {
      case CaptureReader::Status::kPacket:
        break;
      case CaptureReader::Status::kCut:
        source.cut = true;
        [[fallthrough]];
      case CaptureReader::Status::kEnd:
        source.ended = true;
        return;
      case CaptureReader::Status::kBroken:
        throw std::runtime_error(
            fmt::format("{}: record {}: {}", source.reader.path(), source.reader.records() + 1, source.reader.error()));
    }
    if (source.head.bytes.size() > kPacketBytesMax) {
      source.too_long++;
      source.head.bytes = source.head.bytes.first(kPacketBytesMax);
    }
    for (const Target& target : source.targets) {
      if (!target.filter.matches(source.head)) continue;
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
  for (const Source& source : sources_) sum += source.reader.position();
  return sum;
}

std::uint64_t ReplayInput::file_bytes() const {
  std::uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.reader.file_bytes();
  return sum;
}

void ReplayInput::report(Json& inputs) const {
  inputs = Json::array();
  for (const Source& source : sources_) {
    Json row = {{"file", source.reader.path()},
                {"packets", source.packets},
                {"bytes", source.bytes},
                {"first_ns", source.packets ? source.first - origin_ : 0},
                {"last_ns", source.packets ? source.last - origin_ : 0},
                {"snapped", source.snapped},
                {"unselected", source.unselected},
                {"too_long", source.too_long},
                {"time_went_back", source.time_went_back},
                {"cut", source.cut}};
    if (source.cut)
      row["note"] = fmt::format("the file ends inside record {}; all before it was used", source.reader.records() + 1);
    inputs.push_back(std::move(row));
  }
}

}  // namespace rocebox
