// SPDX-License-Identifier: BSD-3-Clause
// The transmit workers of a backend, as the host sees them.
#include <algorithm>

#include "kernels/sdr/backend/queue_pair.h"

namespace rocebox::sdr {

using nic_model::Host;

bool Backend::add_sender() {
  Sender& sender = senders_.emplace_back();
  sender.thread = process_->create_thread("sdr_send_handler");
  const nic_model::dpa::CqAddresses cq =
      sender.thread ? process_->create_cq(kLogOrders, sender.thread) : nic_model::dpa::CqAddresses();
  const std::uint64_t shared = process_->alloc(sizeof(sdr_sender));
  const std::uint64_t orders = process_->alloc(sizeof(sdr_order) << kLogOrders);
  if (!cq.cq || !shared || !orders) return false;
  sender.cq = cq.cq;
  sender.shared = device<sdr_sender>(shared);
  sender.orders = device<sdr_order>(orders, std::size_t{1} << kLogOrders);
  *sender.shared = {cq.ring, cq.doorbell, orders, cq.number, cq.log_entries, 1u << kLogOrders, 0, 0, 0, 0, 0, 0};
  return true;
}

// The worker's queue has as many entries as its ring has orders, so a CQE for each never overruns it.
bool Backend::order(Host& host, QueuePair& by, std::uint32_t channel, const sdr_order& order) {
  Sender& sender = senders_[channel % senders_.size()];
  if (sender.posted - sender.done() >= sender.shared->orders_count) {
    if (std::ranges::find(starved_, &by) == starved_.end()) starved_.push_back(&by);
    if (!starved_timer_.armed()) arm(host, starved_timer_, host.now() + kOrderAgainNs, starved_owner_);
    return false;
  }
  sender.orders[sender.posted++ & (sender.shared->orders_count - 1)] = order;
  host.publish_nothing(*sender.cq);
  return true;
}

// Who starves again stands in the other list, so that neither loses its room.
void Backend::pump_starved(Host& host) {
  pumped_.swap(starved_);
  for (QueuePair* one : pumped_) one->pump(host);
  pumped_.clear();
}

// A worker may be in the midst of one: it ends it, and nothing comes of that, for its queue pairs are reset.
void Backend::take_back_orders(QueuePair& of) {
  std::erase(starved_, &of);
  of.orders_until_.clear();
  for (Sender& sender : senders_) {
    for (std::uint32_t i = sender.done(); i != sender.posted; i++) {
      sdr_order& order = sender.orders[i & (sender.shared->orders_count - 1)];
      const bool its =
          std::ranges::any_of(of.transports_, [&](const auto& one) { return one.at.number == order.qp_number; });
      if (its) order.packets = 0;
    }
    of.orders_until_.push_back(sender.posted);
  }
}

Backend::Sent Backend::sent() const {
  Sent sum;
  for (const Sender& one : senders_) {
    sum.activations += one.shared->activations;
    sum.batches += one.shared->batches;
    sum.packets += one.shared->packets;
  }
  return sum;
}

}  // namespace rocebox::sdr
