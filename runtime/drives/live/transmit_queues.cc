// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/transmit_queues.h"

#include <algorithm>
#include <utility>

#include "runtime/drives/live/checksums.h"

namespace rocebox {

TransmitQueues::TransmitQueues(unsigned number, const std::vector<std::unique_ptr<LivePort>>& ports, SoftwareRss* rss,
                               unsigned burst, LatencySample& sample, std::vector<ShardPortCounters>& counters)
    : shard_(number), rss_(rss), burst_(burst), sample_(sample), counters_(counters), queues_(ports.size()) {
  const bool offloads =
      std::any_of(ports.begin(), ports.end(), [](const auto& port) { return port->brings_offload(); });
  for (std::size_t i = 0; i < ports.size(); i++) {
    Queue& queue = queues_[i];
    queue.port = ports[i].get();
    queue.number = rss ? 0 : number;
    queue.owned = !rss || rss->owner(i) == number;
    queue.finishes_offloads = offloads && !ports[i]->fills_metadata();
    some_port_waits_ |= ports[i]->tolerates_waiting();
  }
}

TransmitQueues::~TransmitQueues() {
  for (Queue& queue : queues_) free_packets({queue.packets.data(), queue.count});
}

void TransmitQueues::send(std::size_t port, std::span<Packet> packets, Nanos arrival) {
  Queue& queue = queues_[port];
  if (queue.finishes_offloads) packets = packets.first(finish_offloads(port, packets));
  if (!queue.owned) return rss_->put(SoftwareRss::Direction::kOut, port, shard_, packets);
  sample_.packet_leaves(port, arrival);
  if (queue.count == 0 && packets.size() >= burst_)  // a whole burst that nothing stands before goes out as it is
    packets = packets.subspan(hand_over(port, packets));
  if (packets.size() > queue.packets.size() - queue.count && queue.count) transmit(port);
  const std::size_t kept = std::min(packets.size(), queue.packets.size() - queue.count);
  std::copy_n(packets.begin(), kept, queue.packets.begin() + queue.count);
  queue.count += static_cast<unsigned>(kept);
  waiting_ |= kept != 0;
  if (kept == packets.size()) return;
  counters_[port].tx_full.add(packets.size() - kept);
  free_packets(packets.subspan(kept));
}

// Does what a host on this machine left to hardware, for a port that has none. Returns how many packets are left.
unsigned TransmitQueues::finish_offloads(std::size_t port, std::span<Packet> packets) {
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
unsigned TransmitQueues::hand_over(std::size_t port, std::span<Packet> packets) {
  const LivePort::Sent sent = queues_[port].port->send(queues_[port].number, packets);
  counters_[port].tx_packets.add(sent.taken - sent.failed);
  if (sent.failed) [[unlikely]]
    counters_[port].tx_errors.add(sent.failed);
  return sent.taken;
}

// Sends what waits. What the port does not take waits for the next loop.
void TransmitQueues::transmit(std::size_t port) {
  Queue& queue = queues_[port];
  const unsigned sent = hand_over(port, {queue.packets.data(), queue.count});
  std::copy(queue.packets.begin() + sent, queue.packets.begin() + queue.count, queue.packets.begin());
  queue.count -= sent;
}

void TransmitQueues::flush_all() {
  congested_ = waiting_ = false;
  for (std::size_t port = 0; port < queues_.size(); port++) {
    Queue& queue = queues_[port];
    if (rss_ && queue.owned) {
      for (unsigned from = 0; from < rss_->shards(); from++) {
        const auto room = std::span(queue.packets).subspan(queue.count);
        queue.count += rss_->take(SoftwareRss::Direction::kOut, port, from,
                                  {room.data(), std::min<std::size_t>(room.size(), burst_)});
      }
    }
    if (queue.count) transmit(port);
    waiting_ |= queue.count != 0;
    congested_ |= queue.count != 0;
    if (some_port_waits_ && !queue.owned) congested_ |= !rss_->has_room(SoftwareRss::Direction::kOut, port, shard_);
  }
  if (rss_) rss_->wake_readers(shard_);
}

void TransmitQueues::drop_all() {
  for (std::size_t port = 0; port < queues_.size(); port++) {
    Queue& queue = queues_[port];
    counters_[port].tx_full.add(queue.count);
    free_packets(std::span(queue.packets).first(std::exchange(queue.count, 0u)));
  }
}

}  // namespace rocebox
