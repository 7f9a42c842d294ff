// SPDX-License-Identifier: BSD-3-Clause
// Shard: the end of a run. Nothing that has arrived is left behind without being counted.
#include <algorithm>
#include <utility>

#include "runtime/drives/live/shard.h"

namespace rocebox {
namespace {

// What a port does not take for so long at the end is lost: it is down, or nobody is at its other side.
constexpr Nanos kLastSend = 100 * kMillisecond;
// What shards hand to each other is there at once, unless a core does not get to run.
constexpr Nanos kHandOver = kSecond;

}  // namespace

// Nothing is taken from the ports any more. What other shards still hand in comes in, what the devices hold leaves in
// its own time, and what other shards hand out is sent; these one after the other, so that none can come too late.
void Shard::let_go(Nanos drain) {
  const Nanos end = clock_.now() + drain;
  auto run_until = [&](Nanos limit, auto done) {
    for (now_ = clock_.now(); now_ < limit && !done(); now_ = clock_.now()) {
      mailbox_.serve();
      bool busy = false;
      for (RxQueue& rx : rx_)
        if (exchange_) busy |= take_over(rx);
      busy |= next_deadline() <= now_;
      step(now_);
      flush();
      if (!busy) idler_.idle(std::clamp<Nanos>(next_deadline() - now_, 0, kMillisecond));
    }
  };
  sample(false);
  if (exchange_) {
    exchange_->close(Exchange::Way::kIn);
    run_until(clock_.now() + kHandOver,
              [&] { return exchange_->closed(Exchange::Way::kIn) && exchange_->empty(Exchange::Way::kIn, number_); });
  }
  run_until(end, [&] { return testbed_.fabric().held() == 0; });
  flush();
  if (exchange_) {
    exchange_->close(Exchange::Way::kOut);
    run_until(std::max(end, clock_.now()) + kHandOver,
              [&] { return exchange_->closed(Exchange::Way::kOut) && exchange_->empty(Exchange::Way::kOut, number_); });
  }
  send_rest();
  mailbox_.close();
}

void Shard::send_rest() {
  const Nanos end = clock_.now() + kLastSend;
  for (flush(); congested_ && clock_.now() < end; flush()) idler_.idle(kMillisecond);
  for (std::size_t i = 0; i < tx_.size(); i++) {
    TxQueue& tx = tx_[i];
    counters_[i].tx_full.add(tx.count);
    for (Packet packet : std::span(tx.packets).first(std::exchange(tx.count, 0u))) rte_pktmbuf_free(packet.mbuf());
  }
}

}  // namespace rocebox
