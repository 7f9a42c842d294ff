// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "runtime/config/units.h"
#include "runtime/drives/live/recording.h"

namespace rocebox {
namespace {

[[noreturn]] void refuse(const std::string& key, const char* needed) {
  throw ConfigError(fmt::format("`{}` needs {}", key, needed));
}

std::vector<std::string> texts(const std::string& key, const Json& value) {
  std::vector<std::string> list;
  if (!value.is_array()) refuse(key, "a list of texts");
  for (const Json& item : value) {
    if (!item.is_string()) refuse(key, "a list of texts");
    list.push_back(item.get<std::string>());
  }
  return list;
}

std::uint64_t number(const std::string& key, const Json& value, std::uint64_t most) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw ConfigError(fmt::format("`{}` needs a whole number up to {}", key, most));
  return value.get<std::uint64_t>();
}

Nanos duration_of(const std::string& key, const Json& value) {
  const auto parsed = value.is_string() ? config::parse_duration(value.get<std::string>()) : std::nullopt;
  if (!parsed) refuse(key, "a time such as \"10s\"");
  return *parsed;
}

}  // namespace

RecordingRequest RecordingRequest::parse(bool trace, const std::string& json) {
  RecordingRequest request;
  request.trace = trace;
  const Json object = Json::parse(json, nullptr, false);
  if (!object.is_object()) throw ConfigError("the parameters are a JSON object, such as {\"files\":[\"x.pcapng\"]}");
  for (const auto& [key, value] : object.items()) {
    if (key == "filter") {
      if (!value.is_string()) refuse(key, "a text");
      request.filter = value.get<std::string>();
    } else if (key == "files") {
      request.files = texts(key, value);
    } else if (key == "names") {
      request.names = texts(key, value);
    } else if (key == "ports" && !trace) {
      request.ports = texts(key, value);
    } else if (key == "drops" && !trace) {
      request.drops = texts(key, value);
    } else if (key == "count") {
      request.count = number(key, value, INT64_MAX);
    } else if (key == "snap_bytes") {
      request.snap_bytes = static_cast<std::uint32_t>(number(key, value, kPacketBytesMax));
    } else if (key == "duration") {
      request.duration = duration_of(key, value);
    } else {
      throw ConfigError(fmt::format("unknown word `{}`; known: filter, files, names, {}count, snap_bytes, duration",
                                    key, trace ? "" : "ports, drops, "));
    }
  }
  return request;
}

}  // namespace rocebox
