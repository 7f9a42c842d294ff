// SPDX-License-Identifier: BSD-3-Clause
// Shard: how it is made, with its devices and its queues.
#include <algorithm>

#include "runtime/drives/live/shard.h"

namespace rocebox {
namespace {

bool has_kernels(const config::RunConfig& config) {
  return !config.links.empty() || std::any_of(config.devices.begin(), config.devices.end(),
                                              [](const auto& device) { return !device.kernels.empty(); });
}

// Devices of the configuration come first, then its links, which are one kernel each.
std::size_t kernels_of(const config::RunConfig& config, unsigned device) {
  return device < config.devices.size() ? config.devices[device].kernels.size() : 1;
}

// Shard 0 draws as a replay does; the others draw numbers of their own.
std::uint64_t shard_seed(const config::RunConfig& config, unsigned shard) {
  const auto seed = static_cast<std::uint64_t>(config.seed);
  return shard == 0 ? seed : stream_seed(seed, "shard", std::to_string(shard));
}

}  // namespace

Shard::Shard(unsigned number, const config::RunConfig& config, Pool& pool,
             std::vector<std::unique_ptr<LivePort>>& ports, Exchange* exchange, const Clock& clock)
    : number_(number),
      clock_(clock),
      exchange_(exchange),
      testbed_(
          config, pool, shard_seed(config, number),
          [this](FabricPort from, std::span<Packet> packets, Nanos) {
            const int port = out_ports_[from.device][from.port];
            if (port >= 0) return send(static_cast<std::size_t>(port), packets, packets[0].meta().arrival);
            unbound_.add(packets.size());
            for (Packet packet : packets) rte_pktmbuf_free(packet.mbuf());
          },
          kBatchMax),
      alone_(config.devices.size() == 1 && config.links.empty()),
      wire_(!has_kernels(config) &&
            std::none_of(ports.begin(), ports.end(), [](const auto& port) { return port->fills_metadata(); })),
      burst_(static_cast<unsigned>(config.live.burst)),
      tx_(ports.size()),
      counters_(ports.size()),
      idler_(config.live.idle, config.live.idle_sleep) {
  for (unsigned device = 0; device < testbed_.device_count(); device++) {
    testbed_.device(device).set_probe(&stays_.emplace_back(clock, kernels_of(config, device)));
    out_ports_.emplace_back(testbed_.device(device).ports().size(), -1);
  }
  const bool offloads =
      std::any_of(ports.begin(), ports.end(), [](const auto& port) { return port->brings_offload(); });
  for (std::size_t i = 0; i < ports.size(); i++) {
    LivePort& port = *ports[i];
    const FabricPort to = testbed_.port(port.port());
    out_ports_[to.device][to.port] = static_cast<int>(i);
    const bool owned = !exchange_ || exchange_->owner(i) == number_;
    const unsigned queue = exchange_ ? 0 : number_;
    const bool finish = port.settings().kind == config::PortKind::kAfXdp && port.settings().finish_checksums;
    rx_.push_back({&port, queue, i, to, owned, port.fills_metadata(), finish, port.patient()});
    patient_ |= port.patient();
    tx_[i].port = &port;
    tx_[i].queue = queue;
    tx_[i].owned = owned;
    tx_[i].finishes = offloads && !port.fills_metadata();
    if (port.takes_shared() && !tx_[i].finishes) testbed_.device(to.device).allow_shared(to.port);
    if (config.live.idle == config::Idle::kInterrupt && owned) idler_.watch(port, queue);
  }
  room_.resize(ports.size());
  arrivals_.reserve(room_.size());
  lay_wires();
}

Shard::~Shard() {
  for (TxQueue& tx : tx_) free_all({tx.packets.data(), tx.count});
}

}  // namespace rocebox
