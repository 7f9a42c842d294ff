// SPDX-License-Identifier: BSD-3-Clause
// What a responder sends: in the order of the requests, ACKs taken together where nothing stands between them.
#include <algorithm>
#include <bit>

#include "nic_model/core.h"
#include "nic_model/transport/credits.h"
#include "nic_model/transport/pacing.h"
#include "nic_model/transport/responder.h"

namespace rocebox::nic_model {
namespace {

// A NAK after which there is nothing more; one of a gap ends nothing.
bool ends_connection(std::uint8_t syndrome) {
  return roce::aeth_kind(syndrome) == roce::AethKind::kNak &&
         roce::aeth_value(syndrome) != static_cast<unsigned>(roce::NakCode::kPsnSequenceError);
}

}  // namespace

void Responder::keep_resources() {
  const std::size_t before = resources_.size(),
                    room = std::bit_ceil(std::max<std::size_t>(qp_.attributes.max_dest_rd_atomic, 1));
  if (room <= before) return;
  std::vector<Resource> more(room);
  for (std::uint32_t i = 1; i <= std::min<std::size_t>(before, resources_end_); i++)
    more[(resources_end_ - i) & (room - 1)] = resources_[(resources_end_ - i) & (before - 1)];
  resources_ = std::move(more);
}

void Responder::add_resource(const Resource& resource) {
  resources_[resources_end_++ & (resources_.size() - 1)] = resource;
}

// A later ACK says all that one says which has not left yet. So does a NAK; but where packets are placed as they come a
// switch may keep it back (Themis), and who sent would wait for the ACK in vain.
bool Responder::acknowledge(Context& context, std::uint32_t psn, std::uint8_t syndrome) {
  const Response response{Response::Kind::kAcknowledge, syndrome, false, psn, msn_};
  const auto is_ack = [](const Response& one) {
    return one.kind == Response::Kind::kAcknowledge && roce::aeth_kind(one.syndrome) == roce::AethKind::kAck;
  };
  const bool acks = is_ack(response);
  if (waiting_ && is_ack(back()) && (acks || !places_ahead_)) {
    back() = response;
    core_.wake(context, qp_);
    return true;
  }
  if (places_ahead_ && acks && waiting_ > 1 && back().kind == response.kind) {
    // Behind a NAK: an ACK before it needs not leave any more; where nothing has room the NAK need not.
    Response& before = from_back(1);
    if (is_ack(before) || waiting_ == kMany) {
      if (is_ack(before)) before = back();
      back() = response;
      core_.wake(context, qp_);
      return true;
    }
  }
  return push(context, response);
}

bool Responder::push(Context& context, const Response& response) {
  if (waiting_ == room_ && room_ == kFew) [[unlikely]]
    grow();
  // As many as there are requests that may wait for one: who floods with duplicates gets no more, and whose response is
  // missing asks again. Not so after a NAK that ends the queue pair, which would not answer: that has a place of its
  // own.
  if (waiting_ >= kMany && !ends_connection(response.syndrome)) [[unlikely]] {
    core_.count.responses_dropped.add();
    return false;
  }
  waiting_++;
  back() = response;
  if (response.kind != Response::Kind::kAcknowledge && !response.is_again) reads_waiting_++;
  core_.wake(context, qp_);
  return true;
}

// Once in the life of a queue pair that has many to send.
void Responder::grow() {
  many_ = std::make_unique<Response[]>(kMany + 1);
  for (std::uint32_t i = 0; i < waiting_; i++) many_[i] = responses_[(first_ + i) % room_];
  responses_ = many_.get();
  room_ = kMany + 1;
  first_ = 0;
}

// Of what acknowledges: how many messages beyond its MSN find a receive request; one that has taken its own counts.
std::uint8_t Responder::with_credits(std::uint8_t syndrome) const {
  if (!core_.config.credits || roce::aeth_kind(syndrome) != roce::AethKind::kAck || qp_.init.shared_receive_queue)
    return syndrome;
  return credit_code(qp_.own_receive_queue.posted() + work_.taken);
}

PacketPtr Responder::send(Context& context) {
  Response& response = front();
  if (response.kind == Response::Kind::kRead) return send_read(context, response);
  const bool is_atomic = response.kind == Response::Kind::kAtomic;
  PacketFields fields;
  fields.opcode = is_atomic ? IBV_OPCODE_RC_ATOMIC_ACKNOWLEDGE : IBV_OPCODE_RC_ACKNOWLEDGE;
  fields.psn = response.psn;
  fields.destination_qp = qp_.attributes.destination_qp;
  fields.udp_source_port = qp_.attributes.udp_source_port;
  PacketPtr packet = core_.make(context, qp_.headers, fields);
  if (!packet) return packet;
  auto* aeth = reinterpret_cast<roce::Aeth*>(Headers::extension(*packet));
  aeth->syndrome = with_credits(response.syndrome);
  aeth->msn = response.msn;
  if (is_atomic) {
    reinterpret_cast<roce::AtomicAckEth*>(aeth + 1)->original = response.address;
    if (!response.is_again) reads_waiting_--;
  } else {
    const roce::AethKind kind = roce::aeth_kind(response.syndrome);
    (kind == roce::AethKind::kAck   ? core_.count.acks_sent
     : kind == roce::AethKind::kNak ? core_.count.naks_sent
                                    : core_.count.rnr_naks_sent)
        .add();
  }
  core_.finish(*packet);
  pop();
  return packet;
}

PacketPtr Responder::send_read(Context& context, Response& response) {
  const std::uint32_t mtu = qp_.attributes.path_mtu;
  const std::uint64_t offset = std::uint64_t{response.sent} * mtu;
  const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, response.bytes - offset));
  const bool is_first = response.sent == 0, is_last = response.sent + 1 == response.packets;
  PacketFields fields;
  fields.opcode = is_first && is_last ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_ONLY
                  : is_first          ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
                  : is_last           ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST
                                      : IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
  fields.psn = roce::psn_add(response.psn, response.sent);
  fields.destination_qp = qp_.attributes.destination_qp;
  fields.payload_bytes = bytes;
  fields.udp_source_port = qp_.attributes.udp_source_port;
  // The key may have been taken back since the request came.
  if (bytes && core_.memory.check(response.rkey, qp_.accessor(), response.address + offset, bytes,
                                  IBV_ACCESS_REMOTE_READ) != MemoryError::kNone) {
    refuse_to_go_on(context, response, fields.psn);
    return send(context);
  }
  PacketPtr packet = core_.make(context, qp_.headers, fields);
  if (!packet) return packet;
  if (is_first || is_last) {
    auto* aeth = reinterpret_cast<roce::Aeth*>(Headers::extension(*packet));
    aeth->syndrome = with_credits(response.syndrome);
    aeth->msn = response.msn;
  }
  if (bytes && Core::has_payload(*packet))
    core_.memory.read(response.rkey, response.address + offset, bytes, Headers::payload(*packet));
  core_.finish(*packet);
  pace(context, *packet);
  if (++response.sent == response.packets) {
    if (!response.is_again) reads_waiting_--;
    pop();
  }
  return packet;
}

// A NAK takes the place of the rest of a READ's response, and of all behind it: as Responder::refuse() (9.9.2).
void Responder::refuse_to_go_on(Context& context, Response& response, std::uint32_t psn) {
  core_.count.resp_remote_access_errors.add();
  response = {Response::Kind::kAcknowledge, 0x60 | static_cast<std::uint8_t>(roce::NakCode::kRemoteAccessError), false,
              psn, response.msn};
  waiting_ = 1;
  reads_waiting_ = 0;
  if (qp_.attributes.state == IBV_QPS_ERR) return;  // what has failed it since has been told
  core_.tell({IBV_EVENT_QP_ACCESS_ERR, qp_.number()});
  core_.fail(context, qp_);
}

// As Requester::pace(): what answers READs is data, too (SCR, A.5).
void Responder::pace(Context& context, Packet packet) {
  const auto bytes = static_cast<std::uint32_t>(packet.wire_bytes() + core_.config.overhead);
  if (core_.is_observed(QpEventKind::kTxResponse)) [[unlikely]] {
    QpEvent event;
    event.kind = QpEventKind::kTxResponse;
    event.psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
    event.bytes = bytes;
    event.udp_source_port = qp_.attributes.udp_source_port;
    core_.observe(context, qp_, event);
  }
  if (qp_.response_rate == 0) return;
  const LimiterConfig& limiter = core_.config.limiter;
  const double nanos_per_byte = 8e9 / limiter.effective(qp_.response_rate);
  const Nanos saved = most_saved(core_.config, bytes, nanos_per_byte);
  paced_until_ =
      std::max(paced_until_, context.now() - saved) + static_cast<Nanos>(static_cast<double>(bytes) * nanos_per_byte);
  if (paced_until_ <= context.now()) return;
  is_paced_ = true;
  context.arm(qp_.response_timer, paced_until_);
}

void Responder::on_pace_timer(Context& context) {
  is_paced_ = false;
  core_.wake(context, qp_);
}

void Responder::flush(Context& context) {
  if (work_.taken) core_.complete_receive(context, qp_, work_, {MLX5_CQE_RESP_SEND}, IBV_WC_WR_FLUSH_ERR);
  message_ = Message::kNone;
  is_paced_ = false;
  // What was accepted before the NAK that ends it goes out first.
  if (waiting_ == 0 || !ends_connection(back().syndrome)) {
    first_ = waiting_ = 0;
    reads_waiting_ = 0;
  }
  while (qp_.receive_queue().kind() == ReceiveQueue::Kind::kOwn && qp_.receive_queue().fetch(work_))
    core_.complete_receive(context, qp_, work_, {MLX5_CQE_RESP_SEND}, IBV_WC_WR_FLUSH_ERR);
}

}  // namespace rocebox::nic_model
