// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/lowar/rebuilder.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/lowar/image.h"
#include "kernels/lowar/repair_packet.h"
#include "runtime/roce/icrc.h"
#include "runtime/roce/psn.h"

namespace rocebox::lowar {
namespace {

// Whether it is the packet that the header promises, with a right ICRC.
bool is_expected(Packet rebuilt, const RepairHeader& header, std::uint32_t psn) {
  const Block& block = header.block;
  if (role_of(rebuilt) != (block.responses ? Role::kResponse : Role::kRequest)) return false;
  if (qpn_of(rebuilt) != header.qpn || psn_of(rebuilt) != psn) return false;
  const roce::OpcodeInfo& info = roce::opcode_info(rebuilt);
  const bool first = psn == block.base_psn, last = psn == roce::psn_add(block.base_psn, block.packets - 1);
  if (info.has(roce::kStartsMessage) != (first && block.has_first)) return false;
  if (info.has(roce::kEndsMessage) != (last && block.has_last)) return false;
  if (last && block.has_last && transport_bytes(rebuilt) != block.last_bytes) return false;
  return roce::icrc_check(rebuilt) == roce::IcrcStatus::kGood;
}

}  // namespace

Rebuilder::Attempt Rebuilder::attempt(Context& context, const ReceivedStream& stream, Packet repair,
                                      const RepairHeader& header) const {
  const Share share = stream.order.share_of(buffer_, header, stream.sequence.expected());
  if (share.missing == 0) return {RepairOutcome::kUnused, {}};
  std::uint16_t unit = CodingUnits::kNone;
  // What was handed over is known only as the XOR of exactly these packets.
  if (share.delivered) unit = stream.block.unit_of(units_, header, share.delivered);
  if (!share.usable || (share.delivered && unit == CodingUnits::kNone)) return {RepairOutcome::kShort, {}};
  if (share.missing > 1) return {RepairOutcome::kWaits, {}};
  PacketPtr rebuilt = rebuild(context, repair, header, share, unit);
  const RepairOutcome outcome = rebuilt ? RepairOutcome::kUsed : RepairOutcome::kFailed;
  return {outcome, std::move(rebuilt)};
}

// XORs what is there onto the repair packet's image. Empty when the result does not prove right.
PacketPtr Rebuilder::rebuild(Context& context, Packet repair, const RepairHeader& header, const Share& share,
                             std::uint16_t unit) const {
  const std::span<const std::uint8_t> image = lowar_bytes(repair).subspan(sizeof(HeaderBytes));
  CodedPrefix prefix;
  auto* prefix_bytes = reinterpret_cast<std::uint8_t*>(&prefix);
  std::memcpy(prefix_bytes, image.data(), sizeof prefix);
  Sums sums;
  if (unit != CodingUnits::kNone) {
    xor_into(prefix_bytes, units_.image(unit).data(), sizeof prefix);
    sums += units_[unit].sums;
  }
  for (unsigned i = 0; i < share.held; i++) {
    const Packet held = *buffer_[share.slots[i]].packet;
    const CodedPrefix other = prefix_of(held);
    xor_into(prefix_bytes, reinterpret_cast<const std::uint8_t*>(&other), sizeof prefix);
    sums += sums_of(held);
  }
  const auto bytes = static_cast<std::uint32_t>(prefix.transport_bytes);
  const std::uint32_t offset = repair.meta().bth_offset;
  constexpr std::uint32_t kLeast = sizeof(roce::Bth) + roce::kIcrcBytes;
  if (bytes < kLeast || bytes > image.size() - sizeof prefix) {
    count_.rebuild_failed.add();
    return {};
  }
  PacketPtr rebuilt = context.allocate(offset + bytes);
  if (!rebuilt) {
    count_.pool_dry.add();
    return {};
  }
  std::uint8_t* to = rebuilt->data() + offset;
  std::memcpy(to, image.data() + sizeof prefix, bytes);
  if (unit != CodingUnits::kNone) {
    const auto delivered = units_.image(unit).subspan(sizeof prefix);
    xor_into(to, delivered.data(), std::min<std::size_t>(bytes, delivered.size()));
  }
  for (unsigned i = 0; i < share.held; i++) {
    const Packet held = *buffer_[share.slots[i]].packet;
    xor_into(to, transport(held), std::min(bytes, transport_bytes(held)));
  }
  put_headers(*rebuilt, repair, prefix, true);
  return prove(context, std::move(rebuilt), repair, header, sums, prefix, share.missing_psn);
}

// The packet, if exactly the right ones went into it; `sums`: of all others that the repair packet covers.
PacketPtr Rebuilder::prove(Context& context, PacketPtr rebuilt, Packet repair, const RepairHeader& header, Sums sums,
                           const CodedPrefix& prefix, std::uint32_t psn) const {
  const bool expected = is_expected(*rebuilt, header, psn);
  if (expected) sums += sums_of(*rebuilt);
  if (!expected || sums.set != header.set_sum) {
    count_.rebuild_failed.add();
    context.drop(std::move(rebuilt), count_.drop_rebuilt);
    return {};
  }
  if (sums.hops != header.hop_sum) {  // somebody changed them on the way
    put_headers(*rebuilt, repair, prefix, false);
    count_.recovered_hops.add();
  }
  return rebuilt;
}

}  // namespace rocebox::lowar
