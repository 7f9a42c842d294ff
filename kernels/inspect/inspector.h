// SPDX-License-Identifier: BSD-3-Clause
// Inspector: the kernel itself. process() reads packets, report() writes what was found; nothing is
// changed.
#pragma once
#include <array>

#include "kernels/inspect/config.h"
#include "kernels/inspect/counters.h"
#include "kernels/inspect/flow.h"
#include "kernels/inspect/psn_tracker.h"
#include "runtime/flows/flow_table.h"
#include "runtime/flows/pairing.h"
#include "runtime/kernel/kernel.h"

namespace rocebox::inspect {

class Inspector final : public Kernel {
 public:
  using Config = inspect::Config;

  Inspector(const Config& config, Stats& stats);
  void process(Context& context, Port in, Batch& batch) override;
  void report(Report& report) const override;
  /// `retransmit_after` and `check_icrc` can be changed while packets flow; what sizes tables cannot.
  std::unique_ptr<Change> prepare(const Config& config) const;

 private:
  struct Switch;
  static constexpr std::uint32_t kNone = flows::FlowTable<FlowKey>::kNone;

  // How much of a packet can be counted.
  enum class Held : std::uint8_t {
    kNothing,  // not RoCEv2, or its BTH cannot be read
    kAll,
    kBth,      // snapped: an extended header is not held, all lengths are known
    kTrimmed,  // a switch cut it; roce::is_trimmed()
    kForeign,  // a service of which only BTH is read
  };
  // Where a packet belongs, found for the whole batch before any packet is counted.
  struct Lookup {
    FlowKey key;
    std::uint64_t hash;
    std::uint32_t index;
    Held held;
  };

  static Held held(Packet packet);
  static void name(Packet packet, Lookup& lookup);
  std::uint32_t find(const Lookup& lookup, Packet packet) const;
  void prefetch_flow(std::uint32_t index, Packet packet) const;
  std::uint32_t make(const Lookup& lookup, Packet packet);
  void count_other(Packet packet);
  void inspect(Packet packet, Lookup& lookup, Nanos now);
  bool icrc_refuses(Packet packet, Flow* flow, bool& unverified);
  void count_packet(Flow& flow, Packet packet, Held held, Nanos now);
  void datagram(Flow& flow, Packet packet, Held held, Nanos now);
  void connection_event(const flows::Pairing::ConnectionEvent& event);
  void request(std::uint32_t index, Packet packet, Held held, Nanos now);
  void read_length(Flow& flow, Packet packet, PsnPacket& facts);
  void restarted(std::uint32_t index);
  void asked_again(PsnStream& responses, const PsnPacket& read, bool goes_on) const;
  void response(std::uint32_t index, Packet packet, Held held, Nanos now);
  void response(std::uint32_t index, Packet packet, std::uint32_t psn, Nanos now);
  void acknowledge(Flow& asker, Packet packet, roce::AethKind kind, std::uint32_t psn, Nanos now);
  void syndrome(std::uint32_t index, Packet packet, std::uint32_t psn, Nanos now);
  void go_back(PsnStream& stream, PsnClass what, std::int64_t high_before, std::uint64_t skipped, Nanos now) const;
  PsnClass track(std::uint32_t index, PsnSpace space, const PsnPacket& facts);
  PsnClass track_any(std::uint32_t index, PsnSpace space, const PsnPacket& facts);
  void log(std::uint32_t index, EventKind kind, PsnSpace space, std::uint32_t psn, std::uint32_t count, Nanos now,
           std::uint8_t detail = 0);
  void learn_pmtu(Flow& flow, std::uint32_t payload_bytes);
  std::uint32_t known_pmtu(const Flow& flow) const;
  void settle_read(std::uint32_t index, const std::uint32_t* next_psn);
  void settle_unsized_read(std::uint32_t index, std::uint32_t last_psn);
  std::uint32_t infer_read_width(Flow& flow, std::uint32_t distance);
  void count_class(PsnClass what);
  const Flow* partner_of(const Flow& flow) const;
  Flow* partner_of(const Flow& flow);
  PsnPacket psn_packet(Packet packet, Held held, Nanos now) const;
  PsnTracker::Entry* ring(std::uint32_t index, PsnSpace space) {
    return rings_.data() + (std::size_t{index} * kStreams + static_cast<unsigned>(space)) * window_;
  }
  const PsnTracker::Entry* ring(std::uint32_t index, PsnSpace space) const {
    return rings_.data() + (std::size_t{index} * kStreams + static_cast<unsigned>(space)) * window_;
  }
  std::uint32_t index_of(const Flow& flow) const { return static_cast<std::uint32_t>(&flow - flows_.data()); }

  void report_totals(Report& report) const;
  void report_summary(Report& report, std::uint32_t index) const;
  void report_flow(Report& report, std::uint32_t index) const;
  void report_counts(Report& report, std::uint32_t index) const;
  void report_streams(Report& report, std::uint32_t index) const;
  void report_stream(Report& report, const Flow& flow, PsnSpace space, const PsnStream& stream) const;
  void report_event(Report& report, const Event& event) const;
  void report_senders(Report& report) const;
  void report_connections(Report& report) const;
  PsnStream settled_requests(std::uint32_t index) const;
  std::uint32_t partner_qpn(const Flow& flow) const;

  const Config config_;  // as it was made
  Counters counters_;
  bool check_icrc_;
  std::uint32_t window_, mtu_, events_max_;
  PsnTracker requests_, responses_;
  flows::FlowTable<FlowKey> table_;
  flows::ZeroedArray<Flow> flows_;
  flows::ZeroedArray<PsnTracker::Entry> rings_;
  flows::ZeroedArray<Event> events_;  // events_max_ of each flow
  flows::FlowTable<SenderKey> sender_table_;
  flows::ZeroedArray<Sender> senders_;
  flows::ZeroedArray<PsnTracker::Entry> sender_rings_;
  flows::FlowTable<roce::Addresses> address_pairs_;
  flows::ZeroedArray<std::uint16_t> address_pair_pmtus_;
  flows::Pairing pairing_;
};

}  // namespace rocebox::inspect
