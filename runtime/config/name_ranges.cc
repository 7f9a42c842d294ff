// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/name_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/topology/graph.h"

namespace rocebox::config {
namespace {

// A short range could stand for many long names.
constexpr std::size_t kRangeBytesMax = 128;
constexpr std::size_t kToldBytes = 80;  // of one that is wrong

std::string_view digits_of(std::string_view name) {
  const std::size_t last = name.find_last_not_of("0123456789");
  return last == std::string_view::npos ? name : name.substr(last + 1);
}

}  // namespace

NameRange::NameRange(std::string_view text) : stem_(text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) return;
  if (const std::string why = read(text.substr(0, dots), text.substr(dots + 2)); !why.empty())
    wrong_ = fmt::format("names `{}`, which {}", text.substr(0, kToldBytes), why);
}

std::string NameRange::read(std::string_view first, std::string_view last) {
  if (first.size() + last.size() > kRangeBytesMax) return "has names that are too long for a range";
  const std::string_view from = digits_of(first), to = digits_of(last);
  if (from.empty() || to.empty()) return "needs a name that ends in a number on both sides, as `h0..h15` has";
  stem_ = first.substr(0, first.size() - from.size());
  if (stem_ != last.substr(0, last.size() - to.size())) return "has two names that differ before their numbers";
  std::uint32_t low = 0, high = 0;
  if (std::from_chars(from.begin(), from.end(), low).ec != std::errc() ||
      std::from_chars(to.begin(), to.end(), high).ec != std::errc())
    return "has a number that is too large";
  if (low > high) return fmt::format("runs backwards: write `{}..{}`", last, first);
  first_ = low;
  last_ = high;
  digits_ = from.size();
  if (last_ - first_ >= topology::kNodesOfTopologyMax)
    return fmt::format("has more names than the {} that a topology may have", topology::kNodesOfTopologyMax);
  if ((*this)[last_ - first_] != last) return "has numbers of two widths: `h00..h15` or `h0..h15`";
  return {};
}

std::string NameRange::operator[](std::size_t number) const {
  return digits_ == 0 ? stem_ : fmt::format("{}{:0{}}", stem_, first_ + number, digits_);
}

bool expand_ranges(Fields& f, std::string_view field, std::vector<std::string>& names,
                   std::vector<std::size_t>* items) {
  std::vector<std::string> all;
  bool good = true;
  for (std::size_t item = 0; item < names.size(); item++) {
    const NameRange range(names[item]);
    std::string wrong = range.wrong();
    if (range.size() > 1 && all.size() + range.size() > topology::kNodesOfTopologyMax)
      wrong = fmt::format("names `{}`, which with those before it has more than the {} that a topology may have",
                          names[item], topology::kNodesOfTopologyMax);
    if (!wrong.empty()) {
      f.refuse(field, wrong);
      good = false;
      continue;
    }
    for (std::size_t i = 0; i < range.size(); i++) all.push_back(range[i]);
    if (items) items->resize(all.size(), item);
  }
  names = std::move(all);
  return good;
}

}  // namespace rocebox::config
