// SPDX-License-Identifier: BSD-3-Clause
// What can be written about a NIC.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nic_model/dpa/config.h"
#include "nic_model/limits.h"
#include "nic_model/rate/congestion_control.h"
#include "nic_model/rate/scheduler_config.h"
#include "nic_model/transport/loss_recovery.h"
#include "runtime/component/fields.h"
#include "runtime/component/option_values.h"
#include "runtime/component/registry.h"
#include "runtime/kernel/placement.h"
#include "runtime/roce/address.h"
#include "runtime/roce/headers.h"

namespace rocebox::nic_model {

/// A neighbour whose MAC address need not be asked for.
struct NeighborConfig {
  void fields(Fields& fields);
  std::optional<roce::IpAddress> address;
  std::optional<roce::Mac> mac;
};

/// Whether memberships of multicast groups are told to switches and routers.
enum class GroupReportsOption : std::uint8_t {
  kOff,  ///< as Linux's stack for RoCE, which leaves that to others
  kOld,  ///< IGMPv2 and MLDv1
  kNew,  ///< IGMPv3 and MLDv2
};

/// Where the UDP source port of a queue pair's packets comes from, by which switches tell flows apart.
enum class Entropy : std::uint8_t {
  kDrawn,  ///< of each pair of queue pairs another one, by the run's seed and the device's name
  kQpns,   ///< of both queue pair numbers alone, as Linux makes it of them (rdma_get_udp_sport)
};

struct NicConfig {
  /// Congestion controls of `registry` can be chosen; it outlives this.
  explicit NicConfig(const Registry& registry);
  void fields(Fields& fields);
  void place(const Placement& placement);

  roce::Mac mac_address() const { return mac.value_or(roce::Mac{}); }
  /// The largest path MTU of which all packets have room in `mtu`.
  std::uint32_t path_mtu_max() const;
  /// The own address of a packet to `destination`: one of the same family, if there is one.
  roce::IpAddress source_for(const roce::IpAddress& destination) const;
  /// Whether there is one. Else nothing can be sent there, and nothing comes from there to this NIC.
  bool has_source_for(const roce::IpAddress& destination) const;
  /// Of a message about the NIC: what it has not and how to mend that; empty: has_source_for().
  std::string lacks_source_for(const roce::IpAddress& destination) const;
  /// Whether `destination` is on the link, so that no gateway stands between.
  bool is_on_link(const roce::IpAddress& destination) const;
  /// What each queue pair has from the beginning.
  LossRecovery loss_recovery() const {
    return {recovery, static_cast<std::uint32_t>(window), retransmission_timeout, retransmit_stall};
  }

  bool up = true;
  std::vector<std::string> ports = {"wire"};
  std::optional<roce::Mac> mac;
  std::optional<roce::IpAddress> address, address6, gateway;
  std::int64_t prefix_bits = 24;
  std::vector<NeighborConfig> neighbors;
  std::uint64_t rate = 0;       ///< bits per second of the port; 0: as fast as it takes
  std::uint64_t overhead = 24;  ///< bytes of the wire beyond a frame
  std::uint64_t mtu = 0;        ///< bytes of an IP packet; 0: as many as the longest path MTU takes
  std::int64_t queue_pairs = 1024;
  std::uint32_t first_qpn = 0x11;
  bool header_only = false;
  bool icrc = true;
  Entropy entropy = Entropy::kDrawn;
  Recovery recovery = LossRecovery{}.how;
  Nanos retransmit_stall = LossRecovery{}.retransmit_stall;
  bool nak_copies = true;
  std::shared_ptr<const CongestionControlOptions> control;  ///< null: none
  std::string_view control_name;                            ///< its component's
  std::optional<NotificationPoint> notification_point;      ///< of `control`
  SchedulerConfig scheduler;
  LimiterConfig limiter;
  PcieConfig pcie;
  LoopbackConfig loopback;
  bool obey_pauses = true;
  bool credits = false;
  dpa::DpaConfig dpa;
  std::int64_t window = LossRecovery{}.window;
  std::int64_t ack_every = 16;
  Nanos retransmission_timeout = LossRecovery{}.retransmission_timeout;
  Nanos arp_timeout = 1 * kSecond;
  int arp_tries = 5;
  GroupReportsOption group_reports = GroupReportsOption::kOff;
  std::int64_t cm_response_timeout = 20, cm_retries = 15;
  FlatValues fixed;  ///< all options, as they were read, that cannot be changed while it runs

 private:
  bool control_fields(Fields& fields);
  void limiter_effects(Fields& fields, bool may_control) const;
  void check_addresses(Fields& fields) const;
  void check_gateway(Fields& fields) const;
  static const char* option_for(const roce::IpAddress& destination);
  bool can_change(std::string_view option) const;

  std::vector<const Component*> controls_;
  std::vector<std::shared_ptr<CongestionControlOptions>> control_options_;  // in the order of controls_
};

}  // namespace rocebox::nic_model
