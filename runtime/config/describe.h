// SPDX-License-Identifier: BSD-3-Clause
// What the declared fields say without a configuration: tables of options and JSON Schema.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/component/registry.h"
#include "runtime/config/fields_reader.h"

namespace rocebox::config {

/// One option, as `rocebox kernels NAME` shows it.
struct OptionRow {
  std::string name;      ///< with its group: `forward.loss`, `events[].psn`
  std::string type;      ///< duration, rate, bytes, share, integer, boolean, mac, address, prefix, text, list of
                         ///< texts, a|b|c, duration|a
  std::string range;     ///< "0ns .. 10s"; empty when there is none
  std::string fallback;  ///< the default, as it would be written
  std::string doc;
};

/// Collects rows from a fields() function.
class FieldsTable final : public ConfigFields {
 public:
  explicit FieldsTable(std::vector<OptionRow>& rows, std::string prefix = "")
      : rows_(rows), prefix_(std::move(prefix)) {}

  void boolean(std::string_view name, bool& value, std::string_view doc) override;
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view doc) override;
  void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) override;
  void duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise, Range<Nanos> range,
                   std::string_view doc) override;
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override;
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override;
  void fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) override;
  void mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view doc) override;
  void address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
               std::string_view doc) override;
  void prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
              std::string_view doc) override;
  void text(std::string_view name, std::string& value, std::string_view doc) override;
  void texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) override;
  void choice(std::string_view name, int& index, std::span<const std::string_view> words,
              std::string_view doc) override;
  void group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) override;
  void items(std::string_view name, std::string_view doc, std::size_t count, std::size_t count_max,
             const std::function<void(Fields&, std::size_t)>& item) override;
  void named(std::string_view name, std::string_view doc, const std::vector<std::string>& names,
             const std::function<void(ConfigFields&, const std::string&)>& entry) override;
  void component_options(std::string_view, const std::function<void(Fields&)>&) override {}
  void section(std::string_view name, std::string_view doc, const std::function<void(ConfigFields&)>& fields) override;
  void values_by_name(std::string_view name, std::string_view doc) override { row(name, "mapping", "", "", doc); }
  bool given(std::string_view) override { return false; }
  void refuse(std::string_view, std::string_view) override {}

 private:
  void row(std::string_view name, std::string type, std::string range, std::string fallback, std::string_view doc);
  void address_row(std::string_view name, std::string type, std::string value, Presence presence, std::string_view doc);
  std::vector<OptionRow>& rows_;
  std::string prefix_;
};

/// Every option of a component, with its default.
std::vector<OptionRow> describe(const Component& component, const Registry& registry);

/// Writes a JSON Schema (draft 2020-12) object for a fields() function: properties, types, patterns, defaults.
class FieldsSchema final : public ConfigFields {
 public:
  explicit FieldsSchema(nlohmann::ordered_json& object, const Registry* registry = nullptr);

  void boolean(std::string_view name, bool& value, std::string_view doc) override;
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view doc) override;
  void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view doc) override;
  void duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise, Range<Nanos> range,
                   std::string_view doc) override;
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override;
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view doc) override;
  void fraction(std::string_view name, double& value, Range<double> range, std::string_view doc) override;
  void mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view doc) override;
  void address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
               std::string_view doc) override;
  void prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
              std::string_view doc) override;
  void text(std::string_view name, std::string& value, std::string_view doc) override;
  void texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) override;
  void choice(std::string_view name, int& index, std::span<const std::string_view> words,
              std::string_view doc) override;
  void group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) override;
  void items(std::string_view name, std::string_view doc, std::size_t count, std::size_t count_max,
             const std::function<void(Fields&, std::size_t)>& item) override;
  void named(std::string_view name, std::string_view doc, const std::vector<std::string>& names,
             const std::function<void(ConfigFields&, const std::string&)>& entry) override;
  /// Any type of that kind: one alternative each, told apart by `type`.
  void component_options(std::string_view kind, const std::function<void(Fields&)>& options) override;
  void section(std::string_view name, std::string_view doc, const std::function<void(ConfigFields&)>& fields) override;
  void values_by_name(std::string_view name, std::string_view doc) override;
  bool given(std::string_view) override { return false; }
  void refuse(std::string_view, std::string_view) override {}

 private:
  nlohmann::ordered_json& property(std::string_view name, std::string_view doc);
  void address_property(std::string_view name, const std::string& pattern, const std::string& value, Presence presence,
                        std::string_view doc);
  nlohmann::ordered_json& object_;
  const Registry* registry_;
};

}  // namespace rocebox::config
