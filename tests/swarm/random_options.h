// SPDX-License-Identifier: BSD-3-Clause
// RandomOptions: draws options of a component from the fields that it declares, and writes them down as YAML, so that
// what is tested is what a user could have written, and a kernel that is new takes part by itself.
#pragma once
#include <random>
#include <set>
#include <string>

#include "runtime/component/fields.h"

namespace rocebox::swarm {

class RandomOptions final : public Fields {
 public:
  explicit RandomOptions(std::uint64_t seed) : random_(seed) {}
  /// A mapping in flow style; `{}` when all is left at its default.
  std::string yaml() const { return "{" + text_ + "}"; }
  /// The combination is one that the component does not take.
  bool refused() const { return refused_; }

  void boolean(std::string_view name, bool& value, std::string_view) override;
  void integer(std::string_view name, std::int64_t& value, Range<std::int64_t> range, std::string_view) override;
  void duration(std::string_view name, Nanos& value, Range<Nanos> range, std::string_view) override;
  void rate(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override;
  void bytes(std::string_view name, std::uint64_t& value, Range<std::uint64_t> range, std::string_view) override;
  void fraction(std::string_view name, double& value, Range<double> range, std::string_view) override;
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
  void choice(std::string_view name, int& index, std::span<const std::string_view> words, std::string_view) override;
  void group(std::string_view name, std::string_view, const std::function<void(Fields&)>& fields) override;
  void items(std::string_view name, std::string_view, std::size_t, std::size_t,
             const std::function<void(Fields&, std::size_t)>& item) override;
  bool given(std::string_view name) override { return written_.contains(std::string(name)); }
  void refuse(std::string_view, std::string_view) override { refused_ = true; }

 private:
  bool keeps_items() const override { return true; }
  bool chosen() { return random_() % 8 == 0; }
  std::int64_t draw(std::int64_t low, std::int64_t high);
  void write(std::string_view name, const std::string& value);
  /// What `fields` writes, as a mapping of its own.
  std::string inner(const std::function<void(Fields&)>& fields);

  std::mt19937_64 random_;
  std::string text_;
  std::set<std::string> written_;
  bool refused_ = false;
};

}  // namespace rocebox::swarm
