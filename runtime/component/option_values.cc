// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/option_values.h"

#include <algorithm>

namespace rocebox {
namespace {

void add(FlatValues& flat, const OptionValues& values, const std::string& prefix, bool only_given) {
  for (const OptionValue& value : values) {
    if (!value.given && (only_given || value.kind == OptionValue::Kind::kGroup)) continue;
    const std::string path = prefix + value.name;
    const auto indexed = [&path](std::size_t i) { return path + "[" + std::to_string(i) + "]"; };
    switch (value.kind) {
      case OptionValue::Kind::kPlain:
      case OptionValue::Kind::kText:
        flat.emplace_back(path, value.text);
        break;
      case OptionValue::Kind::kTexts:
        if (value.texts.empty()) flat.emplace_back(path, "");
        for (std::size_t i = 0; i < value.texts.size(); i++) flat.emplace_back(indexed(i), value.texts[i]);
        break;
      case OptionValue::Kind::kGroup:
        if (value.entries[0].empty()) flat.emplace_back(path, "");
        add(flat, value.entries[0], path + ".", false);
        break;
      case OptionValue::Kind::kItems:
        if (value.entries.empty() && value.given) flat.emplace_back(path, "");
        for (std::size_t i = 0; i < value.entries.size(); i++) add(flat, value.entries[i], indexed(i) + ".", true);
    }
  }
}

void add_all(FlatValues& flat, const OptionValues& values, const std::string& prefix) {
  for (const OptionValue& value : values) {
    const std::string path = prefix + value.name;
    std::string text = value.text;
    if (value.kind == OptionValue::Kind::kTexts)
      for (const std::string& one : value.texts) text += one + '\n';
    if (value.kind == OptionValue::Kind::kItems) text = std::to_string(value.entries.size());
    if (value.kind != OptionValue::Kind::kGroup) flat.emplace_back(path, std::move(text));
    for (std::size_t i = 0; i < value.entries.size(); i++) {
      const bool is_group = value.kind == OptionValue::Kind::kGroup;
      add_all(flat, value.entries[i], path + (is_group ? "." : "[" + std::to_string(i) + "]."));
    }
  }
}

}  // namespace

std::vector<std::string> files_of(const OptionValues& values) {
  std::vector<std::string> files;
  for (const OptionValue& value : values) {
    if (value.is_file && !value.text.empty()) files.push_back(value.text);
    for (const OptionValues& entry : value.entries)
      for (std::string& file : files_of(entry)) files.push_back(std::move(file));
  }
  return files;
}

FlatValues flatten_all(const OptionValues& values, const std::string& prefix) {
  FlatValues flat;
  add_all(flat, values, prefix);
  return flat;
}

bool is_within(std::string_view path, std::string_view name) {
  return path.starts_with(name) && (path.size() == name.size() || path[name.size()] == '[' || path[name.size()] == '.');
}

std::string first_difference(const FlatValues& before, const FlatValues& after) {
  const auto [left, right] = std::ranges::mismatch(before, after);
  if (left != before.end()) return left->first;
  return right != after.end() ? right->first : "";
}

FlatValues flatten(const OptionValues& values, const std::string& prefix) {
  FlatValues flat;
  add(flat, values, prefix, false);
  return flat;
}

}  // namespace rocebox
