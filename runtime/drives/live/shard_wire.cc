// SPDX-License-Identifier: BSD-3-Clause
// Shard: an empty bump between ports of DPDK, which must cost no more than a wire.
#include <rte_ethdev.h>

#include <algorithm>
#include <utility>

#include "runtime/drives/live/shard.h"

namespace rocebox {
namespace {

std::uint32_t bytes_of(std::span<const Packet> packets) {
  static_assert(std::uint64_t{kBatchMax} * kPacketBytesMax <= UINT32_MAX);
  std::uint32_t bytes = 0;
#pragma GCC unroll 8
  for (const Packet packet : packets) bytes += packet.mbuf()->pkt_len;
  return bytes;
}

}  // namespace

void Shard::pass(const RxQueue& rx, Port out, std::span<Packet> packets) {
  testbed_.device(0).count_wire(rx.to.port, out, packets.size(), bytes_of(packets));
  if (const int port = out_ports_[0][out]; port >= 0) return send(static_cast<std::size_t>(port), packets, now_);
  unbound_.add(packets.size());
  free_all(packets);
}

// All that arrives can go by wires, or nothing does.
void Shard::lay_wires() {
  if (!alone_ || !wire_ || exchange_) return;
  for (const RxQueue& rx : rx_) {
    const int to = wire_from(rx);
    const int out = to >= 0 ? out_ports_[0][static_cast<std::size_t>(to)] : -1;
    if (out < 0 || rx.port->eth_port() < 0 || tx_[static_cast<std::size_t>(out)].port->eth_port() < 0 || rx.patient ||
        rx.finish_checksums)
      return wires_.clear();
    const auto index = static_cast<std::size_t>(out);
    wires_.push_back({.in = rx.index,
                      .out = index,
                      .from = rx.to.port,
                      .to = static_cast<Port>(to),
                      .eth_in = static_cast<std::uint16_t>(rx.port->eth_port()),
                      .eth_out = static_cast<std::uint16_t>(tx_[index].port->eth_port())});
  }
}

// Loops in which nothing happens but packets passing: what else a loop does, reading the time too, loop() did at the
// start of the round.
void Shard::relay(unsigned loops) {
  sample(false);
  std::array<Packet, kBatchMax> room;
  unsigned done = 0;
  bool busy = true;
  for (; busy && done < loops; done++) {
    busy = false;
    for (Wire& wire : wires_) busy |= relay(wire, room.data());
    if (unsent_) flush_queues();
  }
  loops_.add(done);
  busy_loops_.add(done - !busy);
  busy_since_clock_ = true;
  for (Wire& wire : wires_) {
    counters_[wire.in].rx_packets.add(wire.packets);
    counters_[wire.out].tx_packets.add(std::exchange(wire.sent, 0));
    testbed_.device(0).count_wire(wire.from, wire.to, std::exchange(wire.packets, 0), std::exchange(wire.bytes, 0));
  }
}

inline bool Shard::relay(Wire& wire, Packet* room) {
  auto* mbufs = reinterpret_cast<rte_mbuf**>(room);
  const auto queue = static_cast<std::uint16_t>(number_);
  const std::uint16_t count = rte_eth_rx_burst(wire.eth_in, queue, mbufs, static_cast<std::uint16_t>(burst_));
  if (count == 0) return false;
  wire.packets += count;
  wire.bytes += bytes_of({room, count});
  std::uint16_t sent = 0;
  if (tx_[wire.out].count == 0) {  // else behind what waits
    sent = rte_eth_tx_burst(wire.eth_out, queue, mbufs, count);
    wire.sent += sent;
  }
  if (sent < count) send(wire.out, {room + sent, static_cast<std::size_t>(count - sent)}, now_);
  return true;
}

}  // namespace rocebox
