// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/wire_relay.h"

#include <rte_ethdev.h>

#include <utility>

namespace rocebox {

WireRelay::WireRelay(unsigned queue, unsigned burst, const std::vector<bool>& can_pass, ShardDevices& devices,
                     TransmitQueues& queues, std::vector<ShardPortCounters>& counters)
    : queue_(static_cast<std::uint16_t>(queue)),
      burst_(static_cast<std::uint16_t>(burst)),
      devices_(devices),
      queues_(queues),
      counters_(counters) {
  for (std::size_t in = 0; in < queues.ports(); in++) {
    const int to = devices.wire_out(devices.port(in));
    const int bound = to >= 0 ? devices.bound_to(static_cast<Port>(to)) : -1;
    const auto out = static_cast<std::size_t>(bound);
    if (!can_pass[in] || bound < 0 || queues.port(in).eth_port() < 0 || queues.port(out).eth_port() < 0) {
      wires_.clear();
      return;
    }
    wires_.push_back({.in = in,
                      .out = out,
                      .from = devices.port(in).port,
                      .to = static_cast<Port>(to),
                      .eth_in = static_cast<std::uint16_t>(queues.port(in).eth_port()),
                      .eth_out = static_cast<std::uint16_t>(queues.port(out).eth_port())});
  }
}

WireRelay::Loops WireRelay::run(unsigned most) {
  std::array<Packet, kBatchMax> room;
  unsigned done = 0;
  bool busy = true;
  for (; busy && done < most; done++) {
    busy = false;
    for (Wire& wire : wires_) busy |= pass_burst(wire, room.data());
    queues_.flush();
  }
  for (Wire& wire : wires_) {
    counters_[wire.in].rx_packets.add(wire.packets);
    counters_[wire.out].tx_packets.add(std::exchange(wire.sent, 0));
    devices_.wire_path()->count(wire.from, wire.to, std::exchange(wire.packets, 0), std::exchange(wire.bytes, 0));
  }
  return {done, done - !busy};
}

inline bool WireRelay::pass_burst(Wire& wire, Packet* room) {
  auto* mbufs = reinterpret_cast<rte_mbuf**>(room);
  const std::uint16_t count = rte_eth_rx_burst(wire.eth_in, queue_, mbufs, burst_);
  if (count == 0) return false;
  wire.packets += count;
  wire.bytes += bytes_of({room, count});
  std::uint16_t sent = 0;
  if (queues_.is_empty(wire.out)) {  // else behind what waits
    sent = rte_eth_tx_burst(wire.eth_out, queue_, mbufs, count);
    wire.sent += sent;
  }
  if (sent < count) queues_.send(wire.out, {room + sent, static_cast<std::size_t>(count - sent)}, 0);
  return true;
}

}  // namespace rocebox
