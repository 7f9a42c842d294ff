// SPDX-License-Identifier: BSD-3-Clause
// Names of nodes that are numbered through, written as a range: `h0..h15`.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::config {

/// Puts all names from the first to the last in the place of each item of `names` that has `..` in it. False: one of
/// them is no range, is left out, and `field`, whose items they are, is refused. `items`: of the list, that of each
/// name.
bool expand_ranges(Fields& f, std::string_view field, std::vector<std::string>& names,
                   std::vector<std::size_t>* items = nullptr);

}  // namespace rocebox::config
