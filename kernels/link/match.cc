// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/link/match.h"

#include <algorithm>
#include <string_view>

namespace rocebox::link {
namespace {

// In the order of the bits of Kind.
constexpr std::string_view kKinds[] = {"roce",       "data", "read_request", "read_response", "atomic",
                                       "atomic_ack", "ack",  "nak",          "rnr_nak",       "cnp"};

std::uint16_t bit_of(std::string_view word) {
  const auto found = std::find(std::begin(kKinds), std::end(kKinds), word);
  return found == std::end(kKinds) ? std::uint16_t{0} : static_cast<std::uint16_t>(1u << (found - std::begin(kKinds)));
}

std::string all_kinds() {
  std::string text;
  for (std::string_view word : kKinds) (text += text.empty() ? "" : ", ") += word;
  return text;
}

std::uint16_t acknowledge_kind(Packet packet) {
  const roce::Aeth* aeth = roce::aeth(packet);
  if (!aeth) return 0;  // snapped
  switch (roce::aeth_kind(aeth->syndrome)) {
    case roce::AethKind::kAck:
      return kAck;
    case roce::AethKind::kNak:
      return kNak;
    case roce::AethKind::kRnrNak:
      return kRnrNak;
    default:
      return 0;
  }
}

std::uint16_t kind_of(Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet);
  if (info.service == roce::Service::kCnp) return kCnp;
  if (info.has(roce::kIsSend | roce::kIsWrite)) return kData;
  if (info.has(roce::kIsReadResponse)) return kReadResponse;
  if (info.has(roce::kHasAtomicEth)) return kAtomic;
  if (info.has(roce::kHasAtomicAckEth)) return kAtomicAck;
  if (info.has(roce::kHasReth)) return kReadRequest;  // those of WRITE are data
  return info.has(roce::kHasAeth) ? acknowledge_kind(packet) : std::uint16_t{0};
}

}  // namespace

std::uint16_t Match::kinds() const {
  std::uint16_t bits = 0;
  for (const std::string& word : kind) bits |= bit_of(word);
  return bits;
}

void Match::fields(Fields& f) {
  f.integer("qpn", qpn, {-1, 0xFFFFFF}, "destination QP; -1: any");
  f.integer("opcode", opcode, {-1, 255}, "BTH opcode; -1: any");
  f.texts("kind", kind, "kinds of packets, any of: " + all_kinds() + "; none: any packet");
  for (const std::string& word : kind)
    if (!bit_of(word)) f.refuse("kind", "has no word `" + word + "`; known: " + all_kinds());
  f.address("source", source, Presence::kOptional, "IP address that the packet comes from; empty: any");
  f.address("destination", destination, Presence::kOptional, "IP address that the packet goes to; empty: any");
}

Facts facts_of(Packet packet) {
  Facts facts;
  const PacketMeta& meta = packet.meta();
  if (meta.ip_version != 0) {
    facts.has_addresses = true;
    facts.addresses = roce::addresses(packet);
  }
  if (meta.bth_offset != 0) {
    facts.has_bth = true;
    if ((facts.has_qpn_and_psn = roce::has_qpn_and_psn(packet))) {
      facts.qpn = static_cast<std::uint32_t>(roce::bth(packet).destination_qp);
      facts.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
    }
    facts.opcode = meta.opcode;
    facts.is_request = roce::opcode_info(packet).has(roce::kIsRequest);
    facts.kinds = kAnyRoce | kind_of(packet);
  }
  return facts;
}

Matcher::Matcher(const Match& match)
    : qpn_(match.qpn),
      opcode_(match.opcode),
      kinds_(match.kinds()),
      reads_bth_(qpn_ >= 0 || opcode_ >= 0 || kinds_ != 0),
      reads_addresses_(match.source || match.destination),
      on_(reads_bth_ || reads_addresses_),
      source_(match.source),
      destination_(match.destination) {}

bool Matcher::bth_matches(const Facts& facts) const {
  return facts.has_bth && (qpn_ < 0 || (facts.has_qpn_and_psn && qpn_ == facts.qpn)) &&
         (opcode_ < 0 || opcode_ == facts.opcode) && (kinds_ == 0 || (kinds_ & facts.kinds) != 0);
}

bool Matcher::addresses_match(const Facts& facts) const {
  return !reads_addresses_ || (facts.has_addresses && (!source_ || *source_ == facts.addresses.source) &&
                               (!destination_ || *destination_ == facts.addresses.destination));
}

}  // namespace rocebox::link
