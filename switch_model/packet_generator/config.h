// SPDX-License-Identifier: BSD-3-Clause
// What can be written about the packet generator.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "switch_model/program.h"

namespace rocebox::switch_model {

/// The packet that an application sends: bytes, or a UDP datagram.
struct PacketTemplate {
  std::string hex;
  std::optional<Mac> source_mac = Mac{0x02, 0, 0, 0, 0, 0x01}, destination_mac = Mac{0x02, 0, 0, 0, 0, 0x02};
  std::optional<roce::IpAddress> source = roce::ipv4(10, 0, 0, 1), destination = roce::ipv4(10, 0, 0, 2);
  std::int64_t vlan = 0, dscp = 0, ttl = 64, source_port = 49152, destination_port = 9;
  std::uint64_t payload = 64;

  void fields(Fields& fields);
  /// The frame, without FCS. Not of what fields() has refused.
  std::vector<std::uint8_t> frame() const;
};

/// One application: a trigger starts `batches` batches of `packets` packets.
struct ApplicationConfig {
  std::string name, port;
  Nanos start = 0, every = 0;
  std::int64_t times = 0;
  std::int64_t batches = 1, packets = 1;
  Nanos batch_gap = kMicrosecond, packet_gap = kMicrosecond;
  PacketTemplate packet;

  void fields(Fields& fields, const SwitchInfo& info);
  /// From the first packet of a batch to the first of the next.
  Nanos batch_period() const { return (packets - 1) * packet_gap + batch_gap; }
  /// From the first packet of a trigger to its last.
  Nanos duration() const { return (batches - 1) * batch_period() + (packets - 1) * packet_gap; }
};

/// Reads the list `packet_generator:` of a switch.
void read_applications(Fields& fields, std::vector<ApplicationConfig>& applications, const SwitchInfo& info);

}  // namespace rocebox::switch_model
