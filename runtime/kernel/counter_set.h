// SPDX-License-Identifier: BSD-3-Clause
// CounterSet: the counters of one kernel or device, in the order in which they were asked for.
#pragma once
#include <deque>
#include <string>
#include <string_view>

#include "runtime/kernel/counter.h"

namespace rocebox {

class CounterSet final : public Stats {
 public:
  struct Row {
    std::string name, sentence;
    Counter counter;
  };

  Counter& counter(std::string_view name, std::string_view sentence) override {
    for (Row& row : rows_)
      if (row.name == name) return row.counter;
    Row& row = rows_.emplace_back();
    row.name = name;
    row.sentence = sentence;
    return row.counter;
  }

  const std::deque<Row>& rows() const { return rows_; }

  /// The name of a counter of this set; empty when it is of another.
  std::string_view name_of(const Counter* counter) const {
    for (const Row& row : rows_)
      if (&row.counter == counter) return row.name;
    return {};
  }
  /// Current value by name; 0 when there is no such counter.
  std::uint64_t read(std::string_view name) const {
    for (const Row& row : rows_)
      if (row.name == name) return row.counter.read();
    return 0;
  }

 private:
  std::deque<Row> rows_;  // a deque: addresses stay valid
};

}  // namespace rocebox
