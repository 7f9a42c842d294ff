// SPDX-License-Identifier: BSD-3-Clause
// RandomFields: draws a configuration from the declared ranges, so that the contracts are tested beyond the examples.
#pragma once
#include <random>

#include "runtime/component/fields.h"

namespace rocebox::test {

/// Leaves most fields at their default and draws the others log-uniformly from their range. refused() says that the
/// combination was refused.
class RandomFields final : public Fields {
 public:
  explicit RandomFields(std::uint64_t seed) : random_(seed) {}
  bool refused() const { return refused_; }

  void boolean(std::string_view, bool& value, std::string_view) override {
    if (chosen()) value = random_() % 2;
  }
  void integer(std::string_view, std::int64_t& value, Range<std::int64_t> range, std::string_view) override {
    if (chosen()) value = draw(range.low, range.high);
  }
  void duration(std::string_view, Nanos& value, Range<Nanos> range, std::string_view) override {
    if (chosen()) value = draw(range.low, range.high);
  }
  void rate(std::string_view, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override {
    // Slower than a kilobit, simulated time runs for years.
    if (chosen())
      value = static_cast<std::uint64_t>(draw(std::max<std::int64_t>(static_cast<std::int64_t>(range.low), 1000),
                                              static_cast<std::int64_t>(range.high)));
  }
  void bytes(std::string_view, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override {
    if (chosen())
      value =
          static_cast<std::uint64_t>(draw(static_cast<std::int64_t>(range.low), static_cast<std::int64_t>(range.high)));
  }
  void fraction(std::string_view, double& value, Range<double> range, std::string_view) override {
    if (chosen())
      value = range.low +
              (range.high - range.low) * (static_cast<double>(random_() % 1000) / 1000) * (random_() % 2 ? 1 : 0.05);
  }
  void mac(std::string_view, std::optional<roce::Mac>& value, Presence presence, std::string_view) override {
    refused_ |= !value && presence == Presence::kRequired;
  }
  void address(std::string_view, std::optional<roce::IpAddress>& value, Presence presence, std::string_view) override {
    refused_ |= !value && presence == Presence::kRequired;
  }
  void prefix(std::string_view, std::optional<roce::Prefix>& value, Presence presence, std::string_view) override {
    refused_ |= !value && presence == Presence::kRequired;
  }
  void text(std::string_view, std::string&, std::string_view) override {}
  void texts(std::string_view, std::vector<std::string>&, std::string_view) override {}
  void choice(std::string_view, int& index, std::span<const std::string_view> words, std::string_view) override {
    if (chosen() || index < 0) index = static_cast<int>(random_() % words.size());
  }
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override {
    (void)name;
    fields(*this);
  }
  void items(std::string_view, std::string_view, std::size_t, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override {
    for (std::uint64_t i = random_() % 4 ? 0 : random_() % 3; i > 0; i--) item(*this, SIZE_MAX);
  }
  bool given(std::string_view) override { return false; }
  void refuse(std::string_view, std::string_view) override { refused_ = true; }

 private:
  bool keeps_items() const override { return true; }
  bool chosen() { return random_() % 6 == 0; }
  std::int64_t draw(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low);
    if (span == 0) return low;
    const unsigned bits = 64 - static_cast<unsigned>(__builtin_clzll(span));
    const std::uint64_t offset = random_() & ((std::uint64_t{2} << (random_() % bits)) - 1);
    return low + static_cast<std::int64_t>(std::min(offset, span));
  }
  std::mt19937_64 random_;
  bool refused_ = false;
};

}  // namespace rocebox::test
