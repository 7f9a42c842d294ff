// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a NIC.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nic_model/limits.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/placement.h"
#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"

namespace rocebox::nic_model {

/// A neighbour whose MAC address need not be asked for.
struct NeighborConfig {
  std::optional<roce::IpAddress> address;
  std::optional<roce::Mac> mac;
};

struct NicConfig {
  void fields(Fields& fields);
  void place(const Placement& placement);

  roce::Mac mac_address() const { return mac.value_or(roce::Mac{}); }
  /// The own address of a packet to `destination`.
  roce::IpAddress source_for(const roce::IpAddress& destination) const;
  /// Whether `destination` is on the link, so that no gateway stands between.
  bool is_on_link(const roce::IpAddress& destination) const;
  /// The entropy of a flow: from 0xC000 on, by both queue pairs (as rdma_flow_label and drivers make it).
  std::uint16_t udp_source_port(std::uint32_t qpn, std::uint32_t destination_qp) const;

  std::vector<std::string> ports = {"wire"};
  std::optional<roce::Mac> mac;
  std::optional<roce::IpAddress> address, address6, gateway;
  std::int64_t prefix_bits = 24;
  std::vector<NeighborConfig> neighbors;
  std::uint64_t rate = 0;       ///< bits per second of the port; 0: as fast as it takes
  std::uint64_t overhead = 24;  ///< bytes of the wire beyond a frame
  std::int64_t queue_pairs = 1024;
  std::uint32_t first_qpn = 0x11;
  bool header_only = false;
  bool icrc = true;
  std::int64_t window = 512;
  std::int64_t ack_every = 16;
  Nanos retransmission_timeout = 0;
  Nanos arp_timeout = 1 * kSecond;
  int arp_tries = 5;
};

}  // namespace rocebox::nic_model
