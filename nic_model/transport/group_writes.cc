// SPDX-License-Identifier: BSD-3-Clause
// The responder's side of WRITEs to a group. A packet alone needs nothing of those before it; a message of several, of
// which one is missing or out of order, is lost, as on any unreliable connection.
#include "nic_model/transport/group_writes.h"

#include "nic_model/core.h"

namespace rocebox::nic_model {

// The window is looked up before anything is kept: who does not know one takes no room.
Counter* Responder::begin_group_write(Packet packet, GroupWrites::Message& message) {
  const roce::Reth& reth = *roce::reth(packet);
  const GroupWindow* window = group_writes_.find(static_cast<std::uint32_t>(reth.rkey));
  if (!window) return &core_.count.drop_group_window;
  message.name = window->name;
  message.key = window->key;
  const std::uint64_t offset = reth.virtual_address;
  message.address = window->address + offset;
  message.length = static_cast<std::uint32_t>(reth.dma_length);
  if (!(qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) || message.length > kMessageBytesMax ||
      message.address < offset)  // it goes round, to before the window
    return &core_.count.drop_invalid;
  if (message.length > 0 && core_.memory.check(message.key, qp_.accessor(), message.address, message.length,
                                               IBV_ACCESS_REMOTE_WRITE) != MemoryError::kNone)
    return &core_.count.drop_invalid;
  return nullptr;
}

Counter& Responder::on_group_write(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (!info.has(roce::kIsWrite)) return core_.count.drop_wrong_service;
  if (!length_fits(packet, info)) return core_.count.drop_invalid;
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  const bool starts = info.has(roce::kStartsMessage), ends = info.has(roce::kEndsMessage);
  GroupWrites::Message message;
  message.source = roce::addresses(packet).source;
  const GroupWrites::Message* begun = group_writes_.find(message.source);
  if (starts) {
    if (begun) group_writes_.close(message.source);  // what it had begun is lost
    if (Counter* refused = begin_group_write(packet, message)) return *refused;
  } else {
    if (!begun) return core_.count.drop_message;
    message = *begun;
    if (ends || psn != message.next_psn) group_writes_.close(message.source);
    if (psn != message.next_psn) {
      core_.count.out_of_sequence.add();
      return core_.count.drop_message;
    }
  }
  return place_group_write(context, packet, message);
}

Counter& Responder::place_group_write(Context& context, Packet packet, GroupWrites::Message& message) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const std::uint32_t bytes = packet.meta().payload_bytes;
  const bool starts = info.has(roce::kStartsMessage), ends = info.has(roce::kEndsMessage);
  const std::uint64_t at = message.address + message.received;
  message.received += bytes;
  message.next_psn = roce::psn_add(static_cast<std::uint32_t>(roce::bth(packet).psn), 1);
  // The region may have gone since the message began.
  const bool is_wrong =
      (ends ? message.received != message.length : message.received >= message.length) ||
      (!starts && bytes &&
       core_.memory.check(message.key, qp_.accessor(), at, bytes, IBV_ACCESS_REMOTE_WRITE) != MemoryError::kNone);
  if (is_wrong) {
    group_writes_.close(message.source);
    return core_.count.drop_invalid;
  }
  if (!ends && !group_writes_.open(message)) return core_.count.drop_group_sources;
  const bool completes = ends && info.has(roce::kHasImmDt);
  if (completes && !take_receive(context)) {
    core_.count.out_of_buffer.add();
    return core_.count.drop_rnr;
  }
  // The receive request that a SEND had taken is this one's now: the SEND is lost.
  if (completes && message_ == Message::kSend) message_ = Message::kLost;
  if (bytes) core_.memory.write(message.key, at, bytes, Core::has_payload(packet) ? Headers::payload(packet) : nullptr);
  if (!ends) return core_.count.delivered;
  core_.count.rx_write_requests.add();
  if (!completes) return core_.count.delivered;
  Received what;
  what.bytes = static_cast<std::uint32_t>(message.received);
  what.solicited = roce::bth(packet).solicited_event();
  what.cqe_opcode = MLX5_CQE_RESP_WR_IMM;
  std::memcpy(&what.immediate, roce::immdt(packet), 4);
  core_.complete_receive(context, qp_, work_, what, IBV_WC_SUCCESS);
  return core_.count.delivered;
}

}  // namespace rocebox::nic_model
