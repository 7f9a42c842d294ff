// SPDX-License-Identifier: BSD-3-Clause
// Inspector: responses, and what they say of the requests.
#include <algorithm>

#include "kernels/inspect/inspector.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {

void Inspector::syndrome(std::uint32_t index, Packet packet, std::uint32_t psn, Nanos now) {
  Flow& flow = flows_[index];
  const roce::Aeth* aeth = roce::aeth(packet);
  if (!aeth) {
    flow.aeth_unknown++;
    return counters_.aeth_unknown.add();
  }
  const unsigned value = roce::aeth_value(aeth->syndrome);
  const unsigned code = std::min(value, kNakSlots - 1);
  switch (roce::aeth_kind(aeth->syndrome)) {
    case roce::AethKind::kAck:
      flow.acks++;
      return counters_.acks.add();
    case roce::AethKind::kRnrNak: {
      const Nanos timer = roce::rnr_timer_nanos(value);
      flow.rnr_timer_min = flow.rnr_naks ? std::min(flow.rnr_timer_min, timer) : timer;
      flow.rnr_timer_max = std::max(flow.rnr_timer_max, timer);
      flow.rnr_naks++;
      log(index, EventKind::kRnrNak, PsnSpace::kRequests, psn, 1, now, static_cast<std::uint8_t>(value));
      return counters_.rnr_naks.add();
    }
    case roce::AethKind::kNak:
      flow.naks[code]++;
      counters_.nak_codes[code]->add();
      log(index, EventKind::kNak, PsnSpace::kRequests, psn, 1, now, static_cast<std::uint8_t>(value));
      return counters_.naks.add();
    case roce::AethKind::kReserved:
      return;
  }
}

void Inspector::response(std::uint32_t index, Packet packet, Held held, Nanos now) {
  Flow& flow = flows_[index];
  const PsnPacket facts = psn_packet(packet, held, now);
  const bool of_read = roce::opcode_info(packet).has(roce::kIsReadResponse);
  bool gap = false;
  if (of_read) {
    const std::uint64_t gaps = flow.responses.gaps;
    track(index, PsnSpace::kResponses, facts);
    gap = flow.responses.gaps != gaps;
  }
  if (packet.meta().opcode == IBV_OPCODE_RC_ACKNOWLEDGE) syndrome(index, packet, facts.psn, now);
  if (held == Held::kTrimmed || flow.direction == flows::Pairing::kNone) return;
  if (const Flow* asker = partner_of(flow)) {
    if (asker->open_read_bytes) settle_read(index_of(*asker), nullptr);
    if (asker->open_read_unsized && of_read) settle_unsized_read(index_of(*asker), facts.psn);
  }
  response(index, packet, facts.psn, now);
  // The asker will ask again for what is missing.
  if (Flow* asker = gap ? partner_of(flow) : nullptr) asker->requests.repeat_explained = true;
}

void Inspector::response(std::uint32_t index, Packet packet, std::uint32_t psn, Nanos now) {
  const Flow& flow = flows_[index];
  const bool acknowledge_packet = packet.meta().opcode == IBV_OPCODE_RC_ACKNOWLEDGE;
  const roce::Aeth* aeth = acknowledge_packet ? roce::aeth(packet) : nullptr;
  const bool unknown = acknowledge_packet && !aeth;
  const std::uint8_t syndrome = aeth ? aeth->syndrome : std::uint8_t{0};
  const roce::AethKind kind = unknown ? roce::AethKind::kReserved : roce::aeth_kind(syndrome);
  const bool refused = unknown || kind == roce::AethKind::kNak || kind == roce::AethKind::kRnrNak;
  pairing_.response(flow.direction, psn, refused ? flows::ResponseKind::kNotReceived : flows::ResponseKind::kReceived);
  Flow* asker = partner_of(flow);
  if (!asker) return;
  const bool again = kind == roce::AethKind::kRnrNak ||
                     (kind == roce::AethKind::kNak &&
                      roce::aeth_value(syndrome) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError));
  if (again) asker->requests.asked_first = psn, asker->requests.asked_count = 1;
  if (again || unknown) asker->requests.repeat_explained = true;
  if (kind != roce::AethKind::kReserved) acknowledge(*asker, packet, kind, psn, now);
}

void Inspector::acknowledge(Flow& asker, Packet packet, roce::AethKind kind, std::uint32_t psn, Nanos now) {
  const std::uint32_t index = index_of(asker);
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  const bool of_read = info.has(roce::kIsReadResponse);
  const bool received = kind == roce::AethKind::kAck;
  // A time from request to response: an ACK, an ATOMIC ACK, or the first READ response.
  Nanos rtt = 0;
  const bool times = received && (!of_read || info.has(roce::kStartsMessage));
  if (times && requests_.responded(asker.requests, ring(index, PsnSpace::kRequests), psn, now, rtt)) asker.rtt.add(rtt);
  // A NAK acknowledges what is before its PSN; so does a READ response that others of the same READ follow.
  const bool whole = received && (!of_read || info.has(roce::kEndsMessage));
  requests_.acknowledge(asker.requests, ring(index, PsnSpace::kRequests), whole ? psn : roce::psn_add(psn, -1), now,
                        asker.completion);
}

}  // namespace rocebox::inspect
