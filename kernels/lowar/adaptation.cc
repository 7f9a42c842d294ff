// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/adaptation.h"

#include <cstdlib>
#include <utility>

#include "runtime/roce/psn.h"

namespace rocebox::lowar {

using roce::psn_distance;

void Adaptation::count_message(Packet packet, std::uint32_t psn) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (info.has(roce::kStartsMessage)) first_psn_ = psn;
  if (!info.has(roce::kEndsMessage)) return;
  const std::uint32_t first = std::exchange(first_psn_, kNoPsn);
  if (first != kNoPsn && !roce::psn_before(psn, first))
    messages_.ended(static_cast<std::uint32_t>(psn_distance(psn, first)) + 1);
}

void Adaptation::leave_out(std::int32_t psns) {
  if (std::abs(psns) >= static_cast<std::int32_t>(kBlockPacketsMax)) first_psn_ = kNoPsn;
}

void Adaptation::restart(std::uint32_t psn, std::uint32_t expected) {
  if (first_psn_ == kNoPsn) return;
  if (roce::psn_before(psn, first_psn_) || roce::psn_after(psn, expected)) first_psn_ = kNoPsn;
}

bool Adaptation::decide(Nanos now, Coding current, std::uint32_t expected, const Aim& aim, Nanos dwell) {
  if (asked_first_ && now - asked_first_ < dwell) return false;
  if (asking_) current = asked_;
  const bool other_messages = messages_.due() && messages_.look(current, aim.redundancy_max);
  const bool other_losses = losses_.due() && losses_.look();
  if (!other_messages && !other_losses) return false;
  const Coding wanted = token_ ? choose_setting(current, expected, aim) : current;
  if (other_losses) losses_.done();
  if (wanted == current) return false;
  asked_ = wanted;
  asking_ = true;
  asked_times_ = 0;
  asked_serial_++;
  ask_at_ = asked_first_ = now;
  return true;
}

Coding Adaptation::choose_setting(Coding current, std::uint32_t expected, const Aim& aim) {
  MessageMeter messages = messages_;
  // A long message counts before its end. Its whole blocks only: of the last one the first packets alone would make
  // every setting dearer than it is.
  constexpr std::int32_t kBlock = kBlockPacketsMax;
  const std::int32_t under_way = first_psn_ == kNoPsn ? 0 : psn_distance(expected, first_psn_);
  if (under_way >= kBlock) messages.ended(static_cast<std::uint32_t>(under_way / kBlock * kBlock));
  // What was chosen by other messages costs too much; that the stream began so says nothing of them.
  if (asked_first_ && messages.cost(current) > aim.redundancy_max) {
    messages_.retreat();
    messages.retreat();
  }
  messages_.decided();
  return choose(current, losses_, messages, aim);
}

std::optional<Adaptation::Request> Adaptation::next_request(Nanos now) {
  if (asked_times_ == kRequestsMax) {
    asking_ = false;
    return {};
  }
  ask_at_ = now + (kRequestInterval << asked_times_++);
  return Request{asked_, asked_serial_, token_};
}

bool Adaptation::learn(const NegotiationHeader& header) {
  const bool same_sender = is_sender(header.token);
  const bool newest = !same_sender || !is_newer(setting_serial_, header.serial);
  if (newest) setting_serial_ = header.serial;
  if (!same_sender) {  // another one, or it was restarted
    token_ = header.token;
    asked_serial_ = header.serial;
    asking_ = false;
  }
  if (!is_newer(asked_serial_, header.serial)) {
    asked_serial_ = header.serial;
    asking_ = false;
  }
  return newest;
}

}  // namespace rocebox::lowar
