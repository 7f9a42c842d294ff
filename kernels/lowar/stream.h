// SPDX-License-Identifier: BSD-3-Clause
// Streams: what has a sequence of PSNs. Two go to one QP: requests, and responses to its READs.
#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>

#include "kernels/lowar/limits.h"
#include "runtime/flows/flow_table.h"
#include "runtime/packet/batch.h"
#include "runtime/roce/opcodes.h"
#include "runtime/roce/parse.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {

struct StreamKey {
  roce::Addresses addresses;
  std::uint32_t qpn_and_kind;  ///< destination QPN, and bit 24: responses
  bool operator==(const StreamKey&) const = default;
};
inline constexpr std::uint32_t kResponsesBit = 1u << 24;

/// No PSN has it.
inline constexpr std::uint32_t kNoPsn = ~0u;

inline StreamKey stream_key(Packet packet, std::uint32_t qpn, bool responses) {
  return {roce::addresses(packet), qpn | (responses ? kResponsesBit : 0)};
}

/// The key of a stream from a packet of the way back.
inline StreamKey stream_key_back(Packet packet, std::uint32_t qpn, bool responses) {
  const roce::Addresses back = roce::addresses(packet);
  return {{back.destination, back.source}, qpn | (responses ? kResponsesBit : 0)};
}

/// What a packet is to LoWAR.
enum class Role : std::uint8_t {
  kOther,        ///< passes untouched
  kRequest,      ///< RC or UC request: protected
  kResponse,     ///< RC READ response: protected
  kAcknowledge,  ///< RC ACK, NAK, ATOMIC ACK: unprotected, but kept behind the responses before it
  kLowar,        ///< a repair or negotiation packet
};

inline Role role_of(Packet packet) {
  const PacketMeta& meta = packet.meta();
  if (meta.status == ParseStatus::kReservedOpcode) return Role::kLowar;
  if (meta.status != ParseStatus::kRoce) return Role::kOther;
  const roce::OpcodeInfo& info = roce::opcode_info(meta.opcode);
  if (info.service != roce::Service::kRc && info.service != roce::Service::kUc) return Role::kOther;
  if (info.has(roce::kIsRequest)) return Role::kRequest;
  return info.has(roce::kIsReadResponse) ? Role::kResponse : Role::kAcknowledge;
}

inline std::uint32_t psn_of(Packet packet) { return static_cast<std::uint32_t>(roce::bth(packet).psn); }
inline std::uint32_t qpn_of(Packet packet) { return static_cast<std::uint32_t>(roce::bth(packet).destination_qp); }

/// Where a stream is, as its packets tell either end.
struct Sequence {
  std::uint32_t expected = 0;  ///< the PSN that comes next
  std::uint32_t last_psn = 0;  ///< that of the last packet
  std::uint16_t pmtu = 0;      ///< path MTU, as seen in requests; 0: not known
  bool message_ended = false;  ///< the last packet ended its message
  bool may_skip_psns = false;  ///< the next message may begin at any PSN ahead

  /// READ responses have PSNs of the requests between them, and after a READ of unknown length any PSN may follow.
  bool is_next(Packet packet, std::uint32_t psn) const {
    if (psn == expected) return true;
    return message_ended && may_skip_psns && roce::opcode_info(packet).has(roce::kStartsMessage);
  }
  /// The sequence goes on at `psn`. So far away it is another connection's, whose path MTU may be another one.
  void jump(std::uint32_t psn) {
    if (std::abs(roce::psn_distance(psn, expected)) > kWindowPsns) pmtu = 0;
    expected = psn;
  }
  /// The packet has its place in the sequence; the next one is expected.
  void advance(Packet packet, std::uint32_t psn) {
    const roce::OpcodeInfo& info = roce::opcode_info(packet);
    last_psn = psn;
    expected = roce::psn_add(psn, 1);
    message_ended = info.has(roce::kEndsMessage);
    if (!info.has(roce::kIsRequest)) return;
    const auto payload = static_cast<std::uint16_t>(packet.meta().payload_bytes);
    if (info.has(roce::kHasPayload) && !message_ended)
      pmtu = payload;
    else if (payload > pmtu)  // it was another one's
      pmtu = 0;
    const roce::Reth* reth = packet.meta().opcode == IBV_OPCODE_RC_RDMA_READ_REQUEST ? roce::reth(packet) : nullptr;
    may_skip_psns = reth && !pmtu;
    if (reth && pmtu && reth->dma_length > 1)
      expected = roce::psn_add(psn, static_cast<std::int64_t>((reth->dma_length + pmtu - 1) / pmtu));
  }
};

/// What a packet of a batch is: its role, and the stream that it belongs to where it is data.
struct ClassifiedPacket {
  Role role;
  StreamKey key;
  std::uint64_t hash;
  std::uint32_t index;  ///< where its stream was when the batch came; only a hint
  bool is_data() const { return role == Role::kRequest || role == Role::kResponse; }
};

/// Classifies the packets of a batch, and brings what `table` has of their streams nearer.
template <class Table>
void classify(const Batch& batch, const Table& table, std::array<ClassifiedPacket, kBatchMax>& classes) {
  for (unsigned i = 0; i < batch.size(); i++) {
    ClassifiedPacket& kind = classes[i];
    kind.role = role_of(batch[i]);
    if (!kind.is_data()) continue;
    kind.key = stream_key(batch[i], qpn_of(batch[i]), kind.role == Role::kResponse);
    kind.hash = table.hash(kind.key);
    table.prefetch(kind.hash);
  }
  for (unsigned i = 0; i < batch.size(); i++) {
    ClassifiedPacket& kind = classes[i];
    if (!kind.is_data()) continue;
    kind.index = table.find(kind.key, kind.hash);
    if (kind.index != Table::kNone) table.prefetch_stream(kind.index);
  }
}

}  // namespace rocebox::lowar
