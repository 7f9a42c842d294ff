// SPDX-License-Identifier: BSD-3-Clause
// ControlPlane: which connections have state, and where. It overhears packets of connections without state, and changes
// tables behind all packets of an instant.
#pragma once
#include <vector>

#include "kernels/themis/config.h"
#include "kernels/themis/counters.h"
#include "kernels/themis/qp_table.h"
#include "runtime/roce/build.h"

namespace rocebox::themis {

class ControlPlane {
 public:
  struct State {
    QpTable& ingress;
    QpIndex& egress;
    Source& source;
    Destination& destination;
    RegisterArray<bool>& hits;  // of each pipe, by connection: a packet has come since the last look
    const HostPorts& is_host;
  };
  ControlPlane(const Config& config, const switch_model::SwitchInfo& info, State state, Counters& count);

  // From the ingress control, in packet order.

  /// An RC packet of a connection without state.
  void unknown(Pass& pass, const PacketState& p);
  /// An RC packet of a learnt connection: is the pair still right?
  void learnt(Pass& pass, const PacketState& p, const QpEntry& entry);
  /// A packet of a connection whose path MTU is not known, and what it shows of it; 0: nothing.
  void path_mtu(Pass& pass, const QpEntry& entry, std::uint16_t bytes);
  /// A packet to QP1.
  void management(Pass& pass, const PacketState& p);
  /// A request of an inbound direction whose first PSN was not known.
  void first_request(Pass& pass, const QpEntry& entry, std::uint32_t psn);

  // From the egress control.

  /// A request so far outside the window that the QP must have begun anew there.
  void begins_anew(Pass& pass, const QpEntry& entry, std::uint32_t psn, bool sprayed);
  /// An ACK of all before `to`, more than a window at once.
  void jumps(Pass& pass, const QpEntry& entry, std::uint32_t to);
  /// The headers of a NACK that is stashed, for when it ages.
  void stashed(Pass& pass, const QpEntry& entry, Packet nack);

  /// Timeouts and learning of a configuration that is taken over. Timers that are armed fire when they were to.
  void change(const Config& config) {
    stash_timeout_ = config.stash_timeout;
    qp_timeout_ = config.qp_timeout;
    learning_ = config.learning;
  }
  void on_timer(Pass& pass, std::uint64_t tag);
  void report(Report& report) const;
  /// Packets of configured connections, both ways, by the ways that the programs before know.
  void stimuli(std::vector<Stimulus>& all) const;
  /// The unit of the register stash_time.
  static std::uint32_t ticks(Nanos now) { return static_cast<std::uint32_t>(now >> 10); }

 private:
  // Timers.
  static constexpr std::uint64_t kWorkTimer = 0, kAgeTimer = 1, kStashTimer = 2;

  struct Connection {
    bool used, begun;
    Port port;
    std::uint8_t pipe;
    std::uint32_t outbound, inbound;  // halves of the pairing
    Slot slot;
    std::uint32_t generation;
    Nanos seen, begun_at;
    bool stash_watched;
    roce::Underlay nack_underlay;  // of the NACK stashed last
    std::uint16_t pkey;
    bool mig_req;
  };
  enum class What : std::uint8_t { kMake, kEnd, kUndo, kBegin, kAnew, kJump, kPathMtu };
  struct Change {
    What what;
    Port port;
    bool sprayed;
    std::uint32_t number;  // kMake: outbound half; else connection
    std::uint32_t value;   // a PSN; kPathMtu: bytes
    std::uint32_t half{};  // the connection's outbound one, when it was asked for
  };
  // What is known of a half besides its pairing.
  struct HalfNotes {
    Nanos seen;
    std::uint32_t first_psn, connection;  // connection plus one
    bool first_psn_known, refused, used;
    std::uint16_t path_mtu;  // 0: not seen yet
  };

  void report_connections(Report& report) const;
  void report_unpaired(Report& report) const;
  Port local_port(const PacketState& p) const;
  bool observe(const PacketState& p, std::uint32_t half);
  std::uint16_t path_mtu_of_half(std::uint32_t half) const;
  void ask(Pass& pass, std::vector<Change>& changes, const Change& change);
  void arm_work(Pass& pass);
  void carry_out(Pass& pass, const Change& change);
  void make(Pass& pass, std::uint32_t outbound, Port port);
  void set_entries(std::uint32_t number);
  void begin(std::uint32_t number, std::uint32_t first_psn, std::uint32_t highest);
  void begin_anew(Pass& pass, std::uint32_t number, std::uint32_t psn, bool sprayed);
  void jump(Pass& pass, std::uint32_t number, std::uint32_t to);
  bool is_configured(const Connection& connection) const {
    return pairing_.source(connection.outbound) == roce::PairSource::kConfig;
  }
  void end(Pass& pass, std::uint32_t number, bool forget);
  void release_stash(Pass& pass, Connection& connection);
  void age(Pass& pass);
  void age_stashes(Pass& pass);
  bool send_aged(Pass& pass, Connection& connection, const Decision& decision);
  void arm_ageing(Pass& pass);

  const switch_model::SwitchInfo& info_;
  State state_;
  Counters& count_;
  Nanos stash_timeout_, qp_timeout_;
  std::uint32_t window_;
  bool learning_;
  roce::Pairing pairing_;
  std::vector<roce::HalfKey> stimuli_;  // of the first configured connections
  std::vector<HalfNotes> notes_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> free_connections_;
  std::vector<std::vector<std::uint32_t>> free_slots_;  // by pipe
  std::vector<Change> ingress_changes_, egress_changes_, carried_out_;
  std::vector<std::uint32_t> stashes_;  // connections whose stash is watched
  std::uint32_t generation_ = 0;
  bool work_armed_ = false, ageing_armed_ = false, stashes_armed_ = false;
};

}  // namespace rocebox::themis
