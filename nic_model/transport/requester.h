// SPDX-License-Identifier: BSD-3-Clause
// Requester: the side of a queue pair that sends requests and waits for responses (IB specification, volume 1, 9.7).
#pragma once
#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "nic_model/limits.h"
#include "nic_model/queues/send_queue.h"
#include "nic_model/transport/psn_set.h"
#include "runtime/component/fields.h"
#include "runtime/kernel/kernel.h"
#include "runtime/packet/prefetch.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::nic_model {

class Core;
class Qp;

/// Work requests are kept from when the NIC reads them until they are complete, in a ring: those before `current_` have
/// been sent, if only once; `oldest_` is the first that is not complete. PSNs lie one behind the other over all of
/// them, so that one PSN says where a requester stands.
class Requester {
 public:
  Requester(Core& core, Qp& qp);

  /// RTS: the first PSN is the attributes'.
  void start();
  void reset();
  /// Reads what the host has posted since. Returns whether there was anything.
  bool fetch();
  bool wants_to_send(Nanos now) const { return (current_ != end_ || resends_) && may_send(now); }
  /// One packet. Empty: there is no packet buffer, or what was next needed none.
  PacketPtr send(Context& context);

  // What comes back; each returns what the packet's end is counted as.

  /// An ACK, RNR NAK or NAK.
  Counter& on_acknowledge(Context& context, Packet packet);
  Counter& on_read_response(Context& context, Packet packet);
  Counter& on_atomic_response(Context& context, Packet packet);
  void on_retransmit_timer(Context& context);
  void on_rnr_timer(Context& context);
  /// The queue pair's rate lets it send again.
  void on_pace_timer(Context& context);
  /// Bits per second at which packets leave at most, by all that limits them; 0: nothing does.
  double pace_rate() const;
  /// pace_rate() was `before`.
  void on_rate_changed(Context& context, double before);
  /// Completes all that was posted, in error.
  void flush(Context& context);
  bool has_outstanding() const { return una_ != sent_end_; }
  /// A message has been begun, and some of it is still to be sent.
  bool in_message() const { return packet_ > 0; }
  /// Of the datagram that is next; 0: there is none.
  std::uint8_t traffic_class() const;
  /// The queue pair is in SQD: what has begun goes on to its end, and then, where `tells`, there is an event, each
  /// time.
  void drain(bool tells) {
    tells_drained_ = tells;
    tell_drained();
  }
  /// Nobody says which way leads to the peer: what is posted fails as after the last retry.
  void give_up(Context& context);

  void prefetch() const {
    prefetch_line(this);
    prefetch_line(reinterpret_cast<const std::uint8_t*>(this) + 64);
  }
  /// The work request that send() needs, when the requester itself is near.
  void prefetch_to_send() const { prefetch_line(&at(current_)); }
  /// The one that is complete next, and the place of the one that is read next.
  void prefetch_to_complete() const {
    prefetch_line(&at(oldest_));
    prefetch_line(&at(end_));
  }
  /// Work requests that are read and not sent; and not complete.
  std::uint32_t unsent() const { return end_ - current_; }
  std::uint32_t incomplete() const { return end_ - oldest_; }

  /// For a watchdog: differs whenever a request was sent for the first time or acknowledged, or a try was counted. That
  /// the other side is not ready, which may go on for ever, is none.
  std::uint64_t steps() const {
    const unsigned tries = (7u - (retries_ & 7u)) * 8 + (7u - (rnr_retries_ & 7u));
    return (std::uint64_t{una_} + sent_end_) * 64 + tries;
  }
  /// Until when nothing need happen to requests: until the next try, or until their rate lets the next one leave.
  Nanos waits_until() const {
    const Nanos response = has_outstanding() && deadline_ != kNever ? deadline_ : 0;
    return current_ != end_ ? std::max(response, paced_until_) : response;
  }
  /// For a watchdog: there are requests, and no timer would do anything for them.
  bool waits_for_nothing() const;

  std::uint32_t unacknowledged_psn() const { return una_; }
  std::uint32_t next_psn() const { return current_ == end_ ? next_psn_ : works_[current_ & mask_].first_psn + packet_; }

 private:
  SendWork& at(std::uint32_t index) { return works_[index & mask_]; }
  const SendWork& at(std::uint32_t index) const { return works_[index & mask_]; }
  // Whether packets of a WRITE have addresses of their own: an unreliable message is placed whole or not at all.
  bool places_directly() const;
  bool may_send(Nanos now) const;
  bool may_begin(const SendWork& work) const;
  unsigned reads_most() const;
  bool begin(Context& context, SendWork& work);
  bool may_go_on(Context& context, std::uint32_t index);
  bool run_local(Context& context, SendWork& work);
  ibv_wc_status bind(const SendWork& work);
  PacketPtr send_request(Context& context, SendWork& work);
  PacketPtr send_data(Context& context, const SendWork& work, std::uint32_t packet, bool ack_req);
  bool is_datagram_possible(const SendWork& work) const;
  PacketPtr send_datagram(Context& context, SendWork& work);
  PacketPtr build(Context& context, const SendWork& work, std::uint8_t opcode, std::uint32_t psn, std::uint64_t offset,
                  std::uint32_t bytes, bool ack_req);
  void sent(Context& context, SendWork& work, std::uint32_t psns);
  void pace(Context& context, Packet packet);
  bool is_paced() const;
  bool wants_ack(std::uint32_t psn, bool is_last) const;
  // The responder has said that it has no receive request for it.
  bool is_without_credit(const SendWork& work) const;
  void take_credits(const roce::Aeth& aeth);

  std::uint32_t pending_psn(std::uint32_t index) const { return at(index).first_psn + at(index).responded; }
  std::uint32_t acknowledge_to(Context& context, std::uint32_t end);
  void acknowledged(Context& context, std::uint32_t end);
  void forget_came(std::uint32_t end);
  void complete_done(Context& context);
  void tell_drained();
  void end_read(SendWork& work);
  void seek(std::uint32_t psn);
  std::uint32_t index_of(std::uint32_t psn) const;
  void go_back(Context& context, std::uint32_t psn);
  void ask_anew(std::uint32_t psn);
  // Whether a packet that asked for a response has left, and its response has not come.
  bool expects_response() const { return roce::psn_distance(ack_asked_, una_) >= 0; }
  bool retry(Context& context);
  // recovery.cc
  void recover(Context& context, std::uint32_t psn, std::uint32_t came);
  void go_back_once(Context& context, std::uint32_t psn);
  bool has_to_resend() const { return resends_ && has_again(); }
  bool has_again() const;
  // No NAK has come yet of what is sent from now on.
  void forget_recovery();
  void prefetch_behind(const SendWork& work, std::uint64_t offset, std::uint32_t bytes) const;
  PacketPtr resend(Context& context);
  std::uint32_t next_hole();
  void count_nak(roce::AethKind kind, roce::NakCode code);
  void on_nak(Context& context, std::uint32_t psn, roce::NakCode code, std::uint32_t msn);
  void not_ready(Context& context, std::uint32_t psn, unsigned timer_code);
  void fail(Context& context, std::uint32_t index, ibv_wc_status status);
  void arm_retransmission(Context& context);
  Nanos timeout() const;

  // What each packet needs lies together, at the beginning: in two cache lines.
  Core& core_;
  Qp& qp_;
  std::vector<SendWork> works_;
  std::uint32_t mask_;
  std::uint32_t oldest_ = 0, current_ = 0, end_ = 0;
  std::uint32_t packet_ = 0;                   // of works_[current_]: the next to be sent
  std::uint32_t next_psn_ = 0;                 // of the next work request that is read
  std::uint32_t una_ = 0;                      // oldest PSN without a response
  std::uint32_t sent_end_ = 0;                 // behind the highest PSN that was ever sent
  std::uint32_t ack_asked_ = 0;                // last PSN of the last packet that asked for a response
  unsigned reads_count_ = 0, reads_sent_ = 0;  // of reads_
  bool resends_ = false;                       // there may be something in `again_`, or `recovers_`
  bool recovers_ = false;   // selective: until all that was sent when the first NAK came is acknowledged
  bool went_back_ = false;  // to una_, as a NAK asked
  bool tells_drained_ = false;
  bool counts_credits_ = false;                          // the last ACK had a number of them
  static constexpr Nanos kFullBucket = -3600 * kSecond;  // longer ago than any burst lasts
  Nanos deadline_ = kNever, rnr_until_ = 0, paced_until_ = kFullBucket;
  std::uint32_t messages_ = 0;      // read so far
  std::uint32_t credit_limit_ = 0;  // number of the last message that there is a credit for
  std::uint8_t retries_ = 0, rnr_retries_ = 0;
  std::uint32_t checked_at_ = 0;  // Memory::revocations() when nothing was on its way: as many, and all keys are good

  std::uint32_t implied_nak_psn_ = 0;  // the last PSN that an implied NAK was for
  // Of recoveries that send single packets again.
  std::uint32_t recovery_end_ = 0, hole_ = 0, missing_end_ = 0;
  PsnFifo again_;  // rnic_sr: PSNs, in order of the NAKs
  PsnSet came_;    // selective: what NAKs said has come
  // Indices of READs and atomics that were asked for and are not done, in order; the first `reads_sent_` of them have
  // not been gone back behind.
  unsigned reads_first_ = 0;
  std::array<std::uint32_t, kRdAtomicMax> reads_;
};

}  // namespace rocebox::nic_model
