// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/component/option_values.h"

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
        for (std::size_t i = 0; i < value.entries.size(); i++) add(flat, value.entries[i], indexed(i) + ".", true);
    }
  }
}

}  // namespace

FlatValues flatten(const OptionValues& values, const std::string& prefix) {
  FlatValues flat;
  add(flat, values, prefix, false);
  return flat;
}

}  // namespace rocebox
