// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/describe.h"

#include <fmt/format.h>

#include "runtime/config/units.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::config {
namespace {

template <class T, class Format>
std::string range_text(Range<T> range, Format format) {
  return fmt::format("{} .. {}", format(range.low), format(range.high));
}
std::string plain(std::int64_t value) { return fmt::format("{}", value); }

template <class T, class Format>
std::string text_of(const std::optional<T>& value, Format format) {
  return value ? format(*value) : "";
}

}  // namespace

void FieldsTable::row(std::string_view name, std::string type, std::string range, std::string fallback,
                      std::string_view doc) {
  rows_.push_back(
      {prefix_ + std::string(name), std::move(type), std::move(range), std::move(fallback), std::string(doc)});
}
void FieldsTable::boolean(std::string_view name, bool& value, std::string_view doc) {
  row(name, "boolean", "", value ? "true" : "false", doc);
}
void FieldsTable::integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view doc) {
  row(name, "integer", range_text(range, plain), plain(value), doc);
}
void FieldsTable::duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) {
  row(name, "duration", range_text(range, format_duration), format_duration(value), doc);
}
void FieldsTable::duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise,
                              Range<Nanos> range, std::string_view doc) {
  row(name, fmt::format("duration|{}", otherwise), range_text(range, format_duration),
      value ? format_duration(*value) : std::string(otherwise), doc);
}
void FieldsTable::rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) {
  row(name, "rate", range_text(range, format_rate), format_rate(value), doc);
}
void FieldsTable::bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) {
  row(name, "bytes", range_text(range, format_bytes), format_bytes(value), doc);
}
void FieldsTable::fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) {
  row(name, "share", range_text(range, format_fraction), format_fraction(value), doc);
}
void FieldsTable::address_row(std::string_view name, std::string type, std::string value, Presence presence,
                              std::string_view doc) {
  if (value.empty() && presence == Presence::kRequired) value = "required";
  row(name, std::move(type), "", std::move(value), doc);
}
void FieldsTable::mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view doc) {
  address_row(name, "mac", text_of(value, roce::mac_text), presence, doc);
}
void FieldsTable::address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
                          std::string_view doc) {
  address_row(name, "address", text_of(value, roce::address_text), presence, doc);
}
void FieldsTable::prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
                         std::string_view doc) {
  address_row(name, "prefix", text_of(value, roce::prefix_text), presence, doc);
}
void FieldsTable::text(std::string_view name, std::string& value, std::string_view doc) {
  row(name, "text", "", value, doc);
}
void FieldsTable::texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) {
  row(name, "list of texts", "", fmt::format("{}", fmt::join(values, ", ")), doc);
}
void FieldsTable::choice(std::string_view name, int& index, std::span<const std::string_view> words,
                         std::string_view doc) {
  row(name, fmt::format("{}", fmt::join(words, "|")), "",
      index < 0 ? "required" : std::string(words[static_cast<std::size_t>(index)]), doc);
}
void FieldsTable::group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) {
  row(name, "group", "", "", doc);
  FieldsTable nested(rows_, prefix_ + std::string(name) + ".");
  fields(nested);
}
void FieldsTable::items(std::string_view name, std::string_view doc, std::size_t, std::size_t count_max,
                        const std::function<void(Fields&, std::size_t)>& item) {
  row(name, "list", fmt::format("at most {}", count_max), "", doc);
  FieldsTable nested(rows_, prefix_ + std::string(name) + "[].");
  item(nested, SIZE_MAX);
}
void FieldsTable::named(std::string_view name, std::string_view doc, const std::vector<std::string>&,
                        const std::function<void(ConfigFields&, const std::string&)>& entry) {
  row(name, "mapping", "", "", doc);
  FieldsTable nested(rows_, prefix_ + std::string(name) + ".*.");
  entry(nested, "*");
}

void FieldsTable::section(std::string_view name, std::string_view doc,
                          const std::function<void(ConfigFields&)>& fields) {
  row(name, "group", "", "", doc);
  FieldsTable nested(rows_, prefix_ + std::string(name) + ".");
  fields(nested);
}

std::vector<OptionRow> describe(const Component& component, const Registry& registry) {
  std::vector<OptionRow> rows;
  FieldsTable table(rows);
  component.options(registry)->fields(table);
  return rows;
}

FieldsSchema::FieldsSchema(nlohmann::ordered_json& object, const Registry* registry)
    : object_(object), registry_(registry) {
  object_["type"] = "object";
  object_["additionalProperties"] = false;
  if (!object_.contains("properties")) object_["properties"] = nlohmann::ordered_json::object();
}

nlohmann::ordered_json& FieldsSchema::property(std::string_view name, std::string_view doc) {
  auto& property = object_["properties"][std::string(name)];
  property = nlohmann::ordered_json::object();
  property["description"] = doc;
  return property;
}

void FieldsSchema::boolean(std::string_view name, bool& value, std::string_view doc) {
  auto& p = property(name, doc);
  p["type"] = "boolean";
  p["default"] = value;
}
void FieldsSchema::integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range,
                           std::string_view doc) {
  auto& p = property(name, doc);
  p["anyOf"] = {{{"type", "integer"}, {"minimum", range.low}, {"maximum", range.high}},
                {{"type", "string"}, {"pattern", "^0[xX][0-9a-fA-F_]+$"}}};
  p["default"] = value;
}
void FieldsSchema::duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) {
  auto& p = property(name, fmt::format("{} ({})", doc, range_text(range, format_duration)));
  p["anyOf"] = {{{"type", "string"}, {"pattern", "^[0-9._]+ ?(ns|us|ms|s|min)$"}}, {{"const", 0}}};
  p["default"] = format_duration(value);
}
void FieldsSchema::duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise,
                               Range<Nanos> range, std::string_view doc) {
  Nanos shown = value.value_or(range.low);
  duration(name, shown, range, doc);
  auto& p = object_["properties"][std::string(name)];
  p["anyOf"].push_back({{"const", otherwise}});
  if (!value) p["default"] = otherwise;
}
void FieldsSchema::rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) {
  auto& p = property(name, fmt::format("{} ({})", doc, range_text(range, format_rate)));
  p["anyOf"] = {{{"type", "string"}, {"pattern", "^([0-9._]+ ?[kKMGT]?bps|unlimited)$"}}, {{"const", 0}}};
  p["default"] = format_rate(value);
}
void FieldsSchema::bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range,
                         std::string_view doc) {
  auto& p = property(name, fmt::format("{} ({})", doc, range_text(range, format_bytes)));
  p["anyOf"] = {{{"type", "string"}, {"pattern", "^[0-9._]+ ?([kKMG]i?)?B?$"}}, {{"type", "integer"}, {"minimum", 0}}};
  p["default"] = format_bytes(value);
}
void FieldsSchema::fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) {
  auto& p = property(name, fmt::format("{} ({})", doc, range_text(range, format_fraction)));
  p["anyOf"] = {{{"type", "number"}, {"minimum", range.low}, {"maximum", range.high}},
                {{"type", "string"}, {"pattern", "^[0-9.eE+-]+ ?%$"}}};
  p["default"] = value;
}
void FieldsSchema::address_property(std::string_view name, const std::string& pattern, const std::string& value,
                                    Presence presence, std::string_view doc) {
  auto& p = property(name, doc);
  p["type"] = "string";
  p["pattern"] = presence == Presence::kRequired ? "^" + pattern + "$" : "^(" + pattern + ")?$";
  if (!value.empty())
    p["default"] = value;
  else if (presence == Presence::kRequired)
    object_["required"].push_back(name);
}
void FieldsSchema::mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence,
                       std::string_view doc) {
  address_property(name, "([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text_of(value, roce::mac_text), presence, doc);
}
void FieldsSchema::address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
                           std::string_view doc) {
  address_property(name, "[0-9a-fA-F:.]+", text_of(value, roce::address_text), presence, doc);
}
void FieldsSchema::prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
                          std::string_view doc) {
  address_property(name, "[0-9a-fA-F:.]+/[0-9]{1,3}", text_of(value, roce::prefix_text), presence, doc);
}
void FieldsSchema::text(std::string_view name, std::string& value, std::string_view doc) {
  auto& p = property(name, doc);
  p["type"] = {"string", "number", "boolean"};
  if (!value.empty()) p["default"] = value;
}
void FieldsSchema::texts(std::string_view name, std::vector<std::string>&, std::string_view doc) {
  auto& p = property(name, doc);
  p["anyOf"] = {{{"type", "string"}}, {{"type", "array"}, {"items", {{"type", {"string", "number"}}}}}};
}
void FieldsSchema::choice(std::string_view name, int& index, std::span<const std::string_view> words,
                          std::string_view doc) {
  auto& p = property(name, doc);
  p["enum"] = words;
  if (index < 0)
    object_["required"].push_back(name);
  else
    p["default"] = words[static_cast<std::size_t>(index)];
}
void FieldsSchema::group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) {
  FieldsSchema nested(property(name, doc), registry_);
  fields(nested);
}
void FieldsSchema::items(std::string_view name, std::string_view doc, std::size_t, std::size_t count_max,
                         const std::function<void(Fields&, std::size_t)>& item) {
  auto& p = property(name, doc);
  p["type"] = "array";
  p["maxItems"] = count_max;
  FieldsSchema nested(p["items"], registry_);
  item(nested, SIZE_MAX);
}
void FieldsSchema::named(std::string_view name, std::string_view doc, const std::vector<std::string>&,
                         const std::function<void(ConfigFields&, const std::string&)>& entry) {
  auto& p = property(name, doc);
  p["type"] = "object";
  FieldsSchema nested(p["additionalProperties"], registry_);
  entry(nested, "*");
}

void FieldsSchema::section(std::string_view name, std::string_view doc,
                           const std::function<void(ConfigFields&)>& fields) {
  FieldsSchema nested(property(name, doc), registry_);
  fields(nested);
}

void FieldsSchema::values_by_name(std::string_view name, std::string_view doc) {
  property(name, doc)["type"] = "object";
}

void FieldsSchema::component_options(std::string_view kind, const std::function<void(Fields&)>&) {
  if (!registry_ || registry_->of_kind(kind).empty()) return;
  const nlohmann::ordered_json common = object_;
  auto alternatives = nlohmann::ordered_json::array();
  for (const Component* type : registry_->of_kind(kind)) {
    nlohmann::ordered_json alternative = common;
    FieldsSchema nested(alternative);
    type->options(*registry_)->fields(nested);
    alternative["title"] = type->name;
    alternative["properties"]["type"]["const"] = type->name;
    alternatives.push_back(std::move(alternative));
  }
  object_ = {{"anyOf", std::move(alternatives)}};
}

}  // namespace rocebox::config
