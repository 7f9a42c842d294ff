// SPDX-License-Identifier: BSD-3-Clause
// What a rule of an access list matches, as written, and the rows of the ternary table that it becomes.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/roce/address.h"
#include "switch_model/acl/key.h"
#include "switch_model/program.h"

namespace rocebox::switch_model::acl {

/// A row: bits that the mask leaves out may be anything.
struct Row {
  Key value, mask;
};

/// A MAC address of which only bits of the mask count.
struct MaskedMac {
  Mac value, mask;
};

/// Conditions that must all hold; one that is not written holds for every packet.
struct Match {
  std::vector<std::string> ports;
  std::optional<MaskedMac> source_mac, destination_mac;
  std::optional<roce::Prefix> source, destination;
  std::string ethertype, protocol, source_port, destination_port;
  std::int64_t vlan = -1, dscp = -1, ecn = -1;
  std::vector<std::string> opcodes;
  std::string destination_qp;

  void fields(Fields& fields, const SwitchInfo& info);
  /// Rows that a range of ports, or several ports or opcodes, take more than one of. Of what fields() has refused:
  /// none, or wrong ones.
  std::vector<Row> rows(const SwitchInfo& info) const;
  /// How many rows() gives, without making them.
  std::size_t row_count() const;
};

}  // namespace rocebox::switch_model::acl
