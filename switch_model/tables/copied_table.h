// SPDX-License-Identifier: BSD-3-Clause
// CopiedTable: a second table with what another one holds.
#pragma once
#include <vector>

#include "switch_model/tables/index_table.h"

namespace rocebox::switch_model {

/// On a chip a packet looks into a table once, in one stage. A program that must know what stands elsewhere in a table
/// of a program before it (another next hop's port) has a table of its own, which the control plane writes together
/// with that one. Here both are one memory: `original`, which outlives this.
template <class Value>
class CopiedTable : public ResourceHandle {
 public:
  using Key = std::uint32_t;

  CopiedTable(Layout& layout, std::string_view name, At at, const std::vector<Value>& original, unsigned value_bits)
      : original_(original) {
    const auto capacity = static_cast<std::uint32_t>(original.size());
    layout.declare(*this, {{},
                           std::string(name),
                           ResourceKind::kExactTable,
                           at,
                           capacity,
                           IndexTable<Value>::key_bits(capacity),
                           value_bits,
                           0});
  }
  std::uint32_t lookup(const Key& index) const { return index < original_.size() ? index : kMiss; }
  const Value& value(std::uint32_t entry) const { return original_[entry]; }

 private:
  const std::vector<Value>& original_;
};

}  // namespace rocebox::switch_model
