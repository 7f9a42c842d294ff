// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the kernel itself. process() reads packets, report() writes what was found; nothing is
// changed.
#pragma once
#include <array>

#include "kernels/inspect/config.h"
#include "kernels/inspect/counters.h"
#include "kernels/inspect/flow.h"
#include "kernels/inspect/psn_tracker.h"
#include "runtime/kernel/kernel.h"
#include "runtime/roce/flow_table.h"
#include "runtime/roce/pairing.h"

namespace rocebox::inspect {

class Inspector final : public Kernel {
 public:
  using Config = inspect::Config;

  Inspector(const Config& config, Stats& stats);
  void process(Context& context, Port in, Batch& batch) override;
  void report(Report& report) const override;

 private:
  static constexpr std::uint32_t kNone = roce::FlowTable<FlowKey>::kNone;

  // Where a packet belongs, found for the whole batch before any packet is counted.
  struct Lookup {
    FlowKey key;
    std::uint64_t hash;
    std::uint32_t index;
  };

  Lookup name(Packet packet) const;
  std::uint32_t find(const Lookup& lookup, Packet packet) const;
  std::uint32_t make(const Lookup& lookup, Packet packet);
  void count_other(PacketClass what);
  void inspect(Packet packet, Lookup& lookup, Nanos now);
  bool icrc_refuses(Packet packet, Flow* flow, bool& unverified);
  void count_packet(Flow& flow, Packet packet, Nanos now);
  void request(std::uint32_t index, Packet packet, Nanos now);
  void response(std::uint32_t index, Packet packet, Nanos now);
  void syndrome(Flow& flow, Packet packet);
  void learn_pmtu(Flow& flow, std::uint32_t payload_bytes);
  std::uint32_t known_pmtu(const Flow& flow) const;
  void settle_read(std::uint32_t index, const std::uint32_t* next_psn);
  std::uint32_t infer_read_width(Flow& flow, std::uint32_t distance);
  void count_class(PsnClass what);
  const Flow* partner_of(const Flow& flow) const;
  Flow* partner_of(const Flow& flow);
  PsnPacket psn_packet(Packet packet, Nanos now) const;
  PsnTracker::Entry* ring(std::uint32_t index, unsigned stream) {
    return rings_.data() + (std::size_t{index} * kStreams + stream) * window_;
  }

  void report_totals(Report& report) const;
  void report_flow(Report& report, std::uint32_t index) const;
  void report_streams(Report& report, const Flow& flow) const;
  void report_connections(Report& report) const;
  PsnStream settled_requests(const Flow& flow) const;

  Counters counters_;
  bool check_icrc_;
  std::uint32_t window_, mtu_;
  PsnTracker requests_, responses_;
  roce::FlowTable<FlowKey> table_;
  roce::ZeroedArray<Flow> flows_;
  roce::ZeroedArray<PsnTracker::Entry> rings_;
  roce::FlowTable<roce::Addresses> address_pairs_;
  roce::ZeroedArray<std::uint16_t> address_pair_pmtus_;
  roce::Pairing pairing_;
};

}  // namespace rocebox::inspect
