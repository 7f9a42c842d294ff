// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/subgroup.h"

#include <cstring>

#include "kernels/allgather/host/communicator.h"
#include "kernels/allgather/host/rank.h"
#include "nic_model/host/connect.h"

namespace rocebox::allgather {
namespace {

constexpr unsigned kBatchesPosted = 2;  // one leaves while the next one waits
// Where staging rings without bytes lie: beyond all buffers.
constexpr std::uint64_t kStagingAddress = std::uint64_t{1} << 62;

}  // namespace

Subgroup::Subgroup(Communicator& communicator, unsigned number)
    : communicator_(communicator),
      number_(number),
      staging_(communicator.options().staging, static_cast<std::uint32_t>(communicator.options().mtu)),
      requests_(static_cast<std::size_t>(communicator.options().batch)),
      pieces_(requests_.size()),
      copies_(staging_.slots()) {}

bool Subgroup::is_uc() const { return communicator_.options().transport == Transport::kUc; }

// The staging ring, and what all queue pairs are made with.
nic_model::QpInit Subgroup::make_staging(nic_model::Host& host) {
  Rank& rank = communicator_.rank();
  base_ = kStagingAddress;
  const bool stages = !is_uc() && communicator_.options().receiver == Receiver::kHost;
  if (stages && rank.team().has_bytes()) {
    memory_.resize(staging_.bytes());
    base_ = reinterpret_cast<std::uintptr_t>(memory_.data());
    key_ = host.memory().add(rank.domain(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE);
  } else if (stages) {
    key_ = host.memory().add_without_bytes(rank.domain(), base_, staging_.bytes(), IBV_ACCESS_LOCAL_WRITE);
  }
  // A DPA has queues of its own.
  const bool by_host = communicator_.options().receiver == Receiver::kHost;
  receive_cq_ = rank.create_cq(by_host ? staging_.slots() : 1, *this, Rank::CqOf::kReceives);
  nic_model::QpInit init;
  init.domain = rank.domain();
  init.block_multicast_loopback = true;
  return init;
}

void Subgroup::connect_to_group(nic_model::Host& host, nic_model::Qp& qp) {
  const TeamOptions& options = communicator_.options();
  const roce::IpAddress group = options.group_of(communicator_.number(), number_);
  if (is_uc()) {
    nic_model::ConnectOptions with;
    with.mtu = static_cast<std::uint32_t>(options.mtu);
    nic_model::connect(host, qp, {group, nic_model::kMulticastQpn, 0}, with);
    return;
  }
  nic_model::start_datagrams(host, qp, static_cast<std::uint32_t>(options.qkey));
  host.create_ah(group_, group, 0, static_cast<std::uint32_t>(options.qkey));
}

void Subgroup::make_loopback(nic_model::Host& host, nic_model::QpInit init) {
  init.type = IBV_QPT_RC;
  copy_cq_ = communicator_.rank().create_cq(staging_.slots(), *this, Rank::CqOf::kCopies);
  init.send_cq = init.receive_cq = copy_cq_;
  init.capacity = {staging_.slots(), 1, 1, 1, 0};
  loopback_ = communicator_.rank().create_qp(init);
  connect_to_itself(host, *loopback_);
}

void Subgroup::connect_to_itself(nic_model::Host& host, nic_model::Qp& qp) {
  nic_model::ConnectOptions self;
  self.mtu = static_cast<std::uint32_t>(communicator_.options().mtu);
  const roce::IpAddress own = communicator_.rank().address();
  nic_model::connect(host, qp, {own, qp.number(), 0}, self);
}

void Subgroup::make(nic_model::Host& host, nic_model::CompletionQueue& send_cq) {
  nic_model::QpInit init = make_staging(host);
  init.type = is_uc() ? IBV_QPT_UC : IBV_QPT_UD;
  init.send_cq = &send_cq;
  init.receive_cq = receive_cq_;
  const bool by_dpa = communicator_.options().receiver == Receiver::kDpa;
  init.capacity = {kBatchesPosted * static_cast<std::uint32_t>(requests_.size()), by_dpa ? 1 : staging_.slots(), 1, 1,
                   0};
  qp_ = communicator_.rank().create_qp(init);
  connect_to_group(host, *qp_);
  if (by_dpa) {
    dpa_ = std::make_unique<DpaReceiver>(communicator_, number_, communicator_.rank().process());
    connect_to_group(host, dpa_->qp());
    if (!is_uc()) connect_to_itself(host, dpa_->loopback());
  } else if (!is_uc()) {
    make_loopback(host, init);
  }
  host.attach_mcast(receiving_qp(), communicator_.options().group_of(communicator_.number(), number_));
  for (std::size_t i = 0; i < requests_.size(); i++) {
    requests_[i] = {};
    requests_[i].wr_id = reinterpret_cast<std::uintptr_t>(this);
    requests_[i].opcode = is_uc() ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_SEND_WITH_IMM;
    requests_[i].sg_list = &pieces_[i];
    requests_[i].num_sge = 1;
  }
  for (std::uint32_t slot = 0; !by_dpa && slot < staging_.slots(); slot++) repost(host, slot);
}

void Subgroup::open(nic_model::Host& host, const Slot& slot, std::uint64_t team) {
  if (is_uc()) host.set_group_window(receiving_qp(), {slot.tag(), slot.key(), slot.buffer().address});
  if (dpa_) dpa_->open(slot, team);
}

void Subgroup::close(nic_model::Host& host, const Slot& slot) {
  if (is_uc()) host.clear_group_window(receiving_qp(), slot.tag());
  if (dpa_) dpa_->close(slot);
}

void Subgroup::repost(nic_model::Host& host, std::uint32_t slot) {
  staging_.post(slot);
  ibv_sge sge{base_ + staging_.offset_of(slot), staging_.slot_bytes(), key_};
  ibv_recv_wr request{slot, nullptr, &sge, is_uc() ? 0 : 1};
  host.post_receive(*qp_, &request, nullptr);
}

void Subgroup::multicast(nic_model::Host& host, Slot& slot) {
  const Geometry& geometry = slot.geometry();
  leaving_.push_back({&slot, geometry.first_of(number_), geometry.end_of(number_)});
  post_batches(host);
}

// The parts leave one behind the other; a part that is empty has left.
void Subgroup::post_batches(nic_model::Host& host) {
  while (batches_ < kBatchesPosted) {
    Leaving* next = nullptr;
    for (Leaving& one : leaving_)
      if (one.next < one.end) {
        next = &one;
        break;
      }
    if (!next) break;
    post_batch(host, *next);
  }
  while (!leaving_.empty() && leaving_.front().next == leaving_.front().end && leaving_.front().batches == 0) {
    Slot& slot = *leaving_.front().slot;
    leaving_.pop_front();
    slot.on_part_sent();
  }
}

void Subgroup::post_batch(nic_model::Host& host, Leaving& leaving) {
  Slot& slot = *leaving.slot;
  const Geometry& geometry = slot.geometry();
  const std::size_t count = std::min<std::size_t>(requests_.size(), leaving.end - leaving.next);
  for (std::size_t i = 0; i < count; i++) {
    const std::uint32_t index = leaving.next + static_cast<std::uint32_t>(i);
    pieces_[i] = {slot.buffer().address + geometry.offset_of(slot.own_block(), index),
                  static_cast<std::uint32_t>(geometry.bytes_of(index)), slot.key()};
    requests_[i].imm_data = htobe32(slot.immediate_of(geometry.chunk_of(slot.own_block(), index)));
    requests_[i].wr.rdma.remote_addr = geometry.offset_of(slot.own_block(), index);
    requests_[i].wr.rdma.rkey = slot.tag();
    requests_[i].send_flags = i + 1 == count ? IBV_SEND_SIGNALED : 0;
    requests_[i].next = i + 1 == count ? nullptr : &requests_[i + 1];
  }
  if (host.post_send(*qp_, requests_.data(), nullptr, is_uc() ? nullptr : &group_) != 0)
    return communicator_.fail(End::kConnection);
  TeamCounters& count_of = communicator_.rank().count;
  count_of.doorbells++;
  count_of.datagrams_sent += count;
  leaving.next += static_cast<std::uint32_t>(count);
  leaving.batches++;
  batches_++;
}

void Subgroup::on_sent(nic_model::Host& host) {
  communicator_.rank().count.send_completions++;
  batches_--;
  for (Leaving& one : leaving_)
    if (one.batches > 0) {  // batches leave in order
      one.batches--;
      break;
    }
  post_batches(host);
}

// Whether the datagram comes from that rank's queue pair: its number, and where there are bytes the source address, in
// the GRH of IPv6 at 8 and in that of IPv4 at 32.
bool Subgroup::is_from(const ibv_wc& wc, std::uint32_t slot, unsigned rank) const {
  const Member& sender = communicator_.rank().team().member(rank);
  if (wc.src_qp != sender.qpns[communicator_.number() * communicator_.subgroups() + number_]) return false;
  if (memory_.empty()) return true;
  const std::uint8_t* grh = memory_.data() + staging_.offset_of(slot);
  const roce::IpAddress& address = sender.address;
  return roce::is_ipv4(address) ? std::memcmp(grh + 32, address.data() + 12, 4) == 0
                                : std::memcmp(grh + 8, address.data(), 16) == 0;
}

// Which collective the datagram is new to; null: none, and why is counted.
Slot* Subgroup::accept(const ibv_wc& wc, std::uint32_t staging_slot, std::uint32_t& block, std::uint32_t& index) {
  TeamCounters& count = communicator_.rank().count;
  if (!(wc.wc_flags & IBV_WC_WITH_IMM)) return count.no_immediate++, nullptr;
  const std::uint32_t immediate = be32toh(wc.imm_data);
  Slot* slot = communicator_.slot_of(immediate);
  if (!slot) return count.stale++, nullptr;
  const std::uint32_t chunk = communicator_.layout().decode(immediate).chunk;
  const Geometry& geometry = slot->geometry();
  if (chunk >= geometry.chunks()) return count.out_of_range++, nullptr;
  block = geometry.block_of(chunk);
  index = chunk - block * geometry.chunks_per_block();
  // A WRITE tells nothing of its sender.
  if (!is_uc() && !is_from(wc, staging_slot, slot->rank_of(block))) return count.strangers++, nullptr;
  if (wc.byte_len != (is_uc() ? 0 : kGrhBytes) + geometry.bytes_of(index)) return count.wrong_length++, nullptr;
  switch (slot->reassembly().take(number_, chunk, block, index)) {
    case Arrival::kNew:
      return count.chunks++, slot;
    case Arrival::kDuplicate:
      return count.duplicates++, nullptr;
    case Arrival::kOtherSubgroup:
      return count.other_subgroup++, nullptr;
    case Arrival::kOutOfRange:
      break;
  }
  return count.out_of_range++, nullptr;
}

bool Subgroup::receive_one(nic_model::Host& host) {
  ibv_wc wc;
  if (host.poll(*receive_cq_, {&wc, 1}) <= 0) return false;
  communicator_.rank().team().advanced();
  if (wc.status != IBV_WC_SUCCESS) {
    communicator_.fail(End::kConnection);
    return true;
  }
  const auto staging_slot = static_cast<std::uint32_t>(wc.wr_id);
  staging_.take(staging_slot);
  std::uint32_t block = 0, index = 0;
  Slot* slot = accept(wc, staging_slot, block, index);
  if (!slot) {
    staging_.release(staging_slot);
    repost(host, staging_slot);
    return true;
  }
  slot->collective().begin_write();
  if (!is_uc()) return copy(host, *slot, staging_slot, block, index), true;
  staging_.release(staging_slot);
  repost(host, staging_slot);
  if (slot->reassembly().land(block)) slot->collective().on_whole(block);
  slot->collective().end_write();
  return true;
}

void Subgroup::copy(nic_model::Host& host, Slot& slot, std::uint32_t staging_slot, std::uint32_t block,
                    std::uint32_t index) {
  copies_[staging_slot] = {&slot, block};
  ibv_sge sge{base_ + staging_.offset_of(staging_slot) + kGrhBytes,
              static_cast<std::uint32_t>(slot.geometry().bytes_of(index)), key_};
  ibv_send_wr request{};
  request.wr_id = staging_slot;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.send_flags = IBV_SEND_SIGNALED;
  request.wr.rdma.remote_addr = slot.buffer().address + slot.geometry().offset_of(block, index);
  request.wr.rdma.rkey = slot.key();
  if (host.post_send(*loopback_, &request, nullptr) != 0) communicator_.fail(End::kConnection);
}

void Subgroup::on_copied(nic_model::Host& host, std::uint32_t staging_slot) {
  const Copy copy = copies_[staging_slot];
  communicator_.rank().count.copies++;
  staging_.release(staging_slot);
  repost(host, staging_slot);
  if (copy.slot->reassembly().land(copy.block)) copy.slot->collective().on_whole(copy.block);
  copy.slot->collective().end_write();
}

void Subgroup::stop(nic_model::Host& host) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  for (nic_model::Qp* qp : {qp_, loopback_})
    if (qp) host.modify_qp(*qp, a, IBV_QP_STATE);
  if (dpa_) dpa_->stop(host);
  leaving_.clear();
}

}  // namespace rocebox::allgather
