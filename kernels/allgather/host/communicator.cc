// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/communicator.h"

#include "kernels/allgather/host/rank.h"
#include "kernels/allgather/model/barrier.h"
#include "nic_model/host/connect.h"

namespace rocebox::allgather {

Communicator::Communicator(Rank& rank, unsigned number)
    : rank_(rank), number_(number), layout_(rank.team().options().layout()), by_collective_(layout_.collectives()) {
  const auto subgroups = static_cast<unsigned>(options().subgroups);
  for (unsigned i = 0; i < subgroups; i++) subgroups_.push_back(std::make_unique<Subgroup>(*this, i));
  const auto slots = static_cast<std::uint32_t>(options().outstanding);
  for (std::uint32_t i = 0; i < slots; i++) slots_.push_back(std::make_unique<Slot>(*this, i, i, slots));
}

const TeamOptions& Communicator::options() const { return rank_.team().options(); }
unsigned Communicator::left() const { return (rank_.number() + rank_.team().ranks() - 1) % rank_.team().ranks(); }
unsigned Communicator::right() const { return (rank_.number() + 1) % rank_.team().ranks(); }

void Communicator::add_link(LinkTo to, unsigned peer) {
  std::unique_ptr<Link>& place = links_[{to, peer}];
  if (!place) place = std::make_unique<Link>(number_, to, peer, static_cast<unsigned>(options().ring_depth));
}

void Communicator::make(nic_model::Host& host, nic_model::CompletionQueue& send_cq,
                        nic_model::CompletionQueue& control_cq, nic_model::ReceiveQueue& receives) {
  for (const auto& subgroup : subgroups_) subgroup->make(host, send_cq);
  add_link(LinkTo::kLeft, left());
  add_link(LinkTo::kRight, right());
  for (const unsigned peer : Barrier(rank_.number(), rank_.team().ranks()).partners()) add_link(LinkTo::kBarrier, peer);
  for (const auto& [whose, link] : links_) {
    nic_model::QpInit init;
    init.domain = rank_.domain();
    init.send_cq = init.receive_cq = &control_cq;
    init.shared_receive_queue = &receives;
    init.capacity = {static_cast<std::uint32_t>(options().ring_depth), 0, 1, 1, sizeof(ControlMessage)};
    link->qp = rank_.create_qp(init);
    link->psn = static_cast<std::uint32_t>(host.random()) & roce::kPsnMask;
    rank_.add_link(*link);
  }
}

// The left neighbour's link to its right one is the other end, and the other way round.
void Communicator::connect(nic_model::Host& host) {
  run();
  for (const auto& [whose, link] : links_) {
    const LinkTo to = other_end(link->to());
    Rank& peer = rank_.team().rank(link->peer());
    link->other = &peer.communicator(number_).link(to, rank_.number());
    nic_model::ConnectOptions with;
    with.mtu = static_cast<std::uint32_t>(options().mtu);
    with.psn = link->psn;
    with.retry_cnt = static_cast<std::uint8_t>(options().retry_cnt);
    with.timeout = static_cast<std::uint8_t>(options().timeout_exponent);
    with.min_rnr_timer = 1;
    nic_model::connect(host, *link->qp, {peer.address(), link->other->qp->number(), link->other->psn}, with);
  }
}

void Communicator::run() {
  for (const auto& subgroup : subgroups_) subgroup->run();
}

std::uint64_t Communicator::begin_team(const Slot& slot) {
  nic_model::dpa::Process& process = rank_.process();
  if (teams_.empty()) {
    teams_.resize(slots_.size());
    flags_.resize(slots_.size());
    for (std::uint64_t& team : teams_) team = process.alloc(sizeof(allgather_team));
    flags_key_ = rank_.host().memory().add(rank_.domain(), flags_.data(), flags_.size() * 8, IBV_ACCESS_LOCAL_WRITE);
    window_ = process.create_window(rank_.domain());
  }
  flags_[slot.number()] = 0;
  std::uint32_t workers = 0;
  for (unsigned i = 0; i < subgroups(); i++) workers += slot.geometry().end_of(i) > slot.geometry().first_of(i);
  auto* team = reinterpret_cast<allgather_team*>(process.at(teams_[slot.number()], sizeof(allgather_team)));
  *team = {workers,
           0,
           window_,
           flags_key_,
           reinterpret_cast<std::uintptr_t>(&flags_[slot.number()]),
           std::uint64_t{slot.operation().sequence} + 1};
  return teams_[slot.number()];
}

bool Communicator::team_is_done(const Slot& slot) const {
  return flags_[slot.number()] == std::uint64_t{slot.operation().sequence} + 1;
}

void Communicator::set_active(Slot& slot, bool active) {
  by_collective_[slot.operation().sequence & (layout_.collectives() - 1)] = active ? &slot : nullptr;
}

void Communicator::on_message(const Link& from, const ControlMessage& message) {
  TeamCounters& count = rank_.count;
  count.messages++;
  if (has_failed_) return void(count.stale_messages++);
  const auto sequence = static_cast<std::uint32_t>(message.sequence);
  Slot& slot = slot_for(sequence);
  // Who has ended the collective needs nothing that still comes of it.
  const std::uint32_t current = slot.is_active() ? slot.operation().sequence : slot.next_sequence();
  if (static_cast<std::int32_t>(sequence - current) < 0) return void(count.stale_messages++);
  if (static_cast<std::uint32_t>(message.communicator) != number_ || !slot.on_message(from, message))
    count.bad_messages++;
}

void Communicator::fail(End end) {
  if (has_failed_) return;
  has_failed_ = true;
  nic_model::Host& host = rank_.host();
  for (const auto& subgroup : subgroups_) subgroup->stop(host);
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_ERR;
  for (const auto& [whose, link] : links_) host.modify_qp(*link->qp, a, IBV_QP_STATE);
  for (const auto& slot : slots_)
    if (slot->is_active()) slot->fail(end);
}

}  // namespace rocebox::allgather
