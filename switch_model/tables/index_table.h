// SPDX-License-Identifier: BSD-3-Clause
// IndexTable: action data by number, as a table matched on an index is.
#pragma once
#include <algorithm>
#include <bit>
#include <vector>

#include "switch_model/layout.h"
#include "switch_model/tables/miss.h"

namespace rocebox::switch_model {

template <class Value>
class IndexTable : public ResourceHandle {
 public:
  using Key = std::uint32_t;

  IndexTable(Layout& layout, std::string_view name, At at, std::uint32_t capacity, unsigned value_bits,
             std::uint64_t per_flow = 0)
      : values_(capacity), capacity_(capacity) {
    layout.declare(
        *this,
        {{}, std::string(name), ResourceKind::kExactTable, at, capacity, key_bits(capacity), value_bits, 0, per_flow});
  }
  std::uint32_t lookup(const Key& index) const { return index < capacity_ ? index : kMiss; }
  const Value& value(std::uint32_t entry) const { return values_[entry]; }
  Value& value(std::uint32_t entry) { return values_[entry]; }
  /// Takes other values, as many, and leaves its own. Does not allocate.
  void swap_values(std::vector<Value>& values) noexcept { values_.swap(values); }
  static constexpr unsigned key_bits(std::uint32_t capacity) {
    return std::max(16u, static_cast<unsigned>(std::bit_width(capacity)));
  }

 private:
  std::vector<Value> values_;
  std::uint32_t capacity_;
};

}  // namespace rocebox::switch_model
