// SPDX-License-Identifier: BSD-3-Clause
// What a host makes and unmakes: completion queues, shared receive queues, queue pairs.
#include <algorithm>
#include <cerrno>

#include "nic_model/host/host.h"

namespace rocebox::nic_model {
namespace {

// The first free place, which is made where there is none.
template <class Object>
std::size_t free_place(std::vector<std::unique_ptr<Object>>& objects) {
  const auto place = static_cast<std::size_t>(
      std::ranges::find_if(objects, [](const auto& object) { return !object; }) - objects.begin());
  if (place == objects.size()) objects.emplace_back();
  return place;
}

bool is_of_cq(ibv_event_type type) { return type == IBV_EVENT_CQ_ERR; }
bool is_of_srq(ibv_event_type type) { return type == IBV_EVENT_SRQ_LIMIT_REACHED; }
bool is_of_qp(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
      return true;
    default:
      return false;
  }
}

}  // namespace

CompletionQueue* Host::create_cq(std::uint32_t entries, std::uint32_t program) {
  if (entries == 0 || entries > kCqEntriesMax) return errno = EINVAL, nullptr;
  const std::size_t place = free_place(core_.cqs);
  core_.cqs[place] = std::make_unique<CompletionQueue>(static_cast<std::uint32_t>(place), entries, program);
  core_.cqs[place]->timer.set_tag(timer_tag(TimerOf::kCompletion, place));
  return core_.cqs[place].get();
}

int Host::modify_cq(CompletionQueue& cq, std::uint32_t count, std::uint32_t period_us) {
  if (count > UINT16_MAX || period_us > UINT16_MAX) return EINVAL;
  const Nanos first = cq.timer.armed() ? cq.timer.at() - cq.period() : now();
  context_->cancel(cq.timer);
  cq.moderate(count, period_us * kMicrosecond);
  if (cq.is_due()) core_.completed.push_back(&cq);
  if (cq.has_waiting() && cq.period() > 0) context_->arm(cq.timer, std::max(now(), first + cq.period()));
  return 0;
}

CompletionQueue* Host::create_cq(std::uint32_t entries, const CqMemory& memory) {
  const std::size_t place = free_place(core_.cqs);
  core_.cqs[place] = std::make_unique<CompletionQueue>(static_cast<std::uint32_t>(place), entries, memory);
  core_.cqs[place]->timer.set_tag(timer_tag(TimerOf::kCompletion, place));
  return core_.cqs[place].get();
}

// Of an object that is no more: another one may have its number.
void Host::forget_events(bool (*is_its)(ibv_event_type), std::uint32_t number) {
  const auto is_of_it = [&](const AsyncEvent& event) { return is_its(event.type) && event.qpn == number; };
  std::erase_if(core_.events, is_of_it);
  for (std::optional<AsyncEvent>& event : telling_)
    if (event && is_of_it(*event)) event.reset();
}

int Host::destroy_cq(CompletionQueue& cq) {
  if (cq.is_devices()) return EINVAL;
  for (const std::unique_ptr<Qp>& qp : core_.qps)
    if (qp && (qp->init.send_cq == &cq || qp->init.receive_cq == &cq)) return EBUSY;
  context_->cancel(cq.timer);
  std::erase(core_.completed, &cq);
  std::ranges::replace(completed_, &cq, nullptr);
  forget_events(is_of_cq, cq.number());
  core_.cqs[cq.number()].reset();
  return 0;
}

ReceiveQueue* Host::create_srq(const ibv_srq_init_attr& attributes) {
  if (attributes.attr.max_wr == 0 || attributes.attr.max_wr > kWorkRequestsMax || attributes.attr.max_sge > kSgesMax)
    return errno = EINVAL, nullptr;
  const std::size_t place = free_place(core_.shared_queues);
  core_.shared_queues[place] =
      std::make_unique<ReceiveQueue>(ReceiveQueue::Kind::kShared, static_cast<std::uint32_t>(place + 1),
                                     attributes.attr.max_wr, attributes.attr.max_sge);
  return core_.shared_queues[place].get();
}

int Host::destroy_srq(ReceiveQueue& shared) {
  for (const std::unique_ptr<Qp>& qp : core_.qps)
    if (qp && qp->init.shared_receive_queue == &shared) return EBUSY;
  forget_events(is_of_srq, shared.number());
  core_.shared_queues[shared.number() - 1].reset();
  return 0;
}

Qp* Host::create_qp(const QpInit& init) {
  const ibv_qp_cap& capacity = init.capacity;
  if (!init.send_cq || !init.receive_cq || capacity.max_send_wr > kWorkRequestsMax ||
      capacity.max_recv_wr > kWorkRequestsMax || capacity.max_send_sge > kSgesMax || capacity.max_recv_sge > kSgesMax ||
      capacity.max_inline_data > kInlineBytesMax ||
      SendQueue::ring_blocks(capacity.max_send_wr, capacity.max_send_sge, capacity.max_inline_data) > kSendBlocksMax)
    return errno = EINVAL, nullptr;
  if (init.type != IBV_QPT_RC && init.type != IBV_QPT_UC && init.type != IBV_QPT_UD) return errno = EOPNOTSUPP, nullptr;
  std::size_t& index = first_free_;
  while (index < core_.qps.size() && core_.qps[index]) index++;
  if (index >= static_cast<std::size_t>(core_.config.queue_pairs)) return errno = ENOMEM, nullptr;
  if (index == core_.qps.size()) core_.qps.emplace_back();
  const auto number = core_.config.first_qpn + static_cast<std::uint32_t>(index);
  core_.qps[index] = std::make_unique<Qp>(core_, number, init, capacity);
  return core_.qps[index].get();
}

void Host::destroy_qp(Qp& qp) {
  reset(qp);
  forget_events(is_of_qp, qp.number());
  if (!qp.is(IBV_QPT_RC)) core_.groups.detach_from_all(qp.number());
  const std::size_t index = qp.number() - core_.config.first_qpn;
  first_free_ = std::min(first_free_, index);
  core_.qps[index].reset();
}

}  // namespace rocebox::nic_model
