// SPDX-License-Identifier: BSD-3-Clause
// Names of nodes that are numbered through, written as a range: `h0..h15`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::config {

/// All names from one to another, numbered with as many digits as the first one has; or one name, which is any text
/// without "..".
class NameRange {
 public:
  explicit NameRange(std::string_view text);
  /// Why the text is no range, behind the name of a field: "names `h0..x1`, which ..."; empty: it is one.
  const std::string& wrong() const { return wrong_; }
  std::size_t size() const { return wrong_.empty() ? last_ - first_ + 1 : 0; }
  std::string operator[](std::size_t number) const;

 private:
  std::string read(std::string_view first, std::string_view last);

  std::string stem_, wrong_;
  std::size_t first_ = 0, last_ = 0, digits_ = 0;  // no digits: the stem is the name
};

/// Puts all names of a range in the place of each item of `names` that is one. False: one of them is none, is left out,
/// and `field`, whose items they are, is refused. `items`: of the list, that of each name.
bool expand_ranges(Fields& f, std::string_view field, std::vector<std::string>& names,
                   std::vector<std::size_t>* items = nullptr);

}  // namespace rocebox::config
