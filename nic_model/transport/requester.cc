// SPDX-License-Identifier: BSD-3-Clause
// What a requester sends; requester_responses.cc has what comes back.
#include "nic_model/transport/requester.h"

#include <algorithm>
#include <bit>

#include "nic_model/core.h"

namespace rocebox::nic_model {
namespace {

// The service's first opcode and the place of the packet in its message.
struct Opcodes {
  std::uint8_t first, middle, last, last_more, only, only_more;  // `more`: with immediate or invalidate
};
constexpr Opcodes kSendOpcodes = {IBV_OPCODE_SEND_FIRST, IBV_OPCODE_SEND_MIDDLE,
                                  IBV_OPCODE_SEND_LAST,  IBV_OPCODE_SEND_LAST_WITH_IMMEDIATE,
                                  IBV_OPCODE_SEND_ONLY,  IBV_OPCODE_SEND_ONLY_WITH_IMMEDIATE};
constexpr Opcodes kSendInvalidateOpcodes = {IBV_OPCODE_SEND_FIRST, IBV_OPCODE_SEND_MIDDLE, 0x16, 0x16, 0x17, 0x17};
constexpr Opcodes kWriteOpcodes = {IBV_OPCODE_RDMA_WRITE_FIRST, IBV_OPCODE_RDMA_WRITE_MIDDLE,
                                   IBV_OPCODE_RDMA_WRITE_LAST,  IBV_OPCODE_RDMA_WRITE_LAST_WITH_IMMEDIATE,
                                   IBV_OPCODE_RDMA_WRITE_ONLY,  IBV_OPCODE_RDMA_WRITE_ONLY_WITH_IMMEDIATE};

// With direct placement each packet of a WRITE is one of its own: only so has it an address (Themis, 2.2).
std::uint8_t opcode_of(const SendWork& work, std::uint32_t packet, std::uint8_t service, bool directly) {
  std::uint8_t opcode;
  if (work.is_read()) {
    opcode = IBV_OPCODE_RDMA_READ_REQUEST;
  } else if (work.is_atomic()) {
    opcode = work.opcode == MLX5_OPCODE_ATOMIC_CS ? IBV_OPCODE_COMPARE_SWAP : IBV_OPCODE_FETCH_ADD;
  } else {
    const bool writes = work.is_write();
    const bool more = work.opcode == MLX5_OPCODE_RDMA_WRITE_IMM || work.opcode == MLX5_OPCODE_SEND_IMM;
    const Opcodes& all = writes                                  ? kWriteOpcodes
                         : work.opcode == MLX5_OPCODE_SEND_INVAL ? kSendInvalidateOpcodes
                                                                 : kSendOpcodes;
    const bool is_last = packet + 1 == work.packets;
    if (work.packets == 1 || (writes && directly))
      opcode = more && is_last ? all.only_more : all.only;
    else if (packet == 0)
      opcode = all.first;
    else
      opcode = !is_last ? all.middle : more ? all.last_more : all.last;
  }
  return static_cast<std::uint8_t>(service | opcode);
}

}  // namespace

Requester::Requester(Core& core, Qp& qp)
    : core_(core),
      qp_(qp),
      works_(std::bit_ceil(qp.send_queue.requests_max() + 1)),
      mask_(static_cast<std::uint32_t>(works_.size() - 1)) {}

void Requester::reset() {
  oldest_ = current_ = end_ = packet_ = 0;
  reads_first_ = reads_count_ = reads_sent_ = 0;
  forget_recovery();
  tells_drained_ = false;
  deadline_ = kNever;
  rnr_until_ = 0;
  paced_until_ = kFullBucket;
}

void Requester::start() {
  next_psn_ = una_ = sent_end_ = ack_asked_ = qp_.attributes.send_psn;
  implied_nak_psn_ = roce::psn_add(una_, -1);
  const LossRecovery& recovery = qp_.attributes.loss_recovery;
  if (recovery.window <= 2) ack_asked_ = roce::psn_add(una_, -1);  // before so small a window is full
  // In its last life it may have recovered otherwise.
  if (recovery.how == Recovery::kSelective)
    came_.resize(recovery.window);
  else
    came_ = {};
  again_ = {};
  retries_ = qp_.attributes.retry_cnt;
  rnr_retries_ = qp_.attributes.rnr_retry;
  messages_ = credit_limit_ = 0;
  counts_credits_ = core_.config.credits && qp_.is(IBV_QPT_RC);
}

bool Requester::fetch() {
  bool any = false;
  // PSNs of what was read must be told apart: what is longer waits in the queue.
  while (qp_.send_queue.has_posted() && end_ - oldest_ <= mask_ &&
         (end_ == oldest_ || qp_.send_queue.has_room_behind(at(oldest_).wqe_counter)) &&
         roce::psn_distance(next_psn_, una_) < static_cast<std::int32_t>(kPsnsReadMax)) {
    any = true;
    SendWork& work = at(end_++);
    qp_.send_queue.fetch(work);
    work.first_psn = next_psn_;
    // MTUs are powers of two.
    const unsigned shift = static_cast<unsigned>(std::countr_zero(qp_.attributes.path_mtu));
    const std::uint32_t rest = work.bytes & ((1u << shift) - 1);
    const std::uint32_t packets = (work.bytes >> shift) + (rest != 0);
    if (!work.is_local() && (work.bytes > kMessageBytesMax || packets > 2 * kPsnsReadMax))
      work.error = IBV_WC_LOC_LEN_ERR;
    // What ends in an error takes one, however long it says that it is: of more, before and after could not be told.
    work.packets = work.is_atomic() || work.error ? 1 : work.is_local() ? 0 : std::max(1u, packets);
    next_psn_ = roce::psn_add(next_psn_, work.packets);
    work.message = work.is_local() ? messages_ : ++messages_ & roce::kPsnMask;
  }
  return any;
}

bool Requester::places_directly() const { return qp_.attributes.loss_recovery.places_directly() && qp_.is(IBV_QPT_RC); }

// READs and atomics that may be under way. Where there may be none one has its turn, too: it is an error, or was begun
// before that was so.
unsigned Requester::reads_most() const { return std::clamp<unsigned>(qp_.attributes.max_rd_atomic, 1, kRdAtomicMax); }

bool Requester::may_begin(const SendWork& work) const {
  if (qp_.attributes.state == IBV_QPS_SQD && packet_ == 0 && roce::psn_distance(work.first_psn, sent_end_) >= 0)
    return false;  // no new message once the queue is being drained
  if (work.is_read_or_atomic() && reads_sent_ >= reads_most()) return false;
  return !(work.has(MLX5_WQE_CTRL_FENCE) && reads_sent_ > 0);
}

bool Requester::may_send(Nanos now) const {
  if (!qp_.can_send() || now < rnr_until_ || now < paced_until_) return false;
  if (has_to_resend()) return qp_.path_known;
  if (current_ == end_) return false;
  const SendWork& work = at(current_);
  if (qp_.is(IBV_QPT_UD)) return may_begin(work);
  if (!qp_.path_known) return false;
  if (qp_.is(IBV_QPT_UC)) return packet_ > 0 || may_begin(work);
  const auto ahead = roce::psn_distance(roce::psn_add(work.first_psn, packet_), una_);
  if (ahead >= static_cast<std::int64_t>(qp_.attributes.loss_recovery.window)) return false;
  // One packet may go and ask, when nothing else has.
  if (counts_credits_ && ahead != 0 && expects_response() && is_without_credit(work)) return false;
  return packet_ > 0 ? !work.is_read() || reads_sent_ < reads_most() : may_begin(work);
}

// What is checked before the first packet of a message: the request itself, and the memory that it names.
bool Requester::begin(Context& context, SendWork& work) {
  ibv_wc_status status = IBV_WC_SUCCESS;
  const bool datagram = qp_.is(IBV_QPT_UD);
  const bool writes_here = work.is_read_or_atomic();
  if (work.error)
    status = static_cast<ibv_wc_status>(work.error);
  else if (datagram && work.bytes > qp_.attributes.path_mtu)
    status = IBV_WC_LOC_LEN_ERR;
  else if ((datagram && !is_datagram_possible(work)) ||
           (qp_.is(IBV_QPT_UC) && (writes_here || work.opcode == MLX5_OPCODE_SEND_INVAL)) ||
           (work.is_atomic() && work.bytes != 8) ||
           (writes_here && (work.is_inline || qp_.attributes.max_rd_atomic == 0)))
    status = IBV_WC_LOC_QP_OP_ERR;
  else if (!qp_.send_queue.check(work, core_.memory, qp_.accessor(), writes_here ? IBV_ACCESS_LOCAL_WRITE : 0))
    status = IBV_WC_LOC_PROT_ERR;
  if (oldest_ == current_) checked_at_ = core_.memory.revocations();  // all before it are done
  if (status == IBV_WC_SUCCESS) return true;
  fail(context, current_, status);
  return false;
}

// A key may have been taken back since the message began: what is still to be read or written of its memory fails.
bool Requester::may_go_on(Context& context, std::uint32_t index) {
  if (checked_at_ == core_.memory.revocations()) [[likely]]
    return true;
  const SendWork& work = at(index);
  if (qp_.send_queue.check(work, core_.memory, qp_.accessor(), work.is_read_or_atomic() ? IBV_ACCESS_LOCAL_WRITE : 0))
    return true;
  fail(context, index, IBV_WC_LOC_PROT_ERR);
  return false;
}

// A window of type 2 (10.6.7.2.2).
ibv_wc_status Requester::bind(const SendWork& work) {
  BindRequest bind;
  if (!qp_.send_queue.read_bind(work, bind)) return IBV_WC_LOC_QP_OP_ERR;
  if (bind.bytes == 0)
    return core_.memory.invalidate(bind.window, qp_.accessor()) ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
  MemoryError error;
  core_.memory.bind(bind.window, bind.variant, bind.region, bind.address, bind.bytes, bind.access, qp_.accessor(),
                    error);
  return error == MemoryError::kNone ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR;
}

// Those that send nothing are done in their turn, between the others, and once: what was done before packets were to be
// sent again stays so.
bool Requester::run_local(Context& context, SendWork& work) {
  if (!work.is_local() || work.error) return false;
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (!work.done && work.opcode == MLX5_OPCODE_UMR)
    status = bind(work);
  else if (!work.done && work.opcode == MLX5_OPCODE_LOCAL_INVAL &&
           !core_.memory.invalidate(be32toh(work.immediate), qp_.accessor()))
    status = IBV_WC_LOC_QP_OP_ERR;
  if (status != IBV_WC_SUCCESS) {
    fail(context, current_, status);
    return true;
  }
  work.done = true;
  current_++;
  packet_ = 0;
  complete_done(context);
  return true;
}

PacketPtr Requester::send(Context& context) {
  if (has_to_resend()) return resend(context);
  SendWork& work = at(current_);
  if (run_local(context, work)) return {};
  const bool is_new = packet_ == 0 && roce::psn_distance(work.first_psn, sent_end_) >= 0;
  if (is_new ? !begin(context, work) : !may_go_on(context, current_)) return {};
  return qp_.is(IBV_QPT_UD) ? send_datagram(context, work) : send_request(context, work);
}

bool Requester::wants_ack(std::uint32_t psn, bool is_last) const {
  if (is_last) return true;
  const std::uint32_t every = std::min<std::uint32_t>(static_cast<std::uint32_t>(core_.config.ack_every),
                                                      qp_.attributes.loss_recovery.window / 2 + 1);
  return roce::psn_distance(psn, ack_asked_) >= static_cast<std::int32_t>(every);
}

PacketPtr Requester::send_request(Context& context, SendWork& work) {
  const bool reliable = qp_.is(IBV_QPT_RC);
  const std::uint32_t psn = roce::psn_add(work.first_psn, packet_);
  const bool is_last = work.is_read_or_atomic() || packet_ + 1 == work.packets;
  const bool ack_req = reliable && (wants_ack(psn, is_last) || is_without_credit(work));
  PacketPtr packet = send_data(context, work, packet_, ack_req);
  if (!packet) return {};
  if (is_paced()) [[unlikely]]
    pace(context, *packet);
  if (work.is_read_or_atomic()) {
    if (reads_sent_ == reads_count_) reads_[(reads_first_ + reads_count_++) % kRdAtomicMax] = current_;
    reads_sent_++;
    packet_ = work.packets;
  } else {
    packet_++;
  }
  const std::uint32_t end = roce::psn_add(work.first_psn, packet_);
  if (ack_req) {
    ack_asked_ = roce::psn_add(end, -1);
    if (deadline_ == kNever) arm_retransmission(context);
  }
  if (roce::psn_distance(end, sent_end_) > 0)
    sent_end_ = end;
  else
    core_.count.retransmitted_packets.add();
  if (packet_ >= work.packets) {
    current_++;
    packet_ = 0;
  }
  if (!reliable && is_last) {
    una_ = sent_end_;
    complete_done(context);
  }
  return packet;
}

// Packet `number` of a message, whether for the first time or not.
PacketPtr Requester::send_data(Context& context, const SendWork& work, std::uint32_t number, bool ack_req) {
  const std::uint32_t mtu = qp_.attributes.path_mtu;
  const std::uint64_t offset = std::uint64_t{number} * mtu;
  const auto bytes =
      work.is_read_or_atomic() ? 0u : static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu, work.bytes - offset));
  const std::uint8_t service = qp_.is(IBV_QPT_RC) ? 0 : roce::first_opcode(roce::Service::kUc);
  return build(context, work, opcode_of(work, number, service, places_directly()),
               roce::psn_add(work.first_psn, number), offset, bytes, ack_req);
}

PacketPtr Requester::build(Context& context, const SendWork& work, std::uint8_t opcode, std::uint32_t psn,
                           std::uint64_t offset, std::uint32_t bytes, bool ack_req) {
  const roce::OpcodeInfo& info = roce::opcode_info(opcode);
  const bool is_last = info.has(roce::kEndsMessage);
  const PacketFields fields{opcode,
                            ack_req,
                            is_last && offset + bytes == work.bytes && work.has(MLX5_WQE_CTRL_SOLICITED),
                            psn,
                            qp_.attributes.destination_qp,
                            bytes,
                            qp_.attributes.udp_source_port};
  PacketPtr packet = core_.make(context, qp_.headers, fields);
  if (!packet) return {};
  std::uint8_t* at = Headers::extension(*packet);
  if (info.has(roce::kHasReth)) {
    auto* reth = reinterpret_cast<roce::Reth*>(at);
    reth->virtual_address = work.remote_address + offset;
    reth->rkey = work.rkey;
    // With direct placement that of the packet, but with an immediate that of the message, which its receiver is told.
    reth->dma_length = work.is_read() || !places_directly() ? work.bytes - offset
                       : info.has(roce::kHasImmDt)          ? work.bytes
                                                            : bytes;
    at += sizeof *reth;
  }
  if (info.has(roce::kHasAtomicEth)) {
    auto* atomic = reinterpret_cast<roce::AtomicEth*>(at);
    atomic->virtual_address = work.remote_address;
    atomic->rkey = work.rkey;
    atomic->swap_add = work.swap_add;
    atomic->compare = work.compare;
    at += sizeof *atomic;
  }
  if (info.has(roce::kHasImmDt) || info.has(roce::kHasIeth)) std::memcpy(at, &work.immediate, 4);
  if (bytes && Core::has_payload(*packet)) {
    if (bytes >= Memory::kPrefetchedBytes) prefetch_behind(work, offset + bytes, bytes);
    qp_.send_queue.gather(work, core_.memory, offset, bytes, Headers::payload(*packet));
  }
  core_.finish(*packet);
  return packet;
}

// Payloads begin on other pages, which the processor does not see coming: while one is copied the beginning of the
// next, of this message or of the one behind it, is on its way.
void Requester::prefetch_behind(const SendWork& work, std::uint64_t offset, std::uint32_t bytes) const {
  if (offset < work.bytes) return qp_.send_queue.prefetch_data(work, core_.memory, offset, bytes);
  if (current_ == end_ || current_ + 1 == end_) return;
  const SendWork& next = at(current_ + 1);
  if (!next.is_read_or_atomic()) qp_.send_queue.prefetch_data(next, core_.memory, 0, bytes);
}

std::uint8_t Requester::traffic_class() const {
  // Only what is a datagram has an address.
  return current_ == end_ || at(current_).is_local() || at(current_).error
             ? std::uint8_t{0}
             : qp_.send_queue.address(at(current_)).tclass;
}

Nanos Requester::timeout() const {
  if (const Nanos own = qp_.attributes.loss_recovery.retransmission_timeout) return own;
  // IB specification, 9.7.6.1.3: 4.096 us times a power of two; 0 is for ever.
  return qp_.attributes.timeout ? Nanos{4096} << (qp_.attributes.timeout & 31) : kNever;
}

// Of what asks for a response, from when it leaves: what waits for its turn or its rate has nothing to wait for (IB
// specification, 9.7.6.1.3). The timer stays where it is when the deadline moves away: it looks when it fires.
void Requester::arm_retransmission(Context& context) {
  const Nanos wait = timeout();
  deadline_ = wait == kNever ? kNever : context.now() + wait;
  if (deadline_ != kNever) context.arm_by(qp_.retransmit_timer, deadline_);
}

}  // namespace rocebox::nic_model
