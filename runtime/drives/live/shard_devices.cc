// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/shard_devices.h"

#include "runtime/engine/pipeline_device.h"

namespace rocebox {
namespace {

// Devices of the configuration come first, then its links, which are one kernel each.
std::size_t kernels_of(const config::RunConfig& config, unsigned device) {
  return device < config.devices.size() ? config.devices[device].kernels.size() : 1;
}

}  // namespace

std::uint64_t shard_seed(const config::RunConfig& config, unsigned shard) {
  auto seed = static_cast<std::uint64_t>(config.seed);
  for (const config::DeviceConfig& device : config.devices)
    if (device.whole() && device.whole()->makes_packets())
      for (const auto& [option, value] : flatten(device.kernels[0].values)) seed = stream_seed(seed, option, value);
  return shard == 0 ? seed : stream_seed(seed, "shard", std::to_string(shard));
}

ShardDevices::ShardDevices(unsigned number, const config::RunConfig& config, Pool& pool, LoopClock& clock,
                           TransmitQueues& queues, LatencySample& sample)
    : clock_(clock),
      queues_(queues),
      testbed_(
          config, pool, shard_seed(config, number),
          [this](FabricPort from, std::span<Packet> packets, Nanos) {
            leave(from, packets, packets[0].meta().arrival);
          },
          kBatchMax),
      several_(testbed_.device_count() > 1),
      wire_path_(several_ ? nullptr : testbed_.device(0).wire_path()) {
  for (unsigned device = 0; device < testbed_.device_count(); device++) {
    testbed_.device(device).set_probe(&sample.add_device(kernels_of(config, device)));
    out_ports_.emplace_back(testbed_.device(device).ports().size(), -1);
  }
  for (std::size_t i = 0; i < queues.ports(); i++) {
    const FabricPort to = ports_.emplace_back(testbed_.port(queues.port(i).port()));
    out_ports_[to.device][to.port] = static_cast<int>(i);
    if (queues.takes_shared(i)) testbed_.device(to.device).allow_shared(to.port);
  }
}

void ShardDevices::leave(FabricPort from, std::span<Packet> packets, Nanos arrival) {
  if (const int port = out_ports_[from.device][from.port]; port >= 0)
    return queues_.send(static_cast<std::size_t>(port), packets, arrival);
  unbound_.add(packets.size());
  free_packets(packets);
}

void ShardDevices::pass(FabricPort in, Port out, std::span<Packet> packets) {
  wire_path_->count(in.port, out, packets.size(), bytes_of(packets));
  leave({0, out}, packets, clock_.now());
}

std::uint32_t bytes_of(std::span<const Packet> packets) {
  static_assert(std::uint64_t{kBatchMax} * kPacketBytesMax <= UINT32_MAX);
  std::uint32_t bytes = 0;
#pragma GCC unroll 8
  for (const Packet packet : packets) bytes += packet.mbuf()->pkt_len;
  return bytes;
}

}  // namespace rocebox
