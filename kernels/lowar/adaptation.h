// SPDX-License-Identifier: BSD-3-Clause
// Adaptation of one stream at its receiver (LoWAR, section IV-C's negotiation channel; section VII leaves the rest to
// future work): what is measured of the link and of messages, what the sender says of (r, c), and what it is asked for.
#pragma once
#include <cstdint>
#include <optional>

#include "kernels/lowar/loss_meter.h"
#include "kernels/lowar/message_meter.h"
#include "kernels/lowar/redundancy.h"
#include "kernels/lowar/repair_header.h"
#include "kernels/lowar/stream.h"

namespace rocebox::lowar {

class Adaptation {
 public:
  /// What became of each packet, in the order of PSNs; `lost_apart`: nobody knows which of them.
  void came() { losses_.came(); }
  void lost(std::uint32_t packets) { losses_.lost(packets); }
  void lost_apart(std::uint32_t packets) { losses_.lost_apart(packets); }
  /// One that counts as lost came after all.
  void take_back_lost() { losses_.take_back(); }

  /// The packet has its place in the sequence. Two messages, of which one gap has the end and the beginning, count as
  /// one.
  void count_message(Packet packet, std::uint32_t psn);
  /// So many PSNs are passed over at once: many enough for another message to have begun meanwhile.
  void leave_out(std::int32_t psns);
  /// The sequence goes on at `psn` in place of `expected`. The message that is under way goes on where its own packets
  /// are sent again.
  void restart(std::uint32_t psn, std::uint32_t expected);

  /// Whether it is time to decide().
  bool due() const { return losses_.due() || messages_.due(); }
  /// Whether what was seen by now asks for another setting than `current`, which the sender uses; if so, it is to be
  /// asked for from now on. Not before the last one has had its time, `dwell`. `expected`: where the sequence is.
  bool decide(Nanos now, Coding current, std::uint32_t expected, const Aim& aim, Nanos dwell);

  /// What to ask the sender for.
  struct Request {
    Coding coding;
    std::uint16_t serial = 0;
    std::uint32_t token = 0;
  };
  bool request_due(Nanos now) const { return asking_ && now >= ask_at_; }
  /// When request_due(): the request, which is due again later, ever more seldom; empty: it has gone out often enough,
  /// and is given up.
  std::optional<Request> next_request(Nanos now);

  /// Whether a sender with this token said what was said last.
  bool is_sender(std::uint32_t token) const { return token_ == token; }
  /// The sender says its setting, and to which request it comes. False: a newer packet has overtaken this, which says
  /// nothing of the setting.
  bool learn(const NegotiationHeader& header);

 private:
  Coding choose_setting(Coding current, std::uint32_t expected, const Aim& aim);

  Nanos ask_at_ = 0;       // when it is asked again
  Nanos asked_first_ = 0;  // when this setting was asked for first; 0: never
  LossMeter losses_;
  MessageMeter messages_;
  std::uint32_t first_psn_ = kNoPsn;  // of the message that is under way, when its first packet came
  std::uint32_t token_ = 0;           // the sender's; 0: it heeds no requests
  Coding asked_;                      // what it is asked for
  std::uint16_t asked_serial_ = 0;    // of the last request
  std::uint16_t setting_serial_ = 0;  // of the request that the sender's setting comes from
  std::uint8_t asked_times_ = 0;
  bool asking_ = false;
};

}  // namespace rocebox::lowar
