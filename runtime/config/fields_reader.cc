// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/fields_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/component/component.h"
#include "runtime/config/text_file.h"
#include "runtime/config/units.h"
#include "runtime/limits.h"
#include "runtime/process/file_place.h"

namespace rocebox::config {

FieldsReader::FieldsReader(const Node* node, Mistakes& mistakes, bool follow)
    : node_(node), mistakes_(mistakes), follow_(follow) {
  if (node_ && node_->kind == Node::Kind::kNull) node_ = nullptr;
  if (node_ && !node_->is_map()) {
    mistakes_.add(node_->place, fmt::format("expected a mapping, found {}", kind_name(node_->kind)));
    node_ = nullptr;
  }
}

OptionValue& FieldsReader::record(std::string_view name, OptionValue::Kind kind) {
  OptionValue& value = values_.emplace_back();
  value.name = name;
  value.kind = kind;
  value.given = given(name);
  return value;
}

void FieldsReader::finish() {
  if (!node_ || accept_rest_) return;
  for (const Entry& entry : node_->entries)
    if (std::find(known_.begin(), known_.end(), entry.key) == known_.end())
      mistakes_.add(entry.place, fmt::format("unknown key `{}`{}", entry.key,
                                             mistakes_.full() ? "" : suggestion(entry.key, known_)));
}

const Node* FieldsReader::use(std::string_view name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  const Node* value = node_ ? node_->find(name) : nullptr;
  if (value && value->kind == Node::Kind::kNull) {
    mistakes_.add(value->place, fmt::format("`{}` has no value", name));
    return nullptr;
  }
  return value;
}

const Node* FieldsReader::use(std::string_view name, Node::Kind kind, std::string_view expected) {
  const Node* value = use(name);
  if (!value || value->kind == kind) return value;
  mistakes_.add(value->place, fmt::format("`{}` must be {}, found {}", name, expected, kind_name(value->kind)));
  return nullptr;
}

template <class T, class Parse, class Format>
void FieldsReader::number(std::string_view name, T& value, Range<T> range, std::string_view expected, Parse parse,
                          Format format) {
  const Node* node = use(name, Node::Kind::kScalar, expected);
  const auto parsed = node ? parse(node->scalar) : std::nullopt;
  if (!node) {
    // the default
  } else if (!parsed) {
    mistakes_.add(node->place, fmt::format("`{}` must be {}, found `{}`", name, expected, node->scalar));
  } else if (*parsed < range.low || *parsed > range.high) {
    mistakes_.add(node->place, fmt::format("`{}` must be from {} to {}, found `{}`", name, format(range.low),
                                           format(range.high), node->scalar));
  } else {
    value = *parsed;
  }
  record(name, format(value));
}

void FieldsReader::boolean(std::string_view name, bool& value, std::string_view) {
  const Node* node = use(name, Node::Kind::kScalar, "true or false");
  if (!node)
    ;  // the default
  else if (node->scalar == "true" || node->scalar == "yes" || node->scalar == "on")
    value = true;
  else if (node->scalar == "false" || node->scalar == "no" || node->scalar == "off")
    value = false;
  else
    mistakes_.add(node->place, fmt::format("`{}` must be true or false, found `{}`", name, node->scalar));
  record(name, value ? "true" : "false");
}

void FieldsReader::integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view) {
  number(name, value, range, "a whole number", parse_integer, [](std::int64_t v) { return fmt::format("{}", v); });
}
void FieldsReader::duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view) {
  number(name, value, range, "a time with a unit, such as 25ms", parse_duration, format_duration);
}
void FieldsReader::duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise,
                               Range<Nanos> range, std::string_view) {
  const Node* node = node_ ? node_->find(name) : nullptr;
  if (node && (node->kind != Node::Kind::kScalar || node->scalar != otherwise)) {
    Nanos time = value.value_or(range.low);
    number(name, time, range, fmt::format("a time with a unit, such as 25ms, or `{}`", otherwise), parse_duration,
           format_duration);
    value = time;
    return;
  }
  if (use(name)) value.reset();
  record(name, value ? format_duration(*value) : std::string(otherwise));
}
void FieldsReader::rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  number(name, value, range, "a rate with a unit, such as 100Gbps", parse_rate, format_rate);
}
void FieldsReader::bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) {
  number(name, value, range, "a size, such as 64KiB or 1500B", parse_bytes, format_bytes);
}
void FieldsReader::fraction(std::string_view name, double& value, Range<double> range, std::string_view) {
  number(name, value, range, "a share, such as 0.01% or 0.0001", parse_fraction, format_fraction);
}

template <class T, class Parse, class Format>
void FieldsReader::address_like(std::string_view name, std::optional<T>& value, Presence presence,
                                std::string_view expected, Parse parse, Format format) {
  const Node* node = use(name, Node::Kind::kScalar, expected);
  const bool is_written = node && !node->scalar.empty();
  std::string why;
  if (is_written) why = fmt::format("must be {}, found `{}`", expected, node->scalar);
  if (node && !is_written)
    value.reset();
  else if (const auto parsed = is_written ? parse(node->scalar, why) : std::nullopt)
    value = parsed;
  else if (is_written)
    mistakes_.add(node->place, fmt::format("`{}` {}", name, why));
  // What was written and is none has been reported.
  if (presence == Presence::kRequired && !value && !is_written && (node || !given(name)))
    refuse(name, fmt::format("must be given: {}", expected));
  record(name, OptionValue::Kind::kText).text = value ? format(*value) : "";
}

void FieldsReader::mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view) {
  address_like(
      name, value, presence, "a MAC address, such as 02:00:00:00:00:01",
      [](const std::string& text, std::string&) { return roce::parse_mac(text); }, roce::mac_text);
}
void FieldsReader::address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
                           std::string_view) {
  address_like(
      name, value, presence, "an IPv4 or IPv6 address, such as 10.0.0.1 or 2001:db8::1",
      [](const std::string& text, std::string&) { return roce::parse_address(text); }, roce::address_text);
}
void FieldsReader::prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence,
                          std::string_view) {
  address_like(name, value, presence, "a prefix, such as 10.0.0.0/24 or 2001:db8::/64", roce::parse_prefix,
               roce::prefix_text);
}

void FieldsReader::text(std::string_view name, std::string& value, std::string_view) {
  if (const Node* node = use(name, Node::Kind::kScalar, "a text")) value = node->scalar;
  record(name, OptionValue::Kind::kText).text = value;
}

void FieldsReader::file(std::string_view name, InputFile& value, std::string_view) {
  const Node* node = use(name, Node::Kind::kScalar, "the name of a file");
  value = {};
  if (node) value.path = node->scalar;
  OptionValue& recorded = record(name, OptionValue::Kind::kText);
  recorded.text = value.path;
  recorded.is_file = true;
  if (value.path.empty() || !follow_) return;
  try {
    value.text = read_text_file(beside(mistakes_.file(), value.path), Pipes::kRefused, kInputFileBytesMax);
    value.is_read = true;
  } catch (const ConfigError& error) {
    mistakes_.add(node->place, fmt::format("`{}`: {}", name, error.what()));
  }
}

void FieldsReader::refuse_in(std::string_view, const InputFile& file, int line, int column, std::string_view why) {
  Mistakes own(shown_file(beside(mistakes_.file(), file.path)));
  own.add({line, column}, std::string(why));
  mistakes_.add(own);
}

void FieldsReader::texts(std::string_view name, std::vector<std::string>& values, std::string_view) {
  if (const Node* node = use(name)) read_texts(name, *node, values);
  record(name, OptionValue::Kind::kTexts).texts = values;
}

void FieldsReader::read_texts(std::string_view name, const Node& node, std::vector<std::string>& values) {
  values.clear();
  if (node.kind == Node::Kind::kScalar) {
    values.push_back(node.scalar);
    return;
  }
  if (node.kind != Node::Kind::kList) {
    mistakes_.add(node.place,
                  fmt::format("`{}` must be a text or a list of texts, found {}", name, kind_name(node.kind)));
    return;
  }
  for (const Node& item : node.items) {
    if (item.kind == Node::Kind::kScalar)
      values.push_back(item.scalar);
    else
      mistakes_.add(item.place, fmt::format("an entry of `{}` must be a text, found {}", name, kind_name(item.kind)));
  }
}

void FieldsReader::choice(std::string_view name, int& index, std::span<const std::string_view> words,
                          std::string_view) {
  read_choice(name, index, words);
  if (index >= 0) record(name, std::string(words[static_cast<std::size_t>(index)]));
}

void FieldsReader::read_choice(std::string_view name, int& index, std::span<const std::string_view> words) {
  const Node* node = use(name, Node::Kind::kScalar, "a word");
  if (!node) {
    if (index < 0 && node_ && !node_->find(name))
      mistakes_.add(node_->place, fmt::format("`{}` must be given: one of {}", name, fmt::join(words, ", ")));
    return;
  }
  const auto found = std::find(words.begin(), words.end(), node->scalar);
  if (found != words.end()) {
    index = static_cast<int>(found - words.begin());
    return;
  }
  const std::vector<std::string> known(words.begin(), words.end());
  const std::string_view near = nearest(node->scalar, known);
  mistakes_.add(node->place, fmt::format("`{}` must be one of {}, found `{}`{}", name, fmt::join(words, ", "),
                                         node->scalar, near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
}

void FieldsReader::group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) {
  FieldsReader nested(use(name, Node::Kind::kMap, "a mapping"), mistakes_, follow_);
  fields(nested);
  nested.finish();
  record(name, OptionValue::Kind::kGroup).entries.push_back(std::move(nested.values_));
}

void FieldsReader::section(std::string_view name, std::string_view, const std::function<void(ConfigFields&)>& fields) {
  const Node* node = use(name, Node::Kind::kMap, "a mapping");
  if (!node) return;
  FieldsReader nested(node, mistakes_, follow_);
  fields(nested);
  nested.finish();
}

void FieldsReader::items(std::string_view name, std::string_view, std::size_t, std::size_t count_max,
                         const std::function<void(Fields&, std::size_t)>& item) {
  const Node* node = use(name, Node::Kind::kList, "a list");
  OptionValue value{std::string(name), OptionValue::Kind::kItems, given(name)};
  if (!node) {
    values_.push_back(std::move(value));
    return;
  }
  if (node->items.size() > count_max) {
    mistakes_.add(node->place,
                  fmt::format("`{}` has {} entries, at most {} are possible", name, node->items.size(), count_max));
    return;
  }
  for (const Node& entry : node->items) {
    FieldsReader nested(&entry, mistakes_, follow_);
    item(nested, SIZE_MAX);  // a fresh entry
    nested.finish();
    value.entries.push_back(std::move(nested.values_));
  }
  values_.push_back(std::move(value));
}

void FieldsReader::named(std::string_view name, std::string_view, const std::vector<std::string>&,
                         const std::function<void(ConfigFields&, const std::string&)>& entry) {
  const Node* node = use(name, Node::Kind::kMap, "a mapping from names");
  if (!node) return;
  if (node->entries.size() > kConfigNamesMax) {
    mistakes_.add(node->place, fmt::format("`{}` has {} entries, at most {} are possible", name, node->entries.size(),
                                           kConfigNamesMax));
    return;
  }
  for (const Entry& row : node->entries) {
    FieldsReader nested(&row.value, mistakes_, follow_);
    entry(nested, row.key);
    nested.finish();
  }
}

// `group.field`, too.
const Node* FieldsReader::find(std::string_view name) const {
  const Node* value = node_ ? node_->find(name) : nullptr;
  if (const std::size_t dot = name.find('.'); node_ && !value && dot != name.npos) {
    const Node* group = node_->find(name.substr(0, dot));
    if (group && group->is_map()) value = group->find(name.substr(dot + 1));
  }
  return value;
}

bool FieldsReader::given(std::string_view name) { return find(name); }

Place FieldsReader::place_of(std::string_view name) const {
  if (!node_) return {};
  const Node* value = find(name);
  return value ? value->place : node_->place;
}

void FieldsReader::refuse(std::string_view name, std::string_view why) {
  mistakes_.add(place_of(name), fmt::format("`{}` {}", name, why));
}

void FieldsReader::exclude(std::string_view name, std::string_view why) {
  if (given(name)) return refuse(name, why);
  std::erase_if(values_, [&](const OptionValue& value) { return value.name == name; });
}

void FieldsReader::has_effect(std::string_view name, bool has, std::string_view choice, std::string_view why) {
  if (!given(name)) return;
  if (has || place_of(choice).setting != 0)
    mistakes_.add_effect(place_of(name));
  else
    mistakes_.add_idle(place_of(name), fmt::format("`{}` {}", name, why));
}

}  // namespace rocebox::config
