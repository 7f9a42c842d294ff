// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/shard.h"

#include <algorithm>
#include <new>

#include "runtime/drives/live/checksums.h"

namespace rocebox {
namespace {

// One loop in so many, or the next one, takes the time a second time, after sending, for the histograms of latency.
constexpr std::uint64_t kLatencyEveryLoops = 64;
// Loops between two looks at the stop flag and the end of the drain; one burst each at most.
constexpr unsigned kLoopsPerRound = 64;

}  // namespace

void Shard::run(const std::atomic<bool>& stop, Nanos drain) {
  idler_.start();
  read_clock();
  if (!alone_) testbed_.fabric().run(now_);  // what was armed for time 0: the clock begins here
  while (!stop.load(std::memory_order_relaxed)) {
    mailbox_.serve();
    if (!wires_.empty() && wire_from(rx_[0]) >= 0) {  // while no trace and no capture looks at packets
      if (loop()) relay(kLoopsPerRound - 1);
      continue;
    }
    for (unsigned i = 0; i < kLoopsPerRound; i++)
      if (!loop()) break;
  }
  let_go(drain);
}

void Shard::change(unsigned device, unsigned kernel, Change& change) {
  change.apply(testbed_.device(device).kernel(kernel), now_);
}

// One burst from every queue. False when the core has slept, and other things than packets may have come to pass.
bool Shard::loop() {
  const std::uint64_t number = loops_.read();
  read_clock();
  const bool on = number >= next_sampled_loop_;
  if (on != sampled_) sample(on);
  if (on) next_sampled_loop_ = number + kLatencyEveryLoops;
  const bool busy = receive();
  if ((!alone_ && busy) || next_deadline() <= now_) step(now_);
  flush();
  loops_.add();
  busy_since_clock_ |= busy;
  if (busy) {
    busy_loops_.add();
    idler_.busy();
    return true;
  }
  const Nanos next = next_event();
  idler_.idle(next == kNever ? kSecond : std::max<Nanos>(next - now_, 0));
  return false;
}

void Shard::read_clock() {
  const Nanos before = now_;
  now_ = clock_.now();
  if (busy_since_clock_) busy_nanos_.add(static_cast<std::uint64_t>(now_ - before));
  busy_since_clock_ = false;
}

Nanos Shard::next_event() const {
  Nanos next = next_deadline();
  for (const RxQueue& rx : rx_)
    if (rx.owned) next = std::min(next, rx.port->next_due());
  return next;
}

bool Shard::receive() {
  bool busy = false;
  for (RxQueue& rx : rx_) {
    busy |= receive(rx);
    // A burst is done with while the first-level cache holds it, before the next port's comes.
    if (alone_ && !arrivals_.empty()) step(now_);
  }
  return busy;
}

bool Shard::receive(RxQueue& rx) {
  bool busy = false;
  if (rx.owned && !(rx.patient && can_wait(rx))) {
    std::array<Packet, kBatchMax>& room = room_[rx.index];
    const unsigned count = rx.port->receive(rx.queue, {room.data(), burst_});
    if (count) {
      counters_[rx.index].rx_packets.add(count);
      const int wire = exchange_ ? -1 : wire_from(rx);
      const unsigned kept = wire_ && wire >= 0 ? count : prepare(rx, {room.data(), count});
      if (exchange_)
        for (unsigned i = 0; i < kept; i++)
          exchange_->put(Exchange::Way::kIn, rx.index, shard_of(room[i], exchange_->shards()), {&room[i], 1});
      else
        deliver(rx, wire, {room.data(), kept});
      busy = true;
    }
  }
  if (exchange_) busy |= take_over(rx);
  return busy;
}

// What the port's owner hands in for this shard.
bool Shard::take_over(RxQueue& rx) {
  if (patient_ && congested_) return false;
  // Only the owner hands in what arrived there, so its room is free again by now.
  std::array<Packet, kBatchMax>& room = room_[rx.index];
  const unsigned count = exchange_->take(Exchange::Way::kIn, rx.index, number_, {room.data(), burst_});
  deliver(rx, wire_from(rx), {room.data(), count});
  return count != 0;
}

// Whether more packets would only be dropped further on: for ports whose packets lose nothing by waiting.
bool Shard::can_wait(const RxQueue& rx) const {
  if (congested_) return true;
  for (unsigned shard = 0; exchange_ && shard < exchange_->shards(); shard++)
    if (!exchange_->has_room(Exchange::Way::kIn, rx.index, shard)) return true;
  return false;
}

// Fresh metadata, one segment, whole checksums. Returns how many packets are left.
unsigned Shard::prepare(RxQueue& rx, std::span<Packet> packets) {
  for (Packet packet : packets) rte_prefetch0(rte_mbuf_to_priv(packet.mbuf()));
  unsigned kept = 0;
  for (Packet packet : packets) {
    rte_mbuf* mbuf = packet.mbuf();
    if (rx.fills_metadata) {
      packets[kept++] = packet;
      continue;
    }
    if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) != 0) [[unlikely]] {
      counters_[rx.index].rx_too_long.add();
      rte_pktmbuf_free(mbuf);
      continue;
    }
    PacketMeta* meta = new (rte_mbuf_to_priv(mbuf)) PacketMeta;
    meta->wire_bytes = mbuf->data_len;
    if (rx.finish_checksums && finish_checksum(packet)) counters_[rx.index].rx_checksums_finished.add();
    packets[kept++] = packet;
  }
  return kept;
}

// `wire`: where nothing looks at packets on their way, the device port by which they leave.
void Shard::deliver(const RxQueue& rx, int wire, std::span<Packet> packets) {
  if (packets.empty()) return;
  if (!alone_) return testbed_.fabric().inject(rx.to, packets);
  if (wire >= 0) return pass(rx, static_cast<Port>(wire), packets);
  arrivals_.push_back({rx.to.port, packets});
}

void Shard::step(Nanos now) {
  if (alone_) {
    testbed_.fabric().run_alone(now, arrivals_);
    return arrivals_.clear();
  }
  testbed_.fabric().advance_to(now);
  testbed_.fabric().run(now);
}

void Shard::send(std::size_t port, std::span<Packet> packets, Nanos arrival) {
  TxQueue& tx = tx_[port];
  if (tx.finishes) packets = packets.first(finish(port, packets));
  if (!tx.owned) return exchange_->put(Exchange::Way::kOut, port, number_, packets);
  if (sampled_ && tx.sampled_arrival == 0) tx.sampled_arrival = arrival;
  if (tx.count == 0 && packets.size() >= burst_) {  // a whole burst that nothing stands before goes out as it is
    packets = packets.subspan(hand_over(tx, counters_[port], packets));
  }
  if (packets.size() > tx.packets.size() - tx.count && tx.count) transmit(tx, counters_[port]);
  const std::size_t kept = std::min(packets.size(), tx.packets.size() - tx.count);
  std::copy_n(packets.begin(), kept, tx.packets.begin() + tx.count);
  tx.count += static_cast<unsigned>(kept);
  unsent_ |= kept != 0;
  if (kept == packets.size()) return;
  counters_[port].tx_full.add(packets.size() - kept);
  free_all(packets.subspan(kept));
}

// Does what a host on this machine left to hardware, for a port that has none. Returns how many packets are left.
unsigned Shard::finish(std::size_t port, std::span<Packet> packets) {
  unsigned kept = 0;
  for (Packet packet : packets) {
    const HostOffload& offload = packet.meta().offload;
    if (offload.gso_type != 0) [[unlikely]] {
      counters_[port].tx_too_long.add();
      rte_pktmbuf_free(packet.mbuf());
      continue;
    }
    if (offload.flags) [[unlikely]]
      finish_checksum(packet, offload);
    packets[kept++] = packet;
  }
  return kept;
}

// How many packets are the port's now. A packet is sent, or it is an error.
unsigned Shard::hand_over(TxQueue& tx, ShardPortCounters& counters, std::span<Packet> packets) {
  const LivePort::Sent sent = tx.port->send(tx.queue, packets);
  counters.tx_packets.add(sent.taken - sent.failed);
  if (sent.failed) [[unlikely]]
    counters.tx_errors.add(sent.failed);
  return sent.taken;
}

// Sends what waits. What the port does not take waits for the next loop.
void Shard::transmit(TxQueue& tx, ShardPortCounters& counters) {
  const unsigned sent = hand_over(tx, counters, {tx.packets.data(), tx.count});
  std::copy(tx.packets.begin() + sent, tx.packets.begin() + tx.count, tx.packets.begin());
  tx.count -= sent;
}

void Shard::flush() {
  if (unsent_ || exchange_) flush_queues();
  if (sampled_) sample_latency();
}

void Shard::flush_queues() {
  congested_ = unsent_ = false;
  for (std::size_t i = 0; i < tx_.size(); i++) {
    TxQueue& tx = tx_[i];
    if (exchange_ && tx.owned) {
      for (unsigned from = 0; from < exchange_->shards(); from++) {
        const auto room = std::span(tx.packets).subspan(tx.count);
        tx.count +=
            exchange_->take(Exchange::Way::kOut, i, from, {room.data(), std::min<std::size_t>(room.size(), burst_)});
      }
    }
    if (tx.count) transmit(tx, counters_[i]);
    unsent_ |= tx.count != 0;
    congested_ |= tx.count != 0;
    if (patient_ && !tx.owned) congested_ |= !exchange_->has_room(Exchange::Way::kOut, i, number_);
  }
}

void Shard::sample(bool on) {
  sampled_ = on;
  for (Stay& stay : stays_) stay.sampling = on;
}

void Shard::sample_latency() {
  Nanos sent = 0;
  for (TxQueue& tx : tx_) {
    if (tx.sampled_arrival == 0) continue;
    if (sent == 0) sent = clock_.now();
    tx.latency.add(sent - tx.sampled_arrival);
    tx.sampled_arrival = 0;
  }
}

}  // namespace rocebox
