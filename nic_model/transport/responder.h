// SPDX-License-Identifier: BSD-3-Clause
// Responder: the side of a queue pair that executes requests and answers them (IB specification, volume 1, 9.7, 9.8).
#pragma once
#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nic_model/limits.h"
#include "nic_model/queues/receive_queue.h"
#include "nic_model/transport/group_writes.h"
#include "nic_model/transport/psn_set.h"
#include "nic_model/transport/received.h"
#include "runtime/kernel/kernel.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::nic_model {

class Core;
class Qp;

class Responder {
 public:
  Responder(Core& core, Qp& qp) : core_(core), qp_(qp) {}
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

  /// RTR: the first PSN is the attributes'.
  void start();
  void reset();
  /// As many READs and atomics can be answered again as the attributes say.
  void keep_resources();
  /// A request of a connected queue pair; `behind` says why it ended.
  Counter& on_request(Context& context, Packet packet);
  /// A datagram.
  Counter& on_datagram(Context& context, Packet packet);
  /// A WRITE of an unreliable connection to a group (group_writes.h).
  Counter& on_group_write(Context& context, Packet packet);
  GroupWrites& group_writes() { return group_writes_; }

  /// There is a response, and the way to the peer is known.
  bool wants_to_send() const;
  /// One packet of the responses, in the order of the requests. Empty: there is no packet buffer.
  PacketPtr send(Context& context);
  /// Flushes what is posted to receive, and what is still to be sent; but a NAK that says why still leaves, and what is
  /// before it: requesters are told of their requests in order.
  void flush(Context& context);

  /// Whether it stands there with something to send.
  void prefetch_state() const { prefetch_line(this); }
  void prefetch() const {
    prefetch_line(this);
    prefetch_line(reinterpret_cast<const std::uint8_t*>(this) + 64);
  }

  /// The rate of responses to READs lets the next one go.
  void on_pace_timer(Context& context);

  std::uint32_t expected_psn() const { return epsn_; }
  /// A READ's response has been begun, and some of it is still to be sent.
  bool in_message() const { return waiting_ && responses_[first_].sent > 0; }

 private:
  enum class Message : std::uint8_t { kNone, kSend, kWrite, kLost };
  // A response that is still to be sent, or of a READ: whose packets are.
  struct Response {
    enum class Kind : std::uint8_t { kAcknowledge, kRead, kAtomic };
    Kind kind = Kind::kAcknowledge;
    std::uint8_t syndrome = 0;
    bool is_again = false;  // to a duplicate, which takes no resource
    std::uint32_t psn = 0, msn = 0;
    std::uint32_t packets = 0, sent = 0;
    std::uint32_t rkey = 0, bytes = 0;
    std::uint64_t address = 0;  // or what an atomic found
  };
  // A READ or atomic that may have to be answered again (9.7.5.1.4).
  struct Resource {
    bool is_atomic = false;
    std::uint32_t psn = 0, packets = 0, rkey = 0, bytes = 0, msn = 0;
    std::uint64_t address = 0, original = 0;
  };

  // responder.cc: reliable connections
  Counter& on_reliable(Context& context, Packet packet);
  Counter& duplicate(Context& context, Packet packet);
  Counter& execute(Context& context, Packet packet);
  bool opcode_fits(const roce::OpcodeInfo& info) const;
  Counter& execute_data(Context& context, Packet packet);
  Counter& execute_read(Context& context, Packet packet);
  Counter& execute_atomic(Context& context, Packet packet);
  bool may_go_on();
  bool take_receive(Context& context);
  Counter& finish_message(Context& context, Packet packet);
  Counter& refuse(Context& context, roce::NakCode code, ibv_event_type event);
  Counter& too_long(Context& context, const Received& what);
  Counter& fail_receive(Context& context, const Received& what, ibv_wc_status status);
  Counter& not_ready(Context& context);
  void accepted(Context& context, Packet packet, std::uint32_t psns);
  bool length_fits(Packet packet, const roce::OpcodeInfo& info) const;
  void place(Packet packet);
  bool was_placed(Packet packet);

  // placement.cc
  Counter& place_ahead(Context& context, Packet packet);
  void nak_gap(Context& context, std::uint32_t came);
  void catch_up(Context& context);
  bool has_ahead(std::uint32_t psns) const;

  // responder_unreliable.cc
  Counter& on_unreliable(Context& context, Packet packet);
  Counter& lose_message(Context& context);

  // group_writes.cc
  Counter* begin_group_write(Packet packet, GroupWrites::Message& message);
  Counter& place_group_write(Context& context, Packet packet, GroupWrites::Message& message);

  // responses.cc
  // False: it is not said, since too many wait.
  bool acknowledge(Context& context, std::uint32_t psn, std::uint8_t syndrome);
  bool push(Context& context, const Response& response);
  void add_resource(const Resource& resource);
  // The first of those that are still to be sent, and the last.
  Response& front() { return responses_[first_]; }
  Response& back() { return from_back(0); }
  // So many places before the last one.
  Response& from_back(std::uint32_t places) {
    const std::uint32_t at = std::uint32_t{first_} + waiting_ - 1 - places;
    return responses_[at < room_ ? at : at - room_];
  }
  // Of an empty ring the first place is the next one: mostly there is one response, and it lies always there.
  void pop() {
    waiting_--;
    first_ = waiting_ == 0 || first_ + 1 == room_ ? std::uint16_t{0} : static_cast<std::uint16_t>(first_ + 1);
  }
  void grow();
  PacketPtr send_read(Context& context, Response& response);
  void refuse_to_go_on(Context& context, Response& response, std::uint32_t psn);
  std::uint8_t with_credits(std::uint8_t syndrome) const;
  void pace(Context& context, Packet packet);

  // What each packet needs lies together, at the beginning: in two cache lines.
  Core& core_;
  Qp& qp_;
  std::uint32_t epsn_ = 0, msn_ = 0;
  bool nak_sent_ = false;      // a NAK or RNR NAK for epsn_, which is not to be said again until epsn_ comes
  bool places_ahead_ = false;  // direct placement: `ahead_` is in use
  bool is_placed_ = false;     // epsn_'s packet came ahead and had no receive request in its turn: `placed_`
  bool is_paced_ = false;      // responses to READs wait for their rate
  Message message_ = Message::kNone;
  std::uint32_t rkey_ = 0;
  // A ring of responses that are still to be sent: `few_`, or once there were more `many_`, which has one place beyond
  // kMany for a NAK that ends the queue pair.
  static constexpr std::uint16_t kFew = 2, kMany = 2 * kRdAtomicMax + 2;
  Response* responses_ = few_;
  std::uint16_t room_ = kFew, first_ = 0, waiting_ = 0;
  std::uint16_t reads_waiting_ = 0;                        // READs and atomics of responses_, without duplicates
  std::uint64_t address_ = 0, length_ = 0, received_ = 0;  // of a WRITE: its RETH; bytes of the message so far
  std::uint32_t checked_at_ = 0;                           // of a WRITE: memory's revocations when its key was checked
  std::uint64_t message_bytes_ = 0;  // of a WRITE: with direct placement its last packet's RETH says more than its own
  Response few_[kFew];
  ReceiveWork work_;
  std::unique_ptr<Response[]> many_;
  // Direct placement: what has come ahead of epsn_, and the completions that wait until it is reached, by PSN.
  struct Ahead {
    std::uint32_t psn, rkey;
    std::uint64_t address;
    Received what;
  };
  Ahead placed_;  // see is_placed_
  PsnSet ahead_;
  std::vector<Ahead> completions_ahead_;
  std::optional<std::uint32_t> ack_wanted_;  // the farthest PSN ahead that asked for an ACK
  std::vector<Resource> resources_;          // the last max_dest_rd_atomic of them, by number; a power of two of places
  std::uint32_t resources_end_ = 0;          // number so far
  Nanos paced_until_ = 0;
  GroupWrites group_writes_;
};

}  // namespace rocebox::nic_model
