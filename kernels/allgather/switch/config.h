// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "switch_model/program.h"

namespace rocebox::reduce {

/// Ports below a switch, each with who is there when it is one host alone.
struct ChildConfig {
  std::string port;
  std::optional<roce::IpAddress> only;
  void fields(Fields& fields, const switch_model::SwitchInfo& info);
};

/// The part of a tree at a switch. Without children this switch has none.
struct TreeConfig {
  std::vector<ChildConfig> children;
  std::string parent;  ///< empty: it is the root
  std::optional<roce::Mac> parent_mac;
  void fields(Fields& fields, const switch_model::SwitchInfo& info);
};

struct Config {
  std::int64_t float_qkey = 0x52440001, int_qkey = 0x52440002;
  std::int64_t slots = 256;
  std::uint64_t bytes = 4096;
  std::optional<roce::Mac> router_mac;
  std::vector<TreeConfig> trees;

  void fields(Fields& fields, const switch_model::SwitchInfo& info);
  /// A tree for each multicast group of the topology.
  void place(const Placement& placement, const switch_model::SwitchInfo& info);
  std::size_t children_max() const;
};

}  // namespace rocebox::reduce
