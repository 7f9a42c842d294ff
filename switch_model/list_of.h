// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string_view>
#include <vector>

#include "runtime/kernel/fields.h"

namespace rocebox::switch_model {

/// A list of T in a configuration, each entry shown by `show(Fields&, T&)`: as Fields::list, for entries that need to
/// know more than themselves.
template <class T, class Show>
void list_of(Fields& fields, std::string_view name, std::vector<T>& values, std::size_t count_max, std::string_view doc,
             Show show) {
  fields.items(name, doc, values.size(), count_max, [&](Fields& entry_fields, std::size_t index) {
    if (index < values.size()) return show(entry_fields, values[index]);
    show(entry_fields, values.emplace_back());
  });
}

}  // namespace rocebox::switch_model
