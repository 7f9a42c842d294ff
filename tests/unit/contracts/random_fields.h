// SPDX-License-Identifier: BSD-3-Clause
// RandomFields: draws options of a component from the fields that it declares, so that what is tested goes beyond the
// examples, and a component that is new takes part by itself.
#pragma once
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::test {

/// Leaves most fields at their default and draws the others from their range, small values more often: log-uniformly.
/// Addresses are mostly those of the traffic that tests send. Texts and lists of texts keep their default.
class RandomFields final : public Fields {
 public:
  /// What ranges are narrowed to: beyond it simulated time runs for years and shows nothing more.
  struct Limits {
    unsigned one_in = 6;  ///< of so many fields is drawn
    std::uint64_t rate_min = 1000;
    Nanos duration_max = std::numeric_limits<Nanos>::max();
    /// A default beyond one of these is drawn anew, too.
    std::int64_t integer_max = std::numeric_limits<std::int64_t>::max();
    std::uint64_t bytes_max = std::numeric_limits<std::int64_t>::max();
    unsigned items_one_in = 4;                ///< of so many lists has entries
    std::vector<std::string_view> kept = {};  ///< fields that keep their default
    /// Numbers, sizes and times of these names are drawn from what stands here; times in nanoseconds.
    std::map<std::string_view, std::vector<std::int64_t>> values = {};
  };

  explicit RandomFields(std::uint64_t seed) : RandomFields(seed, Limits()) {}
  RandomFields(std::uint64_t seed, const Limits& limits) : limits_(limits), random_(seed) {}

  /// The combination is one that the component does not take.
  bool refused() const { return refused_; }
  /// What was drawn, as a user would write it: a mapping in flow style, `{}` when all is left at its default.
  std::string yaml() const { return "{" + text_ + "}"; }

  void boolean(std::string_view name, bool& value, std::string_view) override;
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view) override;
  void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view) override;
  void duration_or(std::string_view name, std::optional<Nanos>& value, std::string_view otherwise, Range<Nanos> range,
                   std::string_view) override;
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override;
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override;
  void fraction(std::string_view name, double& value, Range<double> range, std::string_view) override;
  void mac(std::string_view name, std::optional<roce::Mac>& value, Presence presence, std::string_view) override;
  void address(std::string_view name, std::optional<roce::IpAddress>& value, Presence presence,
               std::string_view) override;
  void prefix(std::string_view name, std::optional<roce::Prefix>& value, Presence presence, std::string_view) override;
  void text(std::string_view, std::string&, std::string_view) override {}
  void texts(std::string_view, std::vector<std::string>&, std::string_view) override {}
  void choice(std::string_view name, int& index, std::span<const std::string_view> words, std::string_view) override;
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override;
  void items(std::string_view name, std::string_view, std::size_t, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override;
  bool given(std::string_view name) override { return written_.contains(std::string(name)); }
  void refuse(std::string_view, std::string_view) override { refused_ = true; }

 private:
  bool keeps_items() const override { return true; }
  bool chosen() { return random_() % limits_.one_in == 0; }
  bool is_kept(std::string_view name) const { return std::ranges::find(limits_.kept, name) != limits_.kept.end(); }
  // An address that must come out, and has no default, is always drawn.
  template <class T>
  bool chosen(std::string_view name, const std::optional<T>& value, Presence presence) {
    return (chosen() || (!value && presence == Presence::kRequired)) && !is_kept(name);
  }
  // Whether a number is drawn, whose range is narrowed to `high`.
  template <class T>
  bool chosen(std::string_view name, T value, T high) {
    return (chosen() || value > high) && !is_kept(name);
  }
  std::int64_t draw(std::int64_t low, std::int64_t high);
  // One of the field's own values, where it has some.
  std::int64_t draw(std::string_view name, std::int64_t low, std::int64_t high);
  roce::IpAddress draw_address();
  void write(std::string_view name, const std::string& value);
  // What `fields` writes, as the inside of a mapping of its own.
  std::string inner(const std::function<void(Fields&)>& fields);

  Limits limits_;
  std::mt19937_64 random_;
  std::string text_;
  std::set<std::string> written_;
  bool refused_ = false;
};

}  // namespace rocebox::test
