// SPDX-License-Identifier: BSD-3-Clause
// What came out when options were filled, as texts, to show and compare configurations.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rocebox {

struct OptionValue;
using OptionValues = std::vector<OptionValue>;

/// One option, group or list, in the order of declaration.
struct OptionValue {
  enum class Kind {
    kPlain,  ///< a word or number, with its unit: `text`
    kText,   ///< any characters: `text`
    kTexts,  ///< a list of these: `texts`
    kGroup,  ///< entries[0]
    kItems,  ///< a list of groups: `entries`
  };
  std::string name;
  Kind kind = Kind::kPlain;
  bool given = false;  ///< it was written, and is not a default
  std::string text{};
  std::vector<std::string> texts{};
  std::vector<OptionValues> entries{};
  bool is_file = false;  ///< of a text: it names a file that is read
};

/// Every file that they name, as written.
std::vector<std::string> files_of(const OptionValues& values);

/// Paths, such as `forward.loss` or `events[0].psn`, with their values. Groups that were not given are off, or repeat
/// what stands above them, and are left out; so are values of list entries that were not given.
using FlatValues = std::vector<std::pair<std::string, std::string>>;
FlatValues flatten(const OptionValues& values, const std::string& prefix = "");
/// All of them, given or not: equal when two configurations come to the same. A list of texts is one value; a list of
/// groups is the number of its entries, and then these.
FlatValues flatten_all(const OptionValues& values, const std::string& prefix = "");

/// Whether `path` is the option `name`, or below it: `forward.routes[0].prefix` is below `forward.routes`.
bool is_within(std::string_view path, std::string_view name);
/// The first option in which two differ; empty: they are equal.
std::string first_difference(const FlatValues& before, const FlatValues& after);

}  // namespace rocebox
