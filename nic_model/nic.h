// SPDX-License-Identifier: BSD-3-Clause
// Nic: the object that an RDMA NIC is. Packets come in by process(), leave by the transmitter's timer; README.md has
// their way.
#pragma once
#include <endian.h>

#include <array>

#include "nic_model/connect/cm.h"
#include "nic_model/connect/group_reports.h"
#include "nic_model/connect/gsi.h"
#include "nic_model/connect/neighbors.h"
#include "nic_model/core.h"
#include "nic_model/host/host.h"
#include "nic_model/rate/pauses.h"
#include "nic_model/rate/peer_messages.h"
#include "nic_model/rate/rtt.h"
#include "runtime/kernel/kernel_options.h"

namespace rocebox::nic_model {

class Nic final : public Kernel {
 public:
  Nic(const NicConfig& config, Stats& stats);

  void start(Context& context) override;
  void process(Context& context, Port in, Batch& batch) override;
  void on_timer(Context& context, Timer& timer) override;
  void prefetch(const Timer& timer) const override { core_.transmitter.prefetch(timer); }
  void prefetch_arrival(Port in, Packet packet) const override;
  void prefetch_turn(bool is_near) const override;
  HostSide* host_side() override { return &host_; }
  void on_host(Context& context) override;
  void report(Report& report) const override;
  std::span<const Counter* const> delivered() const override { return delivered_; }
  /// Only `up` may be another, and what the congestion control says.
  std::unique_ptr<Change> prepare(const NicConfig& config) const;

  Host& host() { return host_; }
  /// Who sees what packets tell and sets rates, in place of who did; before the first packet. Empty: nobody.
  void observe_by(std::unique_ptr<Observer> observer);

 private:
  class NewOptions;
  // The MAC address that a frame begins with. Read as one word: two parts that are put together in memory make the
  // processor wait.
  static std::uint64_t first_six_bytes(const std::uint8_t* frame) {
    static_assert(sizeof(roce::Ethernet) >= sizeof(std::uint64_t));
    std::uint64_t bytes;
    std::memcpy(&bytes, frame, sizeof bytes);
    return le64toh(bytes) << 16;
  }
  void on_other_timer(Context& context, Timer& timer);
  Counter& receive(Context& context, Packet packet);
  Counter& receive_roce(Context& context, Packet packet);
  void receive_own(Context& context, PacketPtr packet);
  Counter& receive_multicast(Context& context, Packet packet);
  Counter& notified(Context& context, Qp& qp, const roce::IpAddress& source);
  void notify(Context& context, Qp& qp);
  void observe_received(Context& context, Qp& qp, Packet packet);
  bool is_for_us(Packet packet) const;
  void prefetch_destination(Packet packet) const;
  bool is_own(const roce::IpAddress& address) const { return address == config_.source_for(address); }
  void receive_burst(Context& context, Batch& batch);
  Counter& receive_other(Context& context, Packet packet);
  Counter& receive_checked(Context& context, Packet packet, bool is_from_wire);
  Counter& receive_from_peer(Context& context, Qp& qp, Packet packet);
  void resolve(Context& context, Qp& qp);
  void resolve_waiting(Context& context);
  void give_up(Context& context);
  // What a call's work has led to beside packets: failures, and events of programs, who may post again.
  void settle(Context& context) {
    core_.fail_overrun(context);
    host_.settle(context);
    group_reports_.look(context);
  }

  const NicConfig config_;
  std::uint64_t mac_;  // as first_six_bytes() has it
  Core core_;
  Neighbors neighbors_;
  GroupReports group_reports_;
  Gsi gsi_;
  ConnectionManager connections_;
  Host host_;
  RttProber rtt_;
  PeerMessages peer_messages_;
  Pauses pauses_;
  std::unique_ptr<Observer> observer_;
  const std::array<const Counter*, 5> delivered_;
};

}  // namespace rocebox::nic_model

namespace rocebox {
Component nic_component();
}
