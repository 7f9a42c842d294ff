// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/dpa_receiver.h"

#include <bit>
#include <cstring>

#include "kernels/allgather/host/communicator.h"
#include "kernels/allgather/host/rank.h"

namespace rocebox::allgather {

DpaReceiver::DpaReceiver(Communicator& communicator, unsigned number, nic_model::dpa::Process& process)
    : communicator_(communicator), number_(number), process_(process) {
  thread_ = process.create_thread(is_uc() ? "allgather_uc_handler" : "allgather_ud_handler");
  if (!thread_) throw ConfigError("the DPA has too few threads for the subgroups: one each");
  worker_ = alloc<allgather_worker>(1, address_);
  make_queues();
}

bool DpaReceiver::is_uc() const { return communicator_.options().transport == Transport::kUc; }

template <class T>
T* DpaReceiver::alloc(std::size_t count, std::uint64_t& address) {
  address = process_.alloc(count * sizeof(T));
  if (!address) throw ConfigError("the DPA's `heap` is too small for staging rings, bitmaps and queues");
  return reinterpret_cast<T*>(process_.at(address, count * sizeof(T)));
}

// As many slots as the staging ring has, a power of two.
void DpaReceiver::make_queues() {
  allgather_worker& w = *worker_;
  const StagingRing& ring = communicator_.subgroup(number_).staging();
  w.log_receives = static_cast<std::uint32_t>(std::bit_width(ring.slots())) - 1;
  const std::uint32_t receives = 1u << w.log_receives;
  const nic_model::dpa::CqAddresses cq = process_.create_cq(w.log_receives + 1, thread_);
  if (!cq.cq) throw ConfigError("the DPA's `heap` is too small for a completion queue");
  w.cq_ring = cq.ring, w.cq_doorbell = cq.doorbell, w.cq_number = cq.number, w.log_cq_entries = cq.log_entries;
  nic_model::QpInit init;
  init.type = is_uc() ? IBV_QPT_UC : IBV_QPT_UD;
  init.send_cq = init.receive_cq = cq.cq;
  init.block_multicast_loopback = true;
  const nic_model::dpa::QpAddresses qp = process_.create_qp(init, 0, w.log_receives);
  init.type = IBV_QPT_RC;
  const nic_model::dpa::QpAddresses loopback =
      is_uc() ? nic_model::dpa::QpAddresses() : process_.create_qp(init, w.log_receives, 0);
  for (const nic_model::dpa::QpAddresses& one : {qp, loopback})
    if (one.doorbell && !one.qp) communicator_.rank().no_queue_pair_left();
  if (!qp.qp || (!is_uc() && !loopback.qp)) throw ConfigError("the DPA's `heap` is too small for its queue pairs");
  qp_ = qp.qp;
  loopback_ = loopback.qp;
  if (loopback_) communicator_.options().recovery.apply(communicator_.rank().host(), *loopback_);
  w.receive_ring = qp.receive_ring, w.receive_doorbell = qp.doorbell;
  w.loopback_ring = loopback.send_ring, w.loopback_number = loopback.number;
  w.slot_bytes = ring.slot_bytes(), w.staging_key = process_.heap_key();
  w.chunk_bits = communicator_.layout().chunk_bits, w.operations = communicator_.slots();
  if (!is_uc()) alloc<std::uint8_t>(std::size_t{receives} * w.slot_bytes, w.staging);
  alloc<std::uint8_t>(receives, w.finished);
  alloc<allgather_copy>(receives, w.copies);
  senders_ = alloc<allgather_sender>(communicator_.rank().team().ranks(), w.senders);
  auto* entries = reinterpret_cast<mlx5_wqe_data_seg*>(qp.receive_ring);
  for (std::uint32_t i = 0; i < receives; i++)
    entries[i] = {htobe32(is_uc() ? 0 : w.slot_bytes), htobe32(w.staging_key),
                  htobe64(w.staging + std::uint64_t{i} * w.slot_bytes)};
  *reinterpret_cast<__be32*>(qp.doorbell) = htobe32(receives);
}

void DpaReceiver::run() {
  Team& team = communicator_.rank().team();
  for (unsigned r = 0; r < team.ranks(); r++) {
    const Member& sender = team.member(r);
    senders_[r].qpn = sender.qpns[communicator_.number() * communicator_.subgroups() + number_];
    std::memcpy(&senders_[r].address, sender.address.data() + 12, 4);
  }
  // IPv4's source stands in the last 20 bytes of the GRH, IPv6's from byte 8 on.
  worker_->address_offset = roce::is_ipv4(communicator_.rank().address()) ? 32 : 20;
  process_.run(*thread_, address_);
}

void DpaReceiver::open(const Slot& slot, std::uint64_t team) {
  const Geometry& g = slot.geometry();
  Part& part = parts_[slot.number()];
  allgather_operation& o = worker_->operation[slot.number()];
  o.first = g.first_of(number_);
  o.length = g.end_of(number_) - o.first;
  const std::size_t words = (std::size_t{g.blocks()} * o.length + 63) / 64;
  if (words > part.words) alloc<std::uint64_t>(part.words = words, part.bitmap);
  if (g.blocks() > part.blocks) alloc<std::uint32_t>(part.blocks = g.blocks(), part.landed);
  part.seen.assign(g.blocks(), 0);
  if (words) std::memset(process_.at(part.bitmap, words * 8), 0, words * 8);
  std::memset(process_.at(part.landed, part.blocks * 4), 0, part.blocks * 4);
  o.tag = slot.tag();
  o.blocks = g.blocks(), o.chunks_per_block = g.chunks_per_block(), o.chunk_bytes = g.chunk_bytes();
  o.root = slot.operation().root;
  o.block_bytes = g.block_bytes();
  o.address = slot.buffer().address, o.key = slot.key();
  o.bitmap = part.bitmap, o.landed = part.landed;
  const bool is_own = slot.collective().is_root();
  o.left = std::uint64_t{g.blocks() - (is_own ? 1 : 0)} * o.length;
  o.team = team;
  if (is_own) mark(slot, slot.own_block(), 0, g.chunks_per_block());
  o.active = o.left > 0;
}

void DpaReceiver::close(const Slot& slot) { worker_->operation[slot.number()].active = 0; }

void DpaReceiver::mark(const Slot& slot, std::uint32_t block, std::uint32_t index, std::uint32_t count) {
  const allgather_operation& o = worker_->operation[slot.number()];
  auto* words = reinterpret_cast<std::uint64_t*>(o.bitmap);
  const std::uint32_t end = std::min(index + count, o.first + o.length);
  for (std::uint32_t i = std::max(index, o.first); i < end; i++) {
    const std::uint64_t bit = std::uint64_t{block} * o.length + i - o.first;
    words[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }
}

void DpaReceiver::sync(Slot& slot) {
  const allgather_operation& o = worker_->operation[slot.number()];
  Part& part = parts_[slot.number()];
  const auto* landed = reinterpret_cast<const std::uint32_t*>(part.landed);
  slot.reassembly().merge(number_, reinterpret_cast<const std::uint64_t*>(part.bitmap));
  for (unsigned block = 0; block < o.blocks && slot.is_active(); block++) {
    const std::uint32_t more = landed[block] - part.seen[block];
    if (more == 0) continue;
    part.seen[block] = landed[block];
    if (slot.reassembly().land(block, more)) slot.collective().on_whole(block);
  }
}

void DpaReceiver::count(TeamCounters& into) const {
  const allgather_worker& w = *worker_;
  into.chunks += w.chunks, into.duplicates += w.duplicates, into.stale += w.stale;
  into.out_of_range += w.out_of_range, into.other_subgroup += w.other_subgroup, into.strangers += w.strangers;
  into.wrong_length += w.wrong_length, into.no_immediate += w.no_immediate, into.copies += w.copies_done;
}

void DpaReceiver::stop(nic_model::Host& host) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  for (nic_model::Qp* qp : {qp_, loopback_})
    if (qp) host.modify_qp(*qp, a, IBV_QP_STATE);
}

}  // namespace rocebox::allgather
