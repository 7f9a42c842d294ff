// SPDX-License-Identifier: BSD-3-Clause
// Requests of unreliable connections and datagrams: nothing is answered, and a message of which a packet is missing is
// dropped whole (IB specification, 9.8.2, 9.8.3).
#include "nic_model/core.h"
#include "nic_model/transport/responder.h"

namespace rocebox::nic_model {
namespace {

constexpr std::uint32_t kGrhBytes = 40;

}  // namespace

// A SEND's receive request is there for the next one.
Counter& Responder::lose_message(Context&) {
  message_ = Message::kLost;
  return core_.count.drop_message;
}

Counter& Responder::on_unreliable(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  if (psn != epsn_) {
    core_.count.out_of_sequence.add();
    message_ = Message::kLost;
    epsn_ = psn;
  }
  if (info.has(roce::kStartsMessage)) message_ = Message::kNone;  // one that was begun and not ended is lost
  if (message_ == Message::kLost || !opcode_fits(info)) {
    epsn_ = roce::psn_add(psn, 1);
    return lose_message(context);
  }
  Counter& end = execute_data(context, packet);
  epsn_ = roce::psn_add(psn, 1);
  if (&end != &core_.count.delivered) message_ = Message::kLost;
  return end;
}

Counter& Responder::on_datagram(Context& context, Packet packet) {
  const roce::Deth& deth = *roce::deth(packet);
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const std::uint32_t bytes = packet.meta().payload_bytes;
  if (deth.qkey != qp_.attributes.qkey) return core_.count.drop_bad_qkey;
  if (bytes > qp_.attributes.path_mtu) return core_.count.drop_invalid;
  if (!take_receive(context)) {
    core_.count.out_of_buffer.add();
    return core_.count.drop_rnr;
  }
  Received what;
  what.cqe_opcode = info.has(roce::kHasImmDt) ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND;
  what.bytes = bytes + kGrhBytes;
  what.solicited = roce::bth(packet).solicited_event();
  what.source_qp = static_cast<std::uint32_t>(deth.source_qp);
  what.has_grh = true;
  if (info.has(roce::kHasImmDt)) std::memcpy(&what.immediate, roce::immdt(packet), 4);
  ReceiveQueue& queue = qp_.receive_queue();
  if (what.bytes > work_.bytes) return too_long(context, what);
  if (!queue.check(work_, core_.memory, qp_.accessor(), what.bytes))
    return fail_receive(context, what, IBV_WC_LOC_PROT_ERR);
  // An IPv4 header stands in the last 20 bytes of where a GRH would be (annex A17.4.5.2).
  std::uint8_t grh[kGrhBytes] = {};
  const std::uint32_t ip_bytes = packet.meta().ip_version == 4 ? 20 : 40;
  std::memcpy(grh + kGrhBytes - ip_bytes, packet.data() + packet.meta().l3_offset, ip_bytes);
  queue.scatter(work_, core_.memory, 0, kGrhBytes, grh);
  if (bytes)
    queue.scatter(work_, core_.memory, kGrhBytes, bytes,
                  Core::has_payload(packet) ? Headers::payload(packet) : nullptr);
  core_.count.rx_send_requests.add();
  core_.complete_receive(context, qp_, work_, what, IBV_WC_SUCCESS);
  return core_.count.delivered;
}

}  // namespace rocebox::nic_model
