// SPDX-License-Identifier: BSD-3-Clause
// Inspector: requests and datagrams.
#include <algorithm>

#include "kernels/inspect/inspector.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {
namespace {

constexpr std::uint32_t kAtomicBytes = 8;

}  // namespace

PsnPacket Inspector::psn_packet(Packet packet, Held held, Nanos now) const {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  PsnPacket result;
  result.now = now;
  result.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  result.trimmed = held == Held::kTrimmed;
  result.payload = result.trimmed ? 0 : packet.meta().payload_bytes;
  result.size = result.payload;
  result.has_id = packet.meta().ip_version == 4;
  if (result.has_id)
    result.id = static_cast<std::uint16_t>(packet.header<roce::Ipv4>(packet.meta().l3_offset)->identification);
  result.starts = info.has(roce::kStartsMessage);
  result.ends = info.has(roce::kEndsMessage);
  result.reliable = info.service == roce::Service::kRc;
  return result;
}

// What a go-back-N sender would send again: from the first PSN that is missing to the highest that comes before what it
// sends again could, a round trip after the packet that showed the loss. More losses meanwhile are among these.
void Inspector::go_back(PsnStream& stream, PsnClass what, std::int64_t high_before, std::uint64_t skipped,
                        Nanos now) const {
  if (what == PsnClass::kRestart || what == PsnClass::kRetransmission) stream.going_back_until = 0;  // it did
  if (what != PsnClass::kInOrder) return;
  if (now >= stream.going_back_until) stream.going_back_until = 0;
  if (skipped != 0 && stream.going_back_until == 0) {
    stream.going_back_until = now + config_.go_back_n_rtt;
    stream.go_backs++;
  }
  if (stream.going_back_until != 0) stream.go_back_packets += static_cast<std::uint64_t>(stream.high - high_before);
}

// Counts the packet in its PSN space, and lists what happened.
PsnClass Inspector::track(std::uint32_t index, PsnSpace space, const PsnPacket& facts) {
  Flow& flow = flows_[index];
  const bool responses = space == PsnSpace::kResponses;
  PsnStream& stream = responses ? flow.responses : flow.requests;
  const PsnTracker& tracker = responses ? responses_ : requests_;
  if (stream.going_back_until == 0 && tracker.add_next(stream, ring(index, space), flow.ids, facts))
    return PsnClass::kInOrder;
  return track_any(index, space, facts);
}

PsnClass Inspector::track_any(std::uint32_t index, PsnSpace space, const PsnPacket& facts) {
  Flow& flow = flows_[index];
  const bool responses = space == PsnSpace::kResponses;
  PsnStream& stream = responses ? flow.responses : flow.requests;
  const std::uint64_t holes = stream.holes, gaps = stream.gaps, filled = stream.holes_filled_late,
                      beyond = stream.beyond_window, above = stream.out_of_sequence, below = stream.duplicate_requests,
                      timeouts = stream.timeouts_suspected;
  const std::int64_t high = stream.high;
  const PsnClass what = (responses ? responses_ : requests_).add(stream, ring(index, space), flow.ids, facts);
  count_class(what);
  if (config_.go_back_n_rtt != 0 && facts.reliable) go_back(stream, what, high, stream.holes - holes, facts.now);
  const bool quiet = stream.holes == holes && stream.out_of_sequence == above && stream.beyond_window == beyond;
  if (what == PsnClass::kInOrder && quiet && !facts.trimmed) return what;
  const auto skipped = static_cast<std::uint32_t>(stream.holes - holes);
  counters_.holes.add(skipped);
  if (responses) counters_.response_gaps.add(stream.gaps - gaps);
  counters_.holes_filled_late.add(stream.holes_filled_late - filled);
  counters_.beyond_window.add(stream.beyond_window - beyond);
  counters_.duplicate_request.add(stream.duplicate_requests - below);
  counters_.out_of_sequence.add(stream.out_of_sequence - above);
  counters_.timeouts_suspected.add(stream.timeouts_suspected - timeouts);

  if (skipped)
    log(index, EventKind::kLost, space, roce::psn_add(facts.psn, -std::int64_t{skipped}), skipped, facts.now);
  if (stream.timeouts_suspected != timeouts) log(index, EventKind::kTimeout, space, facts.psn, 1, facts.now);
  if (what == PsnClass::kRetransmission)
    log(index, EventKind::kRetransmitted, space, facts.psn, facts.width, facts.now);
  if (what == PsnClass::kDuplicate) log(index, EventKind::kDuplicate, space, facts.psn, facts.width, facts.now);
  if (what == PsnClass::kUndecided) log(index, EventKind::kUndecided, space, facts.psn, facts.width, facts.now);
  if (what == PsnClass::kOutOfOrder) {
    if (stream.holes_filled_late != filled)
      flow.log.found(events_.data() + std::size_t{index} * events_max_, events_max_, space, facts.psn, facts.width);
    log(index, EventKind::kOutOfOrder, space, facts.psn, facts.width, facts.now);
  }
  if (what == PsnClass::kRestart)
    log(index, EventKind::kRestart, space, static_cast<std::uint32_t>(stream.first) & roce::kPsnMask, 1, facts.now);
  if (facts.trimmed) log(index, EventKind::kTrimmed, space, facts.psn, 1, facts.now);
  return what;
}

void Inspector::log(std::uint32_t index, EventKind kind, PsnSpace space, std::uint32_t psn, std::uint32_t count,
                    Nanos now, std::uint8_t detail) {
  flows_[index].log.add(events_.data() + std::size_t{index} * events_max_, events_max_,
                        {now, psn, count, kind, space, detail});
}

void Inspector::request(std::uint32_t index, Packet packet, Held held, Nanos now) {
  Flow& flow = flows_[index];
  PsnPacket facts = psn_packet(packet, held, now);
  if (!facts.reliable) flow.uc.add(facts);
  if (held == Held::kBth && roce::opcode_info(packet).has(roce::kHasReth)) flow.reth_unknown++;
  if (flow.open_read_unsized) settle_unsized_read(index, roce::psn_add(facts.psn, -1));
  if (flow.open_read_bytes) settle_read(index, &facts.psn);
  if (packet.meta().opcode == IBV_OPCODE_RC_RDMA_READ_REQUEST) read_length(flow, packet, facts);
  const bool atomic = roce::opcode_info(packet).has(roce::kHasAtomicEth);
  if (atomic) facts.size = kAtomicBytes;
  facts.asks = facts.read || atomic;
  const bool goes_on = flow.requests.old_was_sent_again && flow.requests.old_next == facts.psn;
  const PsnClass what = track(index, PsnSpace::kRequests, facts);
  const bool highest = what <= PsnClass::kRestart;
  if (highest) {
    const bool open = facts.read && facts.sized && facts.width == 1 && !known_pmtu(flow);
    flow.open_read_bytes = open && facts.size > roce::kPathMtus.front() ? facts.size : 0;
    flow.open_read_unsized = facts.read && !facts.sized;
  }
  if (what == PsnClass::kRestart) restarted(index);
  if (flow.direction == flows::Pairing::kNone) return;
  pairing_.request(flow.direction, facts.psn, roce::psn_add(facts.psn, facts.width - 1));
  if (Flow* partner = facts.read && !highest ? partner_of(flow) : nullptr)
    asked_again(partner->responses, facts, goes_on);
}

// Responses may be sent again now: to this READ, and where it goes on from one before it, to all of that run that have
// not come.
void Inspector::asked_again(PsnStream& responses, const PsnPacket& read, bool goes_on) const {
  const std::uint32_t more = read.sized ? read.width : window_;
  const std::int32_t before = roce::psn_distance(read.psn, responses.asked_first);
  if (goes_on && responses.asked_count != 0 && before > 0) {
    responses.asked_count = static_cast<std::uint32_t>(before) + more;
  } else {
    responses.asked_first = read.psn;
    responses.asked_count = more;
  }
}

// The PSNs of the responses begin anew with those of the requests.
void Inspector::restarted(std::uint32_t index) {
  const Flow& flow = flows_[index];
  if (flow.direction == flows::Pairing::kNone) return;
  if (Flow* partner = partner_of(flow))
    responses_.begin_anew(partner->responses, ring(index_of(*partner), PsnSpace::kResponses));
  pairing_.restart(flow.direction);
  pairing_.request(flow.direction, static_cast<std::uint32_t>(flow.requests.first) & roce::kPsnMask,
                   flow.requests.high_psn());
}

void Inspector::datagram(Flow& flow, Packet packet, Held held, Nanos now) {
  flow.requests.messages += held != Held::kTrimmed;
  if (held == Held::kAll) connection_event(pairing_.observe_mad(packet));
  const roce::Deth* deth = roce::deth(packet);
  if (!deth) {
    flow.deth_unknown++;
    return;
  }
  const SenderKey key{roce::addresses(packet).source, static_cast<std::uint32_t>(deth->source_qp)};
  const std::uint32_t index = sender_table_.insert(key);
  if (index == kNone) return counters_.senders_full.add();
  Sender& sender = senders_[index];
  sender.packets++;
  count_class(requests_.add(sender.datagrams, sender_rings_.data() + std::size_t{index} * window_, sender.ids,
                            psn_packet(packet, held, now)));
}

// A handshake passed: the requests of both directions begin anew where it says. After a disconnect they may begin
// anywhere.
void Inspector::connection_event(const flows::Pairing::ConnectionEvent& event) {
  if (!event.begins && !event.ends) return;
  for (unsigned i = 0; i < std::size(event.directions); i++) {
    if (event.directions[i] == flows::Pairing::kNone) continue;
    const std::uint32_t index = pairing_.flow(event.directions[i]);
    if (index == flows::Pairing::kNone || !flows_[index].requests.used) continue;
    PsnStream& stream = flows_[index].requests;
    stream.told = event.begins;
    stream.told_psn = event.psns[i];
    stream.closed = event.ends;
  }
}

}  // namespace rocebox::inspect
