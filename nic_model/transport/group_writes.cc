// SPDX-License-Identifier: BSD-3-Clause
// The responder's side of WRITEs to a group. A packet alone needs nothing of those before it; a message of several, of
// which one is missing or out of order, is lost, as on any unreliable connection.
#include "nic_model/transport/group_writes.h"

#include "nic_model/core.h"

namespace rocebox::nic_model {

Counter& Responder::on_group_write(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const std::uint32_t bytes = packet.meta().payload_bytes;
  if (!info.has(roce::kIsWrite)) return core_.count.drop_wrong_service;
  if (!length_fits(packet, info)) return core_.count.drop_invalid;
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const bool starts = info.has(roce::kStartsMessage), ends = info.has(roce::kEndsMessage);
  GroupWrites::Message alone;
  GroupWrites::Message* message = &alone;
  if (!starts || !ends) message = group_writes_.message_of(roce::addresses(packet).source);
  if (!message) return core_.count.drop_message;
  if (starts) {
    const roce::Reth& reth = *roce::reth(packet);
    const GroupWindow* window = group_writes_.find(static_cast<std::uint32_t>(reth.rkey));
    message->open = false;
    if (!window) return core_.count.drop_message;
    message->name = window->name;
    message->key = window->key;
    message->address = window->address + static_cast<std::uint64_t>(reth.virtual_address);
    message->length = static_cast<std::uint32_t>(reth.dma_length);
    message->received = 0;
    if (message->length > kMessageBytesMax) return core_.count.drop_invalid;
    if (message->length > 0 && core_.memory.check(message->key, qp_.accessor(), message->address, message->length,
                                                  IBV_ACCESS_REMOTE_WRITE) != MemoryError::kNone)
      return core_.count.drop_invalid;
  } else if (!message->open || psn != message->next_psn) {
    if (message->open) core_.count.out_of_sequence.add();
    message->open = false;
    return core_.count.drop_message;
  }
  message->open = false;
  const std::uint64_t after = message->received + bytes;
  if (ends ? after != message->length : after >= message->length) return core_.count.drop_invalid;
  // The region may have gone since the message began.
  if (!starts && bytes &&
      core_.memory.check(message->key, qp_.accessor(), message->address + message->received, bytes,
                         IBV_ACCESS_REMOTE_WRITE) != MemoryError::kNone)
    return core_.count.drop_invalid;
  const bool completes = ends && info.has(roce::kHasImmDt);
  if (completes && !take_receive(context)) {
    core_.count.out_of_buffer.add();
    return core_.count.drop_rnr;
  }
  if (bytes)
    core_.memory.write(message->key, message->address + message->received, bytes,
                       Core::has_payload(packet) ? Headers::payload(packet) : nullptr);
  message->received = after;
  message->next_psn = roce::psn_add(psn, 1);
  message->open = !ends;
  if (!ends) return core_.count.delivered;
  core_.count.rx_write_requests.add();
  if (!completes) return core_.count.delivered;
  Received what;
  what.bytes = static_cast<std::uint32_t>(after);
  what.solicited = roce::bth(packet).solicited_event();
  what.cqe_opcode = MLX5_CQE_RESP_WR_IMM;
  std::memcpy(&what.immediate, roce::immdt(packet), 4);
  core_.complete_receive(context, qp_, work_, what, IBV_WC_SUCCESS);
  return core_.count.delivered;
}

}  // namespace rocebox::nic_model
