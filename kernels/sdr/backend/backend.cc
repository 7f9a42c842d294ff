// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/backend/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/sdr/backend/queue_pair.h"
#include "nic_model/dpa/library.h"

namespace rocebox::sdr {

using nic_model::Host;

Backend::Backend(Host& host, std::uint32_t workers, std::uint32_t queue_pairs_max, std::uint32_t senders)
    : host_(host), queue_pairs_max_(std::min(queue_pairs_max, kQueuePairsMax)) {
  process_ = &host.dpa().create_process(nic_model::dpa::library_path("sdr_receive"));
  first_qpn_ = host.config().first_qpn;
  const auto routes = static_cast<std::size_t>(host.config().queue_pairs);
  const std::uint64_t at = process_->alloc(routes * sizeof(sdr_route));
  routes_ = device<sdr_route>(at, routes);
  const auto refuse = [&] {
    throw ConfigError(
        fmt::format("SDR's {} workers do not fit into the DPA: give it more threads, or a larger heap "
                    "(`dpa: {{heap: ...}}`)",
                    workers + senders));
  };
  for (std::uint32_t i = 0; i < workers; i++)
    if (!routes_ || !add_worker(at)) refuse();
  for (std::uint32_t i = 0; i < senders; i++)
    if (!add_sender()) refuse();
  starved_owner_ = add_timer_owner([this](Host& calling) { pump_starved(calling); });
  program_ = host.submit(*this);
}

bool Backend::add_worker(std::uint64_t routes) {
  Worker& worker = workers_.emplace_back();
  worker.thread = process_->create_thread("sdr_receive_handler");
  // All that a worker's queue pairs can have under way: one for each queue pair and generation of 4; more generations
  // than that share them, which QueuePair::create() sees to.
  const auto log = std::min<std::uint32_t>(
      kLogReceives + static_cast<std::uint32_t>(std::bit_width(4 * queue_pairs_max_ - 1)), kLogCompletionsMax);
  const nic_model::dpa::CqAddresses cq =
      worker.thread ? process_->create_cq(log, worker.thread) : nic_model::dpa::CqAddresses();
  const std::uint64_t shared = process_->alloc(sizeof(sdr_worker));
  if (!cq.cq || !shared) return false;
  worker.cq = cq.cq;
  worker.shared = device<sdr_worker>(shared);
  *worker.shared = {cq.ring,
                    cq.doorbell,
                    routes,
                    cq.number,
                    cq.log_entries,
                    first_qpn_,
                    static_cast<std::uint32_t>(host_.config().queue_pairs),
                    0,
                    0};
  return true;
}

Backend::~Backend() = default;

void Backend::on_start(Host& host) {
  if (!std::exchange(workers_run_, true)) {
    for (Worker& worker : workers_) process_->run(*worker.thread, reinterpret_cast<std::uintptr_t>(worker.shared));
    for (Sender& sender : senders_) process_->run(*sender.thread, reinterpret_cast<std::uintptr_t>(sender.shared));
  }
  for (auto& task : std::exchange(tasks_, {})) task(host);
}

void Backend::call(std::function<void(Host&)> what) {
  tasks_.push_back(std::move(what));
  host_.start_again(program_);
}

QueuePair* Backend::create(Host& host, const QueuePairOptions& options, std::string& error) {
  error = options.mistake();
  if (error.empty() && options.channels > workers())
    error = fmt::format("{} channels are more than there are workers, {}", options.channels, workers());
  if (error.empty() && queue_pairs_.size() >= queue_pairs_max_)
    error = fmt::format("there are {} queue pairs already", queue_pairs_max_);
  if (!error.empty()) return nullptr;
  const auto idle =
      std::ranges::find_if(idle_, [&](const auto& one) { return one->options() == options && is_at_rest(*one); });
  if (idle != idle_.end()) {
    (*idle)->shut(host);  // what workers still did to it when it had been destroyed
    (*idle)->begin(host, salt_);
    queue_pairs_.push_back(std::move(*idle));
    idle_.erase(idle);
    return queue_pairs_.back().get();
  }
  auto made = std::make_unique<QueuePair>(*this, options);
  error = made->build(host);
  if (!error.empty()) {
    made->undo(host);
    return nullptr;
  }
  made->begin(host, salt_);
  queue_pairs_.push_back(std::move(made));
  return queue_pairs_.back().get();
}

void Backend::destroy(Host& host, QueuePair& qp) {
  const auto at = std::ranges::find_if(queue_pairs_, [&](const auto& one) { return one.get() == &qp; });
  if (at == queue_pairs_.end()) return;
  qp.shut(host);
  take_back_orders(qp);
  qp.completions_until_.clear();
  for (const Worker& worker : workers_) qp.completions_until_.push_back(worker.cq->produced());
  idle_.push_back(std::move(*at));
  queue_pairs_.erase(at);
}

bool Backend::is_at_rest(const QueuePair& qp) const {
  // Indices go round, and a ring has no more between them than its entries. Of each 2^32 completions that pass one at
  // rest it is so told to be busy for as many as a ring has: another is made then.
  const auto has_come_to = [](std::uint32_t until, std::uint32_t index, std::uint32_t entries) {
    return until - index - 1 >= entries;
  };
  for (std::size_t i = 0; i < senders_.size(); i++)
    if (!has_come_to(qp.orders_until_[i], senders_[i].done(), senders_[i].shared->orders_count)) return false;
  for (std::size_t i = 0; i < workers_.size(); i++)
    if (!has_come_to(qp.completions_until_[i], workers_[i].shared->cq_index, workers_[i].cq->entries())) return false;
  return true;
}

bool Backend::is_draining(const QueuePairOptions& options) const {
  return queue_pairs_.size() < queue_pairs_max_ &&
         std::ranges::any_of(idle_, [&](const auto& one) { return one->options() == options && !is_at_rest(*one); });
}

std::uint32_t Backend::add_memory(void* address, std::uint64_t bytes, bool remote_write) {
  const std::uint32_t access = remote_write ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
  return bytes ? host_.memory().add(domain(), address, bytes, access) : 0;
}

bool Backend::has_memory(std::uint32_t key, std::uint64_t address, std::uint64_t bytes, bool remote_write) const {
  return host_.memory().check(key, {domain()}, address, bytes, remote_write ? IBV_ACCESS_REMOTE_WRITE : 0) ==
         nic_model::MemoryError::kNone;
}

void Backend::arm(Host& host, Timer& timer, Nanos at, std::uint32_t owner) {
  timer.set_tag(owner);
  host.arm_timer(program_, timer, at);
}

std::uint32_t Backend::add_timer_owner(std::function<void(Host&)> on_timer) {
  timer_owners_.push_back(std::move(on_timer));
  return static_cast<std::uint32_t>(timer_owners_.size() - 1);
}

void Backend::on_timer(Host& host, Timer& timer) {
  const auto owner = static_cast<std::uint32_t>(timer.tag() & UINT32_MAX);
  if (owner < timer_owners_.size() && timer_owners_[owner]) timer_owners_[owner](host);
}

void Backend::listen(nic_model::CompletionQueue& cq, QueuePair& qp) {
  if (cq.number() >= by_cq_.size()) by_cq_.resize(cq.number() + 1);
  by_cq_[cq.number()] = &qp;
}

void Backend::on_completion(Host& host, nic_model::CompletionQueue& cq) {
  if (cq.number() < by_cq_.size() && by_cq_[cq.number()]) by_cq_[cq.number()]->on_completion(host, cq);
  pump_starved(host);
}

std::uint64_t Backend::errors() const {
  std::uint64_t sum = 0;
  for (const Worker& worker : workers_) sum += worker.shared->errors;
  return sum;
}

}  // namespace rocebox::sdr
