// SPDX-License-Identifier: BSD-3-Clause
// Requests of reliable connections, in order; responses.cc has what is sent back.
#include "nic_model/transport/responder.h"

#include "nic_model/core.h"

namespace rocebox::nic_model {

void Responder::reset() {
  message_ = Message::kNone;
  // What others share has room again.
  if (work_.taken && qp_.init.shared_receive_queue) qp_.init.shared_receive_queue->retire(work_.wqe_counter);
  work_ = {};
  group_writes_.reset();
  if (ahead_.window()) ahead_.clear();
  completions_ahead_.clear();
  ack_wanted_.reset();
  nak_sent_ = is_placed_ = false;
  msn_ = 0;
  first_ = waiting_ = 0;
  resources_end_ = 0;
  reads_waiting_ = 0;
  is_paced_ = false;
  paced_until_ = 0;
}

void Responder::start() {
  epsn_ = qp_.attributes.receive_psn;
  const LossRecovery& recovery = qp_.attributes.loss_recovery;
  places_ahead_ = recovery.places_directly() && qp_.is(IBV_QPT_RC);
  // In its last life it may have recovered otherwise.
  if (places_ahead_)
    ahead_.resize(recovery.window * 2);
  else
    ahead_ = {};
  keep_resources();
}

Counter& Responder::on_request(Context& context, Packet packet) {
  return qp_.is(IBV_QPT_UC) ? on_unreliable(context, packet) : on_reliable(context, packet);
}

Counter& Responder::on_reliable(Context& context, Packet packet) {
  const std::int32_t distance = roce::psn_distance(static_cast<std::uint32_t>(roce::bth(packet).psn), epsn_);
  if (distance == 0) {
    Counter& end = execute(context, packet);
    if (places_ahead_ && ahead_.has(epsn_)) catch_up(context);
    return end;
  }
  if (distance < 0) return duplicate(context, packet);
  core_.count.out_of_sequence.add();
  if (places_ahead_) return place_ahead(context, packet);
  nak_gap(context, 0);
  return core_.count.drop_out_of_sequence;
}

// 9.7.5.1.2: SENDs and WRITEs are acknowledged again, READs executed again, atomics answered from memory.
Counter& Responder::duplicate(Context& context, Packet packet) {
  core_.count.duplicate_request.add();
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const auto psn = static_cast<std::uint32_t>(roce::bth(packet).psn);
  if (info.has(roce::kIsSend) || info.has(roce::kIsWrite)) {
    acknowledge(context, roce::psn_add(epsn_, -1), 0x1F);
    return core_.count.drop_duplicate;
  }
  const std::uint32_t kept =
      std::min<std::uint32_t>(resources_end_, std::max<std::uint32_t>(qp_.attributes.max_dest_rd_atomic, 1));
  const std::size_t mask = resources_.size() - 1;
  // Newest first: an older one's PSNs may name another request by now, when they have gone round. One that is not
  // farther behind than those that came after it is of a round before, and so are all before it.
  std::int32_t newer = 0;
  for (std::uint32_t back = 1; back <= kept; back++) {
    const Resource& resource = resources_[(resources_end_ - back) & mask];
    const std::int32_t behind = roce::psn_distance(resource.psn, epsn_);
    if (behind >= newer) break;
    newer = behind;
    const std::int32_t into = roce::psn_distance(psn, resource.psn);
    if (into < 0 || into >= static_cast<std::int32_t>(resource.packets)) continue;
    if (resource.is_atomic != info.has(roce::kHasAtomicEth)) continue;
    if (resource.is_atomic) {
      push(context, {Response::Kind::kAtomic, 0x1F, true, psn, resource.msn, 1, 0, 0, 8, resource.original});
      return core_.count.delivered;
    }
    // It may ask for the rest only, and must lie within what was asked for then.
    const roce::Reth& reth = *roce::reth(packet);
    const std::uint64_t skipped = std::uint64_t(into) * qp_.attributes.path_mtu;
    if (reth.rkey != resource.rkey || reth.virtual_address != resource.address + skipped ||
        reth.dma_length > resource.bytes - skipped)
      continue;
    const auto bytes = static_cast<std::uint32_t>(reth.dma_length);
    push(context, {Response::Kind::kRead, 0x1F, true, psn, resource.msn,
                   roce::read_psns(bytes, qp_.attributes.path_mtu), 0, resource.rkey, bytes, reth.virtual_address});
    return core_.count.delivered;
  }
  return core_.count.drop_duplicate;
}

bool Responder::opcode_fits(const roce::OpcodeInfo& info) const {
  if (!info.has(roce::kIsRequest)) return false;
  if (info.has(roce::kStartsMessage)) return message_ == Message::kNone;
  return message_ == (info.has(roce::kIsWrite) ? Message::kWrite : Message::kSend);
}

bool Responder::length_fits(Packet packet, const roce::OpcodeInfo& info) const {
  const std::uint32_t bytes = packet.meta().payload_bytes, mtu = qp_.attributes.path_mtu;
  const bool starts = info.has(roce::kStartsMessage), ends = info.has(roce::kEndsMessage);
  if (!ends) return bytes == mtu;
  return starts ? bytes <= mtu : bytes > 0 && bytes <= mtu;
}

Counter& Responder::execute(Context& context, Packet packet) {
  nak_sent_ = false;
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  if (!opcode_fits(info)) return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
  if (info.has(roce::kIsSend) || info.has(roce::kIsWrite)) return execute_data(context, packet);
  is_placed_ = false;
  if (info.has(roce::kHasAtomicEth)) return execute_atomic(context, packet);
  return execute_read(context, packet);
}

// A packet of a SEND or WRITE.
Counter& Responder::execute_data(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  const bool writes = info.has(roce::kIsWrite), ends = info.has(roce::kEndsMessage);
  if (!length_fits(packet, info)) return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
  if (info.has(roce::kStartsMessage)) {
    received_ = 0;
    if (writes) {
      const roce::Reth& reth = *roce::reth(packet);
      rkey_ = static_cast<std::uint32_t>(reth.rkey);
      address_ = reth.virtual_address;
      length_ = message_bytes_ = reth.dma_length;
      if (places_ahead_ && info.has(roce::kHasImmDt))
        length_ = std::min<std::uint64_t>(length_, packet.meta().payload_bytes);
      if (!(qp_.attributes.access & IBV_ACCESS_REMOTE_WRITE) || message_bytes_ > kMessageBytesMax)
        return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
      if (length_ &&
          core_.memory.check(rkey_, qp_.accessor(), address_, length_, IBV_ACCESS_REMOTE_WRITE) != MemoryError::kNone)
        return refuse(context, roce::NakCode::kRemoteAccessError, IBV_EVENT_QP_ACCESS_ERR);
      checked_at_ = core_.memory.revocations();
    } else {
      if (!take_receive(context)) return not_ready(context);
      length_ = work_.bytes;
    }
  } else if (writes && !may_go_on()) {
    return refuse(context, roce::NakCode::kRemoteAccessError, IBV_EVENT_QP_ACCESS_ERR);
  }
  const std::uint64_t after = received_ + packet.meta().payload_bytes;
  if (writes ? (ends ? after != length_ : after >= length_) : after > length_) {
    if (writes) return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
    return too_long(context, {MLX5_CQE_RESP_SEND});
  }
  if (!writes && !qp_.receive_queue().check(work_, core_.memory, qp_.accessor(), after)) {
    return fail_receive(context, {MLX5_CQE_RESP_SEND}, IBV_WC_LOC_PROT_ERR);
  }
  if (writes && ends && info.has(roce::kHasImmDt) && !take_receive(context)) {
    if (info.has(roce::kStartsMessage)) message_ = Message::kNone;
    return not_ready(context);
  }
  message_ = writes ? Message::kWrite : Message::kSend;
  if (!is_placed_ || !was_placed(packet)) place(packet);
  received_ = after;
  if (ends) return finish_message(context, packet);
  accepted(context, packet, 1);
  return core_.count.delivered;
}

// The key of a WRITE may have been taken back since its first packet came.
bool Responder::may_go_on() {
  if (checked_at_ == core_.memory.revocations()) [[likely]]
    return true;
  checked_at_ = core_.memory.revocations();
  return core_.memory.check(rkey_, qp_.accessor(), address_, length_, IBV_ACCESS_REMOTE_WRITE) == MemoryError::kNone;
}

void Responder::place(Packet packet) {
  const std::uint32_t bytes = packet.meta().payload_bytes;
  const std::uint8_t* from = Core::has_payload(packet) ? Headers::payload(packet) : nullptr;
  if (bytes == 0) return;
  if (message_ == Message::kWrite)
    core_.memory.write(rkey_, address_ + received_, bytes, from);
  else
    qp_.receive_queue().scatter(work_, core_.memory, received_, bytes, from);
}

bool Responder::take_receive(Context&) {
  if (work_.taken) return true;
  ReceiveQueue& queue = qp_.receive_queue();
  if (!queue.fetch(work_)) return false;
  if (queue.kind() == ReceiveQueue::Kind::kShared && queue.take_limit_event())
    core_.tell({IBV_EVENT_SRQ_LIMIT_REACHED, queue.number()});
  return true;
}

// The message is whole: its receive request, where it took one, is complete.
Counter& Responder::finish_message(Context& context, Packet packet) {
  const roce::OpcodeInfo& info = roce::opcode_info(packet.meta().opcode);
  Received what;
  const bool writes = message_ == Message::kWrite;
  what.bytes = static_cast<std::uint32_t>(writes ? message_bytes_ : received_);
  what.solicited = roce::bth(packet).solicited_event();
  what.cqe_opcode = writes ? MLX5_CQE_RESP_WR_IMM : MLX5_CQE_RESP_SEND;
  if (info.has(roce::kHasImmDt)) {
    std::memcpy(&what.immediate, roce::immdt(packet), 4);
    if (!writes) what.cqe_opcode = MLX5_CQE_RESP_SEND_IMM;
  } else if (info.has(roce::kHasIeth)) {
    const auto rkey = static_cast<std::uint32_t>(roce::ieth(packet)->rkey);
    if (!core_.memory.invalidate(rkey, qp_.accessor())) {
      core_.complete_receive(context, qp_, work_, what, IBV_WC_LOC_PROT_ERR);
      message_ = Message::kNone;
      return refuse(context, roce::NakCode::kRemoteAccessError, IBV_EVENT_QP_ACCESS_ERR);
    }
    std::memcpy(&what.immediate, roce::ieth(packet), 4);
    what.cqe_opcode = MLX5_CQE_RESP_SEND_INV;
  }
  (writes ? core_.count.rx_write_requests : core_.count.rx_send_requests).add();
  message_ = Message::kNone;
  msn_ = (msn_ + 1) & roce::kPsnMask;
  // One that a lost SEND had taken waits for the next that needs one.
  if (!writes || info.has(roce::kHasImmDt)) core_.complete_receive(context, qp_, work_, what, IBV_WC_SUCCESS);
  accepted(context, packet, 1);
  return core_.count.delivered;
}

void Responder::accepted(Context& context, Packet packet, std::uint32_t psns) {
  epsn_ = roce::psn_add(epsn_, psns);
  const roce::Bth& bth = roce::bth(packet);
  if (qp_.is(IBV_QPT_RC) && bth.ack_req()) acknowledge(context, static_cast<std::uint32_t>(bth.psn), 0x1F);
}

Counter& Responder::execute_read(Context& context, Packet packet) {
  const roce::Reth& reth = *roce::reth(packet);
  const auto bytes = static_cast<std::uint32_t>(reth.dma_length);
  if (!(qp_.attributes.access & IBV_ACCESS_REMOTE_READ) || bytes > kMessageBytesMax ||
      reads_waiting_ >= qp_.attributes.max_dest_rd_atomic)
    return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
  const auto rkey = static_cast<std::uint32_t>(reth.rkey);
  if (bytes && core_.memory.check(rkey, qp_.accessor(), reth.virtual_address, bytes, IBV_ACCESS_REMOTE_READ) !=
                   MemoryError::kNone)
    return refuse(context, roce::NakCode::kRemoteAccessError, IBV_EVENT_QP_ACCESS_ERR);
  const std::uint32_t packets = roce::read_psns(bytes, qp_.attributes.path_mtu);
  // Messages that came ahead would lie within this one's PSNs.
  if (places_ahead_ && has_ahead(packets)) return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
  core_.count.rx_read_requests.add();
  msn_ = (msn_ + 1) & roce::kPsnMask;
  add_resource({false, epsn_, packets, rkey, bytes, msn_, reth.virtual_address, 0});
  push(context, {Response::Kind::kRead, 0x1F, false, epsn_, msn_, packets, 0, rkey, bytes, reth.virtual_address});
  epsn_ = roce::psn_add(epsn_, packets);
  return core_.count.delivered;
}

Counter& Responder::execute_atomic(Context& context, Packet packet) {
  const roce::AtomicEth& atomic = *roce::atomic_eth(packet);
  const std::uint64_t address = atomic.virtual_address;
  const auto rkey = static_cast<std::uint32_t>(atomic.rkey);
  if (!(qp_.attributes.access & IBV_ACCESS_REMOTE_ATOMIC) || address % 8 ||
      reads_waiting_ >= qp_.attributes.max_dest_rd_atomic)
    return refuse(context, roce::NakCode::kInvalidRequest, IBV_EVENT_QP_REQ_ERR);
  if (core_.memory.check(rkey, qp_.accessor(), address, 8, IBV_ACCESS_REMOTE_ATOMIC) != MemoryError::kNone ||
      !core_.memory.in_one_piece(rkey, address, 8))
    return refuse(context, roce::NakCode::kRemoteAccessError, IBV_EVENT_QP_ACCESS_ERR);
  std::uint64_t original = 0;
  if (std::uint8_t* place = core_.memory.eight_bytes(rkey, address)) {
    std::memcpy(&original, place, 8);
    const bool swaps = (packet.meta().opcode & 0x1F) == IBV_OPCODE_COMPARE_SWAP;
    const std::uint64_t value = !swaps                       ? original + atomic.swap_add
                                : original == atomic.compare ? std::uint64_t{atomic.swap_add}
                                                             : original;
    std::memcpy(place, &value, 8);
  } else {
    core_.memory.write(rkey, address, 8, nullptr);
  }
  core_.count.rx_atomic_requests.add();
  msn_ = (msn_ + 1) & roce::kPsnMask;
  add_resource({true, epsn_, 1, rkey, 8, msn_, address, original});
  push(context, {Response::Kind::kAtomic, 0x1F, false, epsn_, msn_, 1, 0, 0, 8, original});
  epsn_ = roce::psn_add(epsn_, 1);
  return core_.count.delivered;
}

// The request cannot be executed, ever: the requester is told, and the queue pair fails (9.9.2, table 65).
Counter& Responder::refuse(Context& context, roce::NakCode code, ibv_event_type event) {
  (code == roce::NakCode::kRemoteAccessError ? core_.count.resp_remote_access_errors
                                             : core_.count.resp_invalid_requests)
      .add();
  if (qp_.is(IBV_QPT_RC)) {
    acknowledge(context, epsn_, static_cast<std::uint8_t>(0x60 | static_cast<unsigned>(code)));
    core_.tell({event, qp_.number()});
    core_.fail(context, qp_);
  }
  return core_.count.drop_invalid;
}

// A SEND or datagram is longer than its receive request. An unreliable one is dropped and the request stays for the
// next (class D), but for a shared one, which cannot be given back (class E).
Counter& Responder::too_long(Context& context, const Received& what) {
  core_.count.resp_local_length_error.add();
  if (!qp_.is(IBV_QPT_RC) && !qp_.init.shared_receive_queue) return core_.count.drop_invalid;
  return fail_receive(context, what, IBV_WC_LOC_LEN_ERR);
}

// A receive request that ends in an error ends its queue pair, of whichever service (10.3.1; 9.9.3, class A).
Counter& Responder::fail_receive(Context& context, const Received& what, ibv_wc_status status) {
  core_.complete_receive(context, qp_, work_, what, status);
  const bool is_too_long = status == IBV_WC_LOC_LEN_ERR;
  if (qp_.is(IBV_QPT_RC))
    return refuse(context, is_too_long ? roce::NakCode::kInvalidRequest : roce::NakCode::kRemoteOperationalError,
                  is_too_long ? IBV_EVENT_QP_REQ_ERR : IBV_EVENT_QP_FATAL);
  core_.fail(context, qp_);
  return core_.count.drop_invalid;
}

Counter& Responder::not_ready(Context& context) {
  core_.count.out_of_buffer.add();
  if (!qp_.is(IBV_QPT_RC)) return core_.count.drop_rnr;  // which nobody is told
  nak_sent_ |= acknowledge(context, epsn_, static_cast<std::uint8_t>(0x20 | (qp_.attributes.min_rnr_timer & 0x1F)));
  return core_.count.drop_rnr;
}

}  // namespace rocebox::nic_model
