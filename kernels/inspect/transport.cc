// SPDX-License-Identifier: BSD-3-Clause
// Inspector: requests, responses and what ties them together.
#include <algorithm>

#include "kernels/inspect/inspector.h"
#include "runtime/roce/headers.h"
#include "runtime/roce/psn.h"

namespace rocebox::inspect {
namespace {

constexpr unsigned kRequests = 0, kResponses = 1;  // rings

// The PSNs that a READ of `bytes` takes; half the PSN space at most, whatever the length field says
// (9.7.2).
std::uint32_t read_width(std::uint32_t bytes, std::uint32_t pmtu) {
  return std::clamp(bytes / pmtu + (bytes % pmtu != 0), 1u, roce::kPsnModulus / 2);
}

}  // namespace

void Inspector::learn_pmtu(Flow& flow, std::uint32_t payload_bytes) {
  if (payload_bytes == flow.pmtu && !flow.pmtu_inferred) return;
  // Only what a path MTU can be: a stray length must not decide for the whole address pair.
  const auto& sizes = roce::kPathMtus;
  if (std::find(sizes.begin(), sizes.end(), payload_bytes) == sizes.end()) return;
  const auto pmtu = static_cast<std::uint16_t>(payload_bytes);
  flow.pmtu = flow.pmtu_inferred ? pmtu : std::max(flow.pmtu, pmtu);
  flow.pmtu_inferred = false;
  std::uint16_t& of_pair = address_pair_pmtus_[flow.address_pair];
  of_pair = std::max(of_pair, pmtu);
}

std::uint32_t Inspector::known_pmtu(const Flow& flow) const {
  if (mtu_) return mtu_;
  if (flow.pmtu && !flow.pmtu_inferred) return flow.pmtu;
  const Flow* partner = partner_of(flow);
  if (partner && partner->pmtu && !partner->pmtu_inferred) return partner->pmtu;
  if (address_pair_pmtus_[flow.address_pair]) return address_pair_pmtus_[flow.address_pair];
  return flow.pmtu;
}

PsnPacket Inspector::psn_packet(Packet packet, Nanos now) const {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  PsnPacket result;
  result.now = now;
  result.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  result.payload = packet.meta().payload_bytes;
  result.has_id = packet.meta().ip_version == 4;
  if (result.has_id)
    result.id = static_cast<std::uint16_t>(packet.header<roce::Ipv4>(packet.meta().l3_offset)->identification);
  result.starts = info.has(roce::kStartsMessage);
  result.ends = info.has(roce::kEndsMessage);
  result.reliable = info.service == roce::Service::kRc;
  return result;
}

// Which PSNs a READ takes can be told from the next request alone, when one count fits its PSN.
std::uint32_t Inspector::infer_read_width(Flow& flow, std::uint32_t distance) {
  unsigned fitting = 0;
  std::uint32_t pmtu = 0;
  for (const std::uint32_t each : roce::kPathMtus) {
    if (read_width(flow.open_read_bytes, each) != distance) continue;
    fitting++;
    pmtu = each;
  }
  if (fitting == 1) flow.pmtu = static_cast<std::uint16_t>(pmtu), flow.pmtu_inferred = true;
  return fitting ? distance : 1;
}

// A READ request was counted with one PSN because the path MTU was not known: gives it its PSNs as
// soon as that is, at the latest when the next request comes.
void Inspector::settle_read(std::uint32_t index, const std::uint32_t* next_psn) {
  Flow& flow = flows_[index];
  const auto high = static_cast<std::uint32_t>(flow.requests.high) & roce::kPsnMask;
  const std::int32_t distance = next_psn ? roce::psn_distance(*next_psn, high) : 0;
  std::uint32_t width = 1;
  if (const std::uint32_t pmtu = known_pmtu(flow))
    width = read_width(flow.open_read_bytes, pmtu);
  else if (distance > 0)
    width = infer_read_width(flow, static_cast<std::uint32_t>(distance));
  else
    return;
  flow.open_read_bytes = 0;
  requests_.widen(flow.requests, ring(index, kRequests), width);
  if (flow.half != roce::Pairing::kNone) pairing_.request(flow.half, high, roce::psn_add(high, width - 1));
}

void Inspector::request(std::uint32_t index, Packet packet, Nanos now) {
  Flow& flow = flows_[index];
  PsnPacket facts = psn_packet(packet, now);
  if (flow.open_read_bytes) settle_read(index, &facts.psn);
  facts.read = packet.meta().opcode == IBV_OPCODE_RC_RDMA_READ_REQUEST;
  std::uint32_t open_read = 0;
  if (facts.read) {
    const auto bytes = static_cast<std::uint32_t>(roce::reth(packet)->dma_length);
    if (const std::uint32_t pmtu = known_pmtu(flow))
      facts.width = read_width(bytes, pmtu);
    else if (bytes > roce::kPathMtus.front())
      open_read = bytes;
  }
  const std::uint64_t holes = flow.requests.holes, filled = flow.requests.holes_filled_late;
  const PsnClass what = requests_.add(flow.requests, ring(index, kRequests), flow.ids, facts);
  count_class(what);
  counters_.holes.add(flow.requests.holes - holes);
  counters_.holes_filled_late.add(flow.requests.holes_filled_late - filled);
  const bool highest = what <= PsnClass::kReset;
  if (highest) flow.open_read_bytes = open_read;
  if (flow.half == roce::Pairing::kNone) return;
  pairing_.request(flow.half, facts.psn, roce::psn_add(facts.psn, facts.width - 1));
  // Responses may be sent again now, from this PSN on.
  if (facts.read && !highest) {
    if (Flow* partner = partner_of(flow)) {
      partner->responses.asked_first = facts.psn;
      partner->responses.asked_count = facts.width;
    }
  }
}

void Inspector::syndrome(Flow& flow, Packet packet) {
  const std::uint8_t syndrome = roce::aeth(packet)->syndrome;
  const unsigned code = std::min(roce::aeth_value(syndrome), kNakSlots - 1);
  switch (roce::aeth_kind(syndrome)) {
    case roce::AethKind::kAck:
      flow.acks++;
      return counters_.acks.add();
    case roce::AethKind::kRnrNak:
      flow.rnr_naks++;
      return counters_.rnr_naks.add();
    case roce::AethKind::kNak:
      flow.naks[code]++;
      counters_.nak_codes[code]->add();
      return counters_.naks.add();
    case roce::AethKind::kReserved:
      return;
  }
}

void Inspector::response(std::uint32_t index, Packet packet, Nanos now) {
  Flow& flow = flows_[index];
  const std::uint8_t opcode = packet.meta().opcode;
  const PsnPacket facts = psn_packet(packet, now);
  if (roce::opcode_info(packet).has(roce::kIsReadResponse)) {
    const std::uint64_t holes = flow.responses.holes, filled = flow.responses.holes_filled_late;
    count_class(responses_.add(flow.responses, ring(index, kResponses), flow.ids, facts));
    counters_.holes.add(flow.responses.holes - holes);
    counters_.holes_filled_late.add(flow.responses.holes_filled_late - filled);
  }
  const bool acknowledge = opcode == IBV_OPCODE_RC_ACKNOWLEDGE;
  if (acknowledge) syndrome(flow, packet);
  if (flow.half == roce::Pairing::kNone) return;

  if (const Flow* asker = partner_of(flow); asker && asker->open_read_bytes)
    settle_read(static_cast<std::uint32_t>(asker - flows_.data()), nullptr);
  const std::uint8_t code = acknowledge ? roce::aeth(packet)->syndrome : std::uint8_t{0};
  const roce::AethKind kind = roce::aeth_kind(code);
  const bool refused = kind == roce::AethKind::kNak || kind == roce::AethKind::kRnrNak;
  pairing_.answer(flow.half, facts.psn, refused ? roce::AnswerKind::kNotReceived : roce::AnswerKind::kReceived);
  Flow* asker = partner_of(flow);
  if (!asker) return;
  const bool again = kind == roce::AethKind::kRnrNak ||
                     (kind == roce::AethKind::kNak &&
                      roce::aeth_value(code) == static_cast<unsigned>(roce::NakCode::kPsnSequenceError));
  if (again) asker->requests.asked_first = facts.psn, asker->requests.asked_count = 1;
  // A time from request to answer: an ACK, an ATOMIC ACK, or the first packet of a READ's answer.
  const bool first_of_read =
      opcode == IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST || opcode == IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY;
  const bool times =
      (acknowledge && kind == roce::AethKind::kAck) || first_of_read || opcode == IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE;
  Nanos rtt = 0;
  const auto asker_index = static_cast<std::uint32_t>(asker - flows_.data());
  if (times && requests_.answered(asker->requests, ring(asker_index, kRequests), facts.psn, now, rtt))
    asker->rtt.add(rtt);
}

}  // namespace rocebox::inspect
