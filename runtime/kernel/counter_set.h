// SPDX-License-Identifier: BSD-3-Clause
// CounterSet: the counters of one kernel or device, in the order in which they were asked for.
#pragma once
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#include "runtime/kernel/counter.h"

namespace rocebox {

class CounterSet final : public Stats {
 public:
  struct Row {
    std::string name, sentence;
    std::variant<Counter*, Level*, Peak*> number;

    CounterKind kind() const {
      return std::visit([](const auto* n) { return n->kKind; }, number);
    }
    std::uint64_t read() const {
      return std::visit([](const auto* n) { return n->read(); }, number);
    }
    /// What drops name as their reason; null for levels and peaks.
    const Counter* counter() const {
      const auto* counter = std::get_if<Counter*>(&number);
      return counter ? *counter : nullptr;
    }
    const CounterValue* value() const {
      return std::visit([](const auto* n) -> const CounterValue* { return n; }, number);
    }
  };

  Counter& counter(std::string_view name, std::string_view sentence) override { return get<Counter>(name, sentence); }
  Level& level(std::string_view name, std::string_view sentence) override { return get<Level>(name, sentence); }
  Peak& peak(std::string_view name, std::string_view sentence) override { return get<Peak>(name, sentence); }

  const std::deque<Row>& rows() const { return rows_; }

  /// The name of a counter of this set; empty when it is of another.
  std::string_view name_of(const Counter* counter) const {
    if (!counter) return {};
    for (const Row& row : rows_)
      if (row.counter() == counter) return row.name;
    return {};
  }
  /// Current value by name; 0 when there is no such counter.
  std::uint64_t read(std::string_view name) const {
    for (const Row& row : rows_)
      if (row.name == name) return row.read();
    return 0;
  }

 private:
  template <class Number>
  Number& get(std::string_view name, std::string_view sentence) {
    for (Row& row : rows_) {
      if (row.name != name) continue;
      if (auto* const number = std::get_if<Number*>(&row.number)) return **number;
      throw std::logic_error("`" + row.name + "` is a " + std::string(kind_name(row.kind())) + " and cannot be a " +
                             std::string(kind_name(Number::kKind)));
    }
    Number& number = std::get<std::deque<Number>>(numbers_).emplace_back();
    rows_.push_back({std::string(name), std::string(sentence), &number});
    return number;
  }

  std::deque<Row> rows_;
  // Apart from their names, so that those that are counted together share a cache line; addresses stay valid.
  std::tuple<std::deque<Counter>, std::deque<Level>, std::deque<Peak>> numbers_;
};

}  // namespace rocebox
