// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/name_ranges.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "runtime/topology/graph.h"

namespace rocebox::config {
namespace {

struct Numbered {
  std::string_view stem, digits;
  std::uint32_t number = 0;
};

std::optional<Numbered> numbered(std::string_view name) {
  Numbered all;
  const std::size_t last = name.find_last_not_of("0123456789");
  all.stem = name.substr(0, last == std::string_view::npos ? 0 : last + 1);
  all.digits = name.substr(all.stem.size());
  const char* const end = all.digits.data() + all.digits.size();
  const auto [stop, error] = std::from_chars(all.digits.data(), end, all.number);
  if (all.digits.empty() || error != std::errc() || stop != end) return std::nullopt;
  return all;
}

// What is wrong with a range, behind the words "names `h0..x1`, which"; empty: nothing, and its names are behind
// `names`.
std::string expand(std::string_view first, std::string_view last, std::vector<std::string>& names) {
  const std::optional<Numbered> from = numbered(first), to = numbered(last);
  if (!from || !to) return "needs a name that ends in a number on both sides, as `h0..h15` has";
  if (from->stem != to->stem)
    return fmt::format("has names of two kinds, `{}` and `{}`, of which a range has one", from->stem, to->stem);
  if (from->number > to->number) return fmt::format("runs backwards: write `{}..{}`", last, first);
  if (names.size() + (to->number - from->number) >= topology::kNodesOfTopologyMax)
    return fmt::format("makes more than the {} names that a topology may have", topology::kNodesOfTopologyMax);
  // `h00..h15`: as many digits as the first one has.
  for (std::uint32_t number = from->number; number <= to->number; number++)
    names.push_back(fmt::format("{}{:0{}}", from->stem, number, from->digits.size()));
  return {};
}

}  // namespace

bool expand_ranges(Fields& f, std::string_view field, std::vector<std::string>& names,
                   std::vector<std::size_t>* items) {
  std::vector<std::string> all;
  bool good = true;
  for (std::size_t item = 0; item < names.size(); item++) {
    const std::string& name = names[item];
    if (const std::size_t dots = name.find(".."); dots == std::string::npos) {
      all.push_back(name);
    } else if (const std::string wrong = expand(name.substr(0, dots), name.substr(dots + 2), all); !wrong.empty()) {
      f.refuse(field, fmt::format("names `{}`, which {}", name, wrong));
      good = false;
    }
    if (items) items->resize(all.size(), item);
  }
  names = std::move(all);
  return good;
}

}  // namespace rocebox::config
