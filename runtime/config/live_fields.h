// SPDX-License-Identifier: BSD-3-Clause
// What can be written for the live drive: what a device port is bound to, and how the datapath runs.
#pragma once
#include <string>
#include <vector>

#include "runtime/component/fields.h"

namespace rocebox::config {

enum class PortKind : std::uint8_t { kUnbound, kAfPacket, kAfXdp, kTap, kMemif, kPci, kNull, kRing, kDevargs };

/// A live port. Of the bindings exactly one is written.
struct LivePortOptions {
  std::string af_packet, af_xdp, tap;  ///< interface names
  std::string pci;                     ///< address, 0000:3b:00.0
  std::string ring;                    ///< name: two ports with it are joined back to back
  std::string devargs;                 ///< as on the command line of any DPDK program
  struct Memif {
    std::string socket;
    std::int64_t id = 0;
    int role = 1;  ///< 0 server, 1 client
    void fields(Fields& f);
  } memif;
  struct Null {
    std::uint64_t packet_bytes = 64;
    bool copy = false;
    void fields(Fields& f);
  } net_null;
  std::uint64_t mtu = 0;  ///< payload bytes of the Ethernet frame; 0: as the port has it
  bool promiscuous = true;
  bool finish_checksums = true;
  std::int64_t rx_descriptors = 1024, tx_descriptors = 1024;

  PortKind kind = PortKind::kUnbound;
  /// How many bindings were written.
  unsigned bindings = 0;

  void fields(Fields& f);
  /// The binding as a person would say it: "af_packet veth0".
  std::string text() const;
};

enum class Idle : std::uint8_t { kPoll, kPause, kInterrupt };

/// What a run does when the interface of a port goes away.
enum class PortLost : std::uint8_t { kWait, kEnd };

struct LiveOptions {
  Idle idle = Idle::kPause;
  PortLost port_lost = PortLost::kWait;
  Nanos idle_sleep = 50 * kMicrosecond;
  std::int64_t burst = 32;
  std::int64_t shards = 1;
  std::string metrics;  ///< ADDRESS:PORT of /metrics; empty: none
  void fields(Fields& f);
};

}  // namespace rocebox::config
