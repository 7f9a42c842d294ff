// SPDX-License-Identifier: BSD-3-Clause
// Pairing: which two flows are the two directions of one RC connection. An ACK carries the
// requester's QPN and data the responder's, and no packet carries both; so the pair must be told,
// overheard, or worked out from PSNs.
#pragma once
#include <array>
#include <cstdint>

#include "runtime/flows/flow_table.h"
#include "runtime/packet/packet.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/mad.h"
#include "runtime/roce/parse.h"

namespace rocebox::flows {

/// One direction of a connection: who sends to whom, and the QP that receives.
struct DirectionKey {
  roce::Addresses addresses;
  std::uint32_t destination_qp;
  bool operator==(const DirectionKey&) const = default;
};

/// How a pair was found; a stronger source replaces a weaker one.
enum class PairSource : std::uint8_t { kNone, kLearned, kCm, kConfig };

/// What an ACK-like packet says of the requests: up to its PSN all is received, or all before it.
enum class ResponseKind : std::uint8_t { kReceived, kNotReceived };

/// Numbers directions 0, 1, 2... in the order in which they were first named. All memory is taken when
/// made; work for each packet is bounded by Limits::candidates.
class Pairing {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  struct Limits {
    std::uint32_t directions = 8192;  ///< beyond: not paired
    /// REQs of which nearly all find room until their REP comes. Twice as many are kept at most, in sets of four; in a
    /// full set an old one is forgotten.
    std::uint32_t handshakes = 1024;
    std::uint32_t candidates = 64;      ///< unpaired flows of one direction that learning looks at; more: no guess
    std::uint32_t confirmations = 3;    ///< consistent responses that make a learned pair sure
    std::uint32_t old_psns = 1u << 16;  ///< a response this far before the window is a duplicate, no contradiction
    std::uint32_t window = 0;  ///< packets that a sender has unacknowledged at most: what is learned from lies that
                               ///< near behind its last request; 0: not known
    /// Requests of a learned pair without a response, after which another QP's may take it: no fewer than a sender may
    /// have unacknowledged. Only with `keep_recent`.
    std::uint16_t silence = 16;
    /// Beyond `candidates`, those that were silent longest are not looked at (else: none is).
    bool keep_recent = false;
  };
  struct Counts {
    std::uint64_t learned = 0, confirmed = 0, undone = 0;
    std::uint64_t ambiguous = 0;    ///< responses that fitted several flows
    std::uint64_t crowded = 0;      ///< responses not looked at: more than Limits::candidates flows
    std::uint64_t refused = 0;      ///< directions beyond Limits::directions
    std::uint64_t displaced = 0;    ///< flows not looked at any more until they send: Limits::keep_recent
    std::uint64_t disbelieved = 0;  ///< messages of the connection manager without the one before it from the same
                                    ///< place, or with other identifiers
  };

  explicit Pairing(const Limits& limits);

  /// The number of `key`, new or known; kNone when full. `flow` is the owner's own number for it,
  /// kept and given back by flow(); kNone leaves it as it is.
  std::uint32_t add(const DirectionKey& key, std::uint32_t flow = kNone);
  std::uint32_t find(const DirectionKey& key) const { return table_.find(key); }

  /// A connection that is known: the QP `a_qpn` at address a and `b_qpn` at b. False when full or
  /// when a stronger source says otherwise.
  bool connect(const std::array<std::uint8_t, 16>& a, std::uint32_t a_qpn, const std::array<std::uint8_t, 16>& b,
               std::uint32_t b_qpn, PairSource source);

  /// A connection as the REQ and the REP of its handshake tell it. Index 0: what goes the way of the REP.
  struct Told {
    bool any = false;
    roce::Addresses way{};  ///< of the REP
    std::uint32_t qpns[2] = {0, 0}, ids[2] = {0, 0}, psns[2] = {0, 0};
  };

  /// What a message of the connection manager says of the requests of a connection's two directions.
  struct ConnectionEvent {
    bool begins = false;  ///< they begin at `psns`: the first REP of a handshake
    bool ends = false;    ///< a DREQ
    std::uint32_t directions[2] = {kNone, kNone}, psns[2] = {0, 0};
  };
  /// Looks at a packet to QP1 for a handshake of the connection manager: REQ, then REP, then the
  /// QPs are paired (REJ forgets the REQ). For packets with status kRoce and a right ICRC.
  /// `place`: where this end's host is, for an owner that knows: both messages of a handshake must be of one place, and
  /// no place can make the open handshakes of another be forgotten. A DREQ must name the connection's identifiers,
  /// where its handshake was seen.
  ConnectionEvent observe_mad(Packet packet, std::uint32_t place = 0);
  /// What observe_mad(packet) would pair anew: of a REP whose REQ was seen, and that is not a repeated one.
  Told would_pair(Packet packet, std::uint32_t place = 0);
  /// The directions of what was told, kNone where they are not known.
  std::array<std::uint32_t, 2> directions_of(const Told& told) const;
  /// Pairs what was told. The event says nothing when there is no room or a stronger source says otherwise.
  ConnectionEvent pair(const Told& told);

  /// The requests of `direction` begin anew with the next ones; a learned pair is not believed any more.
  void restart(std::uint32_t direction);

  /// The pair of `direction`, that the connection manager told, goes on only as long as its QPs respond: where they are
  /// silent and another QP responds, it is undone like a learned one. Until settle(direction).
  void contest(std::uint32_t direction);
  void settle(std::uint32_t direction);

  /// Whether neither QP of a pair has acknowledged the other's requests since watch_silence(). A response that fits no
  /// request is none: another QP may have given it.
  bool is_silent(std::uint32_t direction) const;
  void watch_silence(std::uint32_t direction);

  /// Forgets a direction, with its pair; its number will be given to another key.
  void forget(std::uint32_t direction);

  /// A request packet of `direction` that takes the PSNs first..last.
  void request(std::uint32_t direction, std::uint32_t first, std::uint32_t last);

  /// An ACK, NAK, RNR NAK, READ response or ATOMIC ACK in `direction`. Updates the partner's window, or
  /// learns, confirms or undoes a pair. Returns the partner then, or kNone.
  std::uint32_t response(std::uint32_t direction, std::uint32_t psn, ResponseKind kind);

  /// Directions that are known; their numbers may be higher where others were forgotten.
  std::uint32_t size() const { return table_.size(); }
  const DirectionKey& key(std::uint32_t direction) const { return table_.key(direction); }
  std::uint32_t partner(std::uint32_t direction) const { return directions_[direction].partner - 1; }
  std::uint32_t flow(std::uint32_t direction) const { return directions_[direction].flow - 1; }
  /// Whether requests of `direction` were seen, and the highest PSN that they took.
  bool requested(std::uint32_t direction) const { return directions_[direction].requested; }
  std::uint32_t highest(std::uint32_t direction) const { return directions_[direction].highest; }
  PairSource source(std::uint32_t direction) const { return directions_[direction].source; }
  /// Whether a pair is sure: told, overheard, or learned and confirmed.
  bool confirmed(std::uint32_t direction) const {
    const Direction& h = directions_[direction];
    return h.source > PairSource::kLearned || (h.source == PairSource::kLearned && h.agreed >= limits_.confirmations);
  }
  /// Brings the state of `direction` nearer.
  void prefetch(std::uint32_t direction) const { prefetch_line(&directions_[direction]); }
  const Counts& counts() const { return counts_; }

 private:
  // Numbers of directions and flows are kept plus one: 0 is none, as zeroed memory has it.
  struct Direction {
    std::uint32_t partner, flow;
    std::uint32_t host_pair;        // in host_pairs_
    std::uint32_t previous, next;   // in the list of unpaired requesters of this direction
    std::uint32_t oldest, highest;  // PSNs: oldest unacknowledged to highest sent
    PairSource source : 2;
    bool requested : 1, listed : 1;
    bool wide : 1;  // a request took several PSNs: the window is not one of packets
    bool contested : 1;
    bool acknowledged : 1;         // one of its requests was, since watch_silence()
    std::uint8_t agreed;           // responses consistent with a learned pair
    std::uint16_t unacknowledged;  // requests of a learned or contested pair since its last response, up to
                                   // Limits::silence
  };
  static_assert(sizeof(Direction) == 32, "two in a cache line");
  struct HostPair {
    std::uint32_t reverse;     // the other way's index
    std::uint32_t head, tail;  // first and last requester to learn from, plus one
    std::uint32_t listed;
    std::uint32_t directions;  // from the one to the other
  };
  // A REQ without its REP yet.
  struct HandshakeKey {
    roce::Addresses addresses;  // of the REQ
    std::uint32_t communication_id, place;
    bool operator==(const HandshakeKey&) const = default;
  };
  struct Handshake {
    HandshakeKey key;
    std::uint32_t qpn, psn;  // of the REQ: the PSN is for the requests to its sender
    std::uint64_t age;       // serial number, 0: free
    bool replied;            // a REP has come
  };
  // What the connection manager calls a connection at the end that sends in this direction.
  struct Identifier {
    std::uint32_t value;
    bool known;
  };
  static constexpr unsigned kWays = 4;

  Handshake* handshake_of(const roce::Addresses& way, const roce::CmRep& rep, std::uint32_t place);
  static Told told(const roce::Addresses& way, const roce::CmRep& rep, const Handshake& begun);
  ConnectionEvent connected(const roce::Addresses& way, const roce::CmRep& rep, std::uint32_t place);
  ConnectionEvent ended(const roce::Addresses& way, const roce::CmDreq& dreq);
  Handshake* find_handshake(const HandshakeKey& key);
  Handshake* make_handshake(const HandshakeKey& key);
  Handshake* handshake_set(const HandshakeKey& key);
  std::uint32_t host_pair_of(const roce::Addresses& addresses);
  void leave(std::uint32_t host_pair);
  bool bind(std::uint32_t a, std::uint32_t b, PairSource source);
  void unbind(std::uint32_t direction);
  void list(std::uint32_t direction);
  void unlist(std::uint32_t direction);
  bool contradicts(const Direction& requester, std::uint32_t psn) const;
  void requested_unpaired(std::uint32_t direction);
  bool may_respond(const Direction& candidate, std::uint32_t psn) const;
  std::uint32_t learn(std::uint32_t direction, std::uint32_t psn);

  Limits limits_;
  FlowTable<DirectionKey> table_;
  ZeroedArray<Direction> directions_;
  ZeroedArray<Identifier> identifiers_;
  FlowTable<roce::Addresses> host_pair_table_;
  ZeroedArray<HostPair> host_pairs_;
  ZeroedArray<Handshake> handshakes_;
  std::uint64_t handshake_serial_ = 0;
  Counts counts_;
};

}  // namespace rocebox::flows
