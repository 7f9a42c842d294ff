// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/allgather/host/rank.h"

#include <algorithm>
#include <array>

#include "nic_model/dpa/library.h"

namespace rocebox::allgather {
namespace {

constexpr std::uint32_t kControlReceives = 1024;  // of all connections together; each is posted again at once
// Where control messages are received without bytes: beyond all buffers and staging rings.
constexpr std::uint64_t kControlAddress = std::uint64_t{3} << 62;

constexpr Nanos kLookForPathsMax = kMillisecond;

constexpr std::uint32_t tag_of(unsigned use, unsigned communicator, unsigned slot) {
  return use << 28 | communicator << 14 | slot;
}

}  // namespace

Rank::Rank(Team& team, unsigned number, nic_model::Host& host, const std::string& host_name)
    : team_(team), number_(number), host_(host), host_name_(host_name) {
  program_ = host.submit(*this);
  // The address of the family that all ranks have.
  address_ = host.config().source_for(team.is_apart() ? team.options().ranks.front() : team.options().group_of(0, 0));
}

void Rank::join() {
  join_.emplace(*this);
  join_->begin(program_);
}

std::vector<std::uint32_t> Rank::sending_qpns() const {
  std::vector<std::uint32_t> qpns;
  for (const auto& communicator : communicators_)
    for (unsigned s = 0; s < communicator->subgroups(); s++) qpns.push_back(communicator->subgroup(s).qpn());
  return qpns;
}

void Rank::arm_join(Nanos at) {
  join_timer_.set_tag(tag_of(static_cast<unsigned>(TimerOf::kJoin), 0, 0));
  host_.arm_timer(program_, join_timer_, at);
}

void Rank::on_connection_event(nic_model::Host&, const nic_model::ConnectionEvent& event) {
  if (join_) join_->on_event(event);
}

void Rank::make() {
  const TeamOptions& options = team_.options();
  if (options.receiver == Receiver::kDpa)
    process_ = &host_.dpa().create_process(nic_model::dpa::library_path(kReceiveProgram));
  domain_ = process_ ? process_->domain() : host_.alloc_pd();
  registrations_ = std::make_unique<Registrations>(host_.memory(), domain_);
  const auto subgroups = static_cast<unsigned>(options.communicators * options.subgroups);
  const unsigned workers = options.receive_workers ? static_cast<unsigned>(options.receive_workers) : subgroups;
  for (unsigned i = 0; i < std::min(workers, subgroups); i++) {
    workers_.push_back(std::make_unique<Worker>());
    workers_.back()->timer.set_tag(tag_of(static_cast<unsigned>(TimerOf::kWorker), 0, i));
  }
  const auto sends = static_cast<std::uint32_t>(2 * options.batch) * subgroups;
  // Of each communicator: the fetch ring's two connections and two partners a step of the barrier at most.
  const unsigned links =
      static_cast<unsigned>(options.communicators) * (2 + 2 * Barrier(number_, team_.ranks()).steps());
  control_cq_ = host_.create_cq(links * static_cast<std::uint32_t>(options.ring_depth) + kControlReceives, program_);
  send_cq_ = host_.create_cq(sends, program_);
  cqs_[control_cq_->number()].use = CqOf::kControl;
  cqs_[send_cq_->number()].use = CqOf::kSends;
  ibv_srq_init_attr shared{};
  shared.attr = {kControlReceives, 1, 0};
  control_receives_ = host_.create_srq(shared);
  messages_.resize(kControlReceives);
  const std::uint64_t bytes = messages_.size() * sizeof(ControlMessage);
  control_key_ = team_.has_bytes()
                     ? host_.memory().add(domain_, messages_.data(), bytes, IBV_ACCESS_LOCAL_WRITE)
                     : host_.memory().add_without_bytes(domain_, kControlAddress, bytes, IBV_ACCESS_LOCAL_WRITE);
  for (std::uint64_t i = 0; i < kControlReceives; i++) post_control_receive(i);
  for (unsigned i = 0; i < static_cast<unsigned>(options.communicators); i++) {
    communicators_.push_back(std::make_unique<Communicator>(*this, i));
    communicators_.back()->make(host_, *send_cq_, *control_cq_, *control_receives_);
  }
  host_.arm(*control_cq_);
  host_.arm(*send_cq_);
}

void Rank::connect() {
  for (const auto& communicator : communicators_) communicator->connect(host_);
  look_for_paths();
}

// A collective's time-outs count what others owe, not how often a neighbour has to be asked for its address.
void Rank::look_for_paths() {
  const bool resolves = std::ranges::any_of(communicators_, [this](const auto& communicator) {
    return std::ranges::any_of(communicator->links(),
                               [this](const auto& link) { return host_.is_resolving(*link.second->qp); });
  });
  if (!resolves) return team_.on_rank_connected(host_.now());
  paths_timer_.set_tag(tag_of(static_cast<unsigned>(TimerOf::kPaths), 0, 0));
  host_.arm_timer(program_, paths_timer_, host_.now() + look_again_);
  look_again_ = std::min(2 * look_again_, kLookForPathsMax);
}

nic_model::CompletionQueue* Rank::create_cq(std::uint32_t entries, Subgroup& subgroup, CqOf use) {
  nic_model::CompletionQueue* cq = host_.create_cq(entries, program_);
  CqUse& row = cqs_[cq->number()];
  row = {use, &subgroup, 0, 0};
  if (use == CqOf::kReceives) {
    row.worker = subgroups_made_++ % static_cast<unsigned>(workers_.size());
    row.queue = workers_[row.worker]->turns.add();
    workers_[row.worker]->subgroups.push_back(&subgroup);
  }
  host_.arm(*cq);
  return cq;
}

nic_model::Qp* Rank::create_qp(const nic_model::QpInit& init) {
  nic_model::Qp* qp = host_.create_qp(init);
  if (!qp) no_queue_pair_left();
  team_.options().recovery.apply(host_, *qp);
  return qp;
}

void Rank::no_queue_pair_left() const { nic_model::no_queue_pair_left(host_name_, host_.config()); }

void Rank::arm(Timer& timer, const Communicator& communicator, unsigned slot, TimerOf use, Nanos after) {
  timer.set_tag(tag_of(static_cast<unsigned>(use), communicator.number(), slot));
  host_.arm_timer(program_, timer, host_.now() + after);
}

bool Rank::stops(StopAt at) {
  const TeamOptions& options = team_.options();
  if (at == options.stop_at && static_cast<unsigned>(options.stop_rank) == number_) has_stopped_ = true;
  return has_stopped_;
}

void Rank::on_completion(nic_model::Host& host, nic_model::CompletionQueue& cq) {
  if (has_stopped_) return;
  const CqUse use = cqs_[cq.number()];
  if (use.use == CqOf::kReceives) {
    workers_[use.worker]->turns.set_ready(use.queue, true);
    return work(use.worker);
  }
  nic_model::complete_all(host, cq, [&](const ibv_wc& wc) {
    if (has_stopped_) return;
    team_.advanced();
    if (use.use == CqOf::kControl) return on_control(wc);
    Subgroup& subgroup = use.use == CqOf::kSends ? *reinterpret_cast<Subgroup*>(wc.wr_id) : *use.subgroup;
    if (subgroup.communicator().has_failed()) return;
    if (wc.status != IBV_WC_SUCCESS) return subgroup.communicator().fail(End::kConnection);
    if (use.use == CqOf::kSends)
      subgroup.on_sent(host);
    else
      subgroup.on_copied(host, static_cast<std::uint32_t>(wc.wr_id));
  });
}

// A datagram of each queue that has one, in turn, as long as the worker has time.
void Rank::work(unsigned number) {
  Worker& worker = *workers_[number];
  while (!worker.busy && !has_stopped_) {
    const unsigned queue = worker.turns.next();
    if (queue == RoundRobin::kNone) return;
    Subgroup& subgroup = *worker.subgroups[queue];
    if (!subgroup.receive_one(host_)) {
      worker.turns.set_ready(queue, false);
      host_.arm(subgroup.receive_cq());
    } else if (team_.options().worker_time > 0) {
      worker.busy = true;
      worker.timer.set_tag(tag_of(static_cast<unsigned>(TimerOf::kWorker), 0, number));
      host_.arm_timer(program_, worker.timer, host_.now() + team_.options().worker_time);
    }
  }
}

void Rank::on_timer(nic_model::Host&, Timer& timer) {
  if (has_stopped_) return;
  const auto tag = static_cast<std::uint32_t>(timer.tag());
  const unsigned slot = tag & 0x3FFF, communicator = tag >> 14 & 0x3FFF;
  switch (static_cast<TimerOf>(tag >> 28)) {
    case TimerOf::kCutoff:
      return communicators_[communicator]->slot(slot).on_cutoff_timer();
    case TimerOf::kWatchdog:
      return communicators_[communicator]->slot(slot).on_watchdog();
    case TimerOf::kPoll:
      return communicators_[communicator]->slot(slot).on_poll();
    case TimerOf::kWorker:
      workers_[slot]->busy = false;
      return work(slot);
    case TimerOf::kJoin:
      return join_->on_timer();
    case TimerOf::kPaths:
      return look_for_paths();
  }
}

void Rank::on_control(const ibv_wc& wc) {
  Link& link = *links_.at(wc.qp_num);
  Communicator& communicator = *communicators_[link.communicator()];
  const bool received = wc.opcode == IBV_WC_RECV;
  if (wc.status != IBV_WC_SUCCESS) {
    if (join_ && join_->on_failure(link)) return;
    if (!communicator.has_failed()) communicator.fail(End::kConnection);
    if (join_) join_->look_at_goodbyes();
    return;
  }
  if (received) return on_message(wc, link);
  if (communicator.has_failed()) return;
  const Link::Work work = link.complete(host_, team_.has_bytes());
  if (join_ && join_->on_done(link, work)) return;
  if (work.is_read) communicator.slot(work.read.slot).on_read(work.read);
}

void Rank::on_message(const ibv_wc& wc, Link& link) {
  ControlMessage message;
  if (team_.has_bytes()) {
    message = messages_[wc.wr_id];
  } else if (!link.without_bytes.empty()) {
    message = link.without_bytes.front();
    link.without_bytes.pop_front();
  }
  post_control_receive(wc.wr_id);
  if (wc.byte_len != sizeof message) return void(count.bad_messages++);
  if (join_ && (message.type == static_cast<std::uint8_t>(MessageType::kMember) ||
                message.type == static_cast<std::uint8_t>(MessageType::kGoodbye))) {
    count.messages++;
    return join_->on_message(link, message);
  }
  communicators_[link.communicator()]->on_message(link, message);
}

void Rank::post_control_receive(std::uint64_t place) {
  const std::uint64_t base = team_.has_bytes() ? reinterpret_cast<std::uintptr_t>(messages_.data()) : kControlAddress;
  ibv_sge sge{base + place * sizeof(ControlMessage), sizeof(ControlMessage), control_key_};
  ibv_recv_wr request{place, nullptr, &sge, 1};
  host_.post_receive(*control_receives_, &request, nullptr);
}

}  // namespace rocebox::allgather
