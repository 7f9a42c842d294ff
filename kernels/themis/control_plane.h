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

using flows::PairSource;

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
  /// An RC packet of a connection that was told and has no slot yet: no packet has shown before where its NIC is.
  void first(Pass& pass, const PacketState& p, const QpEntry& entry);
  /// An RC packet of a learnt connection, or one that is contested: is the pair still right?
  void doubted(Pass& pass, const PacketState& p, const QpEntry& entry);
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
  /// A request leaves for the NIC while its connection has no slot: that is made in this instant.
  void left(Pass& pass, const QpEntry& entry, Port port, std::uint32_t psn, bool sprayed, std::uint32_t width);
  /// The headers of a NACK that is stashed, for when it ages.
  void stashed(Pass& pass, const QpEntry& entry, Packet nack);

  /// Timeouts, learning and connections of a configuration that is taken over. Timers that are armed fire when they
  /// were to.
  void change(const Config& config);
  /// Whether a change has left NACKs behind that are to be sent: then wake() is called with the next packets.
  bool waits() const { return has_released() && !work_timer_.armed(); }
  void wake(Pass& pass) { arm_work(pass); }
  void on_timer(Pass& pass, Timer& timer);
  void report(Report& report) const;
  /// Packets of configured connections, both ways, by the ways that the programs before know.
  void stimuli(std::vector<Stimulus>& all) const;
  /// The unit of the register stash_time.
  static std::uint32_t ticks(Nanos now) { return static_cast<std::uint32_t>(now >> 10); }

 private:
  // What is kept of the headers of a NACK that is stashed.
  struct NackHeaders {
    roce::Underlay underlay;
    std::uint16_t pkey;
    bool mig_req;
  };

  // What a handshake says: the port of the NIC in this rack, and whether its REP came from there.
  struct Claim {
    flows::Pairing::Told told;
    Port port;
    bool by_host;
    // Which of the two directions goes out: directions[0] goes the way of the REP.
    unsigned outbound() const { return by_host ? 0 : 1; }
  };
  struct Connection {
    bool used, placed, begun;
    bool contested;                    // the connection manager has spoken of its QPs while it was alive
    Nanos contested_at, responded_at;  // of one that is: its QPs' last response, as ageing has found it
    Claim claim;                       // and what was said last
    PairSource source;
    Port port;
    std::uint8_t pipe;
    std::uint32_t outbound, inbound;  // directions of the pairing
    Slot slot;
    std::uint32_t generation;
    Nanos seen, begun_at;
    bool stash_watched;
    NackHeaders nack_headers;  // of the NACK stashed last
  };
  enum class What : std::uint8_t { kMake, kEnd, kUndo, kContest, kBegin, kAnew, kJump, kPathMtu, kLeft };
  struct Change {
    What what;
    Port port;
    bool sprayed;
    std::uint32_t number;       // kMake: outbound direction; else connection
    std::uint32_t value;        // a PSN; kPathMtu: bytes
    std::uint32_t direction{};  // the connection's outbound one, when it was asked for
    std::uint32_t width = 1;    // kLeft: PSNs that the request takes
  };
  // What is known of a direction besides its pairing.
  struct DirectionNotes {
    Nanos seen;
    std::uint32_t first_psn, connection;  // connection plus one
    bool first_psn_known, refused, used;
    bool told;                     // in the configuration that is being taken over
    std::uint16_t path_mtu;        // 0: not seen yet
    std::uint32_t previous, next;  // in the list of the port by which it came last, each plus one
    Port port;
    bool waits;  // is in that list: it has no state
  };
  // Directions without state whose packets cross the border at one of the rack's ports, those that were silent longest
  // first.
  struct Waiting {
    std::uint32_t oldest, newest, count;  // each direction plus one
  };
  struct Released {
    NackHeaders headers;
    StashedNack nack;
  };
  static constexpr unsigned kAnyPipe = switch_model::kPipesMax;

  void report_connections(Report& report) const;
  void report_unpaired(Report& report) const;
  Port local_port(const PacketState& p) const;
  bool observe(const PacketState& p, std::uint32_t direction);
  Port management_port(const PacketState& p) const;
  bool believed(Pass& pass, const Claim& claim);
  bool make_room(const Claim& claim, Nanos now);
  void contest(std::uint32_t number, Nanos now);
  void settle(Pass& pass, std::uint32_t number);
  void take_up(Pass& pass, const Claim& claim);
  void meet(Pass& pass, const PacketState& p, std::uint32_t direction, Port port);
  std::uint16_t path_mtu_of_direction(std::uint32_t direction) const;
  void ask(Pass& pass, std::vector<Change>& changes, const Change& change);
  void arm_work(Pass& pass);
  void carry_out(Pass& pass, const Change& change);
  void make(Pass& pass, std::uint32_t outbound, Port port);
  std::uint32_t take_number(std::uint32_t outbound, std::uint32_t inbound);
  void place(std::uint32_t number, Port port, Nanos now);
  void begin_placed(std::uint32_t number, bool told);
  bool make_room(PairSource source, unsigned pipe, bool numbered);
  bool displace(PairSource source, unsigned pipe);
  void record(const Change& change);
  void set_entries(std::uint32_t number);
  void begin(std::uint32_t number, std::uint32_t first_psn, std::uint32_t highest);
  void begin_anew(std::uint32_t number, std::uint32_t psn, bool sprayed);
  void jump(std::uint32_t number, std::uint32_t to);
  bool is_configured(const Connection& connection) const {
    return pairing_.source(connection.outbound) == flows::PairSource::kConfig;
  }
  void end(std::uint32_t number, bool forget_pair);
  void release_stash(Connection& connection);
  bool has_released() const { return released_sent_ != released_.size(); }
  void send_released(Pass& pass);
  bool send(Pass& pass, const NackHeaders& headers, const StashedNack& nack);
  bool is_alive(std::uint32_t number, Nanos now);

  // Directions, and what is told of them.
  void heard(std::uint32_t direction, Port port, Nanos now);
  void unlist(std::uint32_t direction);
  void forget(std::uint32_t direction);
  bool make_room(std::uint32_t directions, Nanos now);
  void tell(const std::vector<ConnectionConfig>& rows);
  void tell(const ConnectionConfig& row);
  void withdraw(std::uint32_t direction);
  void age(Pass& pass);
  void age_stashes(Pass& pass);
  void arm_ageing(Pass& pass);

  const switch_model::SwitchInfo& info_;
  State state_;
  Counters& count_;
  Nanos stash_timeout_, qp_timeout_;
  std::uint32_t window_;
  bool learning_;
  flows::Pairing pairing_;
  std::vector<flows::DirectionKey> stimuli_;  // of the first configured connections
  std::vector<DirectionNotes> notes_;
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> free_connections_;
  std::vector<std::vector<std::uint32_t>> free_slots_;  // by pipe
  std::vector<std::array<std::uint32_t, 4>> placed_;    // by pipe and source: connections with a slot
  std::array<Waiting, 256> waiting_{};                  // by port
  std::vector<std::uint32_t> told_;                     // outbound directions of configured connections
  std::vector<Released> released_;                      // NACKs of connections that have lost their state
  std::size_t released_sent_ = 0;
  std::uint32_t displace_next_ = 0;
  std::vector<Change> ingress_changes_, egress_changes_, carried_out_;
  std::vector<std::uint32_t> stashes_;  // connections whose stash is watched
  std::uint32_t generation_ = 0;
  Timer work_timer_, age_timer_, stash_timer_;
};

}  // namespace rocebox::themis
