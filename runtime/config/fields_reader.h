// SPDX-License-Identifier: BSD-3-Clause
// FieldsReader: fills config structs from YAML, strictly; every mistake is reported with its place.
#pragma once
#include <string>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/component/option_values.h"
#include "runtime/config/document.h"

namespace rocebox::config {

/// Fields, and what only the top of a configuration needs: mappings whose keys are names of the user's choice.
class ConfigFields : public Fields {
 public:
  /// A mapping from names to mappings. `entry` is called for each name; in schemas once, with the name `*`.
  virtual void named(std::string_view name, std::string_view doc, const std::vector<std::string>& names,
                     const std::function<void(ConfigFields&, const std::string& key)>& entry) = 0;
  /// The options of a component of that kind whose type the configuration names; in schemas: of any type.
  virtual void component_options(std::string_view kind, const std::function<void(Fields&)>& options) = 0;
  /// As group(), which must be written to mean anything: where it is not, its fields are not asked for.
  virtual void alternative(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) {
    group(name, doc, fields);
  }
  /// As group(), of what only the top has.
  virtual void section(std::string_view name, std::string_view doc,
                       const std::function<void(ConfigFields&)>& fields) = 0;
  /// A mapping from names to values of any kind, which others read.
  virtual void values_by_name(std::string_view name, std::string_view doc) = 0;
  /// Keys that no field has asked for are no mistake here (the mistake was reported otherwise).
  virtual void accept_rest() {}
};

class FieldsReader final : public ConfigFields {
 public:
  /// Reads from `node`, which may be null (nothing was written: all defaults). `follow` false: no file is opened.
  FieldsReader(const Node* node, Mistakes& mistakes, bool follow = true);
  /// Reports keys that no field asked for. Call once, after the fields.
  void finish();

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
  void file(std::string_view name, InputFile& value, std::string_view doc) override;
  void texts(std::string_view name, std::vector<std::string>& values, std::string_view doc) override;
  void choice(std::string_view name, int& index, std::span<const std::string_view> words,
              std::string_view doc) override;
  void group(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) override;
  void items(std::string_view name, std::string_view doc, std::size_t count, std::size_t count_max,
             const std::function<void(Fields&, std::size_t)>& item) override;
  void named(std::string_view name, std::string_view doc, const std::vector<std::string>& names,
             const std::function<void(ConfigFields&, const std::string&)>& entry) override;
  void component_options(std::string_view, const std::function<void(Fields&)>& options) override { options(*this); }
  void alternative(std::string_view name, std::string_view doc, const std::function<void(Fields&)>& fields) override {
    if (use(name)) group(name, doc, fields);
  }
  void section(std::string_view name, std::string_view doc, const std::function<void(ConfigFields&)>& fields) override;
  void values_by_name(std::string_view name, std::string_view) override {
    use(name, Node::Kind::kMap, "a mapping from names");
  }
  void accept_rest() override { accept_rest_ = true; }
  bool given(std::string_view name) override;
  void refuse(std::string_view name, std::string_view why) override;
  void exclude(std::string_view name, std::string_view why) override;
  void has_effect(std::string_view name, bool has, std::string_view choice, std::string_view why) override;
  void refuse_in(std::string_view name, const InputFile& file, int line, int column, std::string_view why) override;
  const OptionValues& values() const override { return values_; }

  /// Where the value of a field stands (the mapping itself when it was not written).
  Place place_of(std::string_view name) const;
  const Node* node() const { return node_; }

 private:
  bool keeps_items() const override { return true; }
  OptionValue& record(std::string_view name, OptionValue::Kind kind);
  void record(std::string_view name, std::string text) {
    record(name, OptionValue::Kind::kPlain).text = std::move(text);
  }
  void read_texts(std::string_view name, const Node& node, std::vector<std::string>& values);
  void read_choice(std::string_view name, int& index, std::span<const std::string_view> words);
  const Node* find(std::string_view name) const;
  const Node* use(std::string_view name);
  const Node* use(std::string_view name, Node::Kind kind, std::string_view expected);
  template <class T, class Parse, class Format>
  void number(std::string_view name, T& value, Range<T> range, std::string_view expected, Parse parse, Format format);
  template <class T, class Parse, class Format>
  void address_like(std::string_view name, std::optional<T>& value, Presence presence, std::string_view expected,
                    Parse parse, Format format);

  const Node* node_;
  Mistakes& mistakes_;
  std::vector<std::string> known_;
  OptionValues values_;
  bool accept_rest_ = false, follow_;
};

}  // namespace rocebox::config
