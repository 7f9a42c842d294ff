// SPDX-License-Identifier: BSD-3-Clause
// Neighbors: which MAC address leads to an IP address: as written, or asked for by ARP (RFC 826) and neighbour
// discovery (RFC 4861); and what a NIC without a host's stack answers itself: ARP, ND, ICMP echo.
#pragma once
#include <vector>

#include "nic_model/core.h"
#include "runtime/kernel/kernel.h"
#include "runtime/kernel/progress.h"

namespace rocebox::nic_model {

struct IcmpMessage;

class Neighbors {
 public:
  explicit Neighbors(Core& core);

  /// The MAC address of the next hop to `destination`. Null: it is being asked for, and found() will say.
  const roce::Mac* resolve(Context& context, const roce::IpAddress& destination);
  /// A packet of `sender` has come from `mac`. True: its address was being asked for, with no gateway in between, and
  /// is known now.
  bool hear(const roce::IpAddress& sender, const std::uint8_t* mac);
  /// A packet that is not RoCE, and how it ends: `answered`, also where something was learnt, or a reason to drop it.
  /// `found`: a neighbour was.
  Counter& on_packet(Context& context, Packet packet, bool& found);
  /// True: some neighbour has not said its MAC address, however often it was asked.
  bool on_timer(Context& context);
  /// Whether the next hop to `destination` is such a one, and has not been asked since.
  bool has_given_up(const roce::IpAddress& destination);
  /// Of all that are being asked for.
  Progress progress() const;

 private:
  struct Row {
    roce::IpAddress address{};
    roce::Mac mac{};
    bool known = false;
    bool is_written = false;  ///< in the configuration, which nothing on the wire changes
    int tries = 0;
    Nanos ask_again = 0;
  };
  roce::IpAddress next_hop(const roce::IpAddress& destination);
  Row* find(const roce::IpAddress& address);
  bool learn(const roce::IpAddress& address, const std::uint8_t* mac, bool& found);
  void ask(Context& context, Row& row);
  void ask_arp(Context& context, const Row& row);
  void ask_nd(Context& context, const Row& row);
  void send(Context& context, PacketPtr packet, Counter& counter);
  bool on_arp(Context& context, Packet packet, bool& found);
  bool on_icmp(Context& context, Packet packet, const IcmpMessage& icmp);
  bool on_icmp6(Context& context, Packet packet, const IcmpMessage& icmp, bool& found);
  bool reply_to_echo(Context& context, Packet packet, const IcmpMessage& icmp);
  void arm(Context& context);

  Core& core_;
  std::vector<Row> rows_;
  Timer timer_;
};

}  // namespace rocebox::nic_model
