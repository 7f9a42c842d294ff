// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/sources.h"

#include <new>

#include "runtime/drives/live/checksums.h"

namespace rocebox {

PortSource::PortSource(std::size_t number, unsigned queue, unsigned burst, bool bare, ShardDevices& devices,
                       const TransmitQueues& queues, SoftwareRss* rss, ShardPortCounters& counters)
    : port_(queues.port(number)),
      number_(number),
      to_(devices.port(number)),
      queue_(queue),
      burst_(burst),
      bare_(bare),
      fills_metadata_(port_.fills_metadata()),
      finish_checksums_(finishes_checksums(port_)),
      tolerates_waiting_(port_.tolerates_waiting()),
      devices_(devices),
      queues_(queues),
      rss_(rss),
      counters_(counters) {}

bool PortSource::poll(Nanos) {
  if (tolerates_waiting_ && must_wait()) return false;
  const unsigned count = port_.receive(queue_, {room_.data(), burst_});
  if (count == 0) return false;
  counters_.rx_packets.add(count);
  const int out = rss_ ? -1 : devices_.wire_out(to_);
  const unsigned kept = bare_ && out >= 0 ? count : prepare({room_.data(), count});
  if (rss_) {
    for (Packet& packet : std::span(room_).first(kept))
      rss_->put(SoftwareRss::Direction::kIn, number_, shard_of(packet, rss_->shards()), {&packet, 1});
  } else if (kept == 0) {
    return true;
  } else if (out >= 0) {
    devices_.pass(to_, static_cast<Port>(out), {room_.data(), kept});
  } else {
    devices_.deliver(to_, {room_.data(), kept});
  }
  return true;
}

// Whether more packets would only be dropped further on.
bool PortSource::must_wait() const {
  if (queues_.congested()) return true;
  for (unsigned shard = 0; rss_ && shard < rss_->shards(); shard++)
    if (!rss_->has_room(SoftwareRss::Direction::kIn, number_, shard)) return true;
  return false;
}

// Fresh metadata, one segment, whole checksums. Returns how many packets are left.
unsigned PortSource::prepare(std::span<Packet> packets) {
  for (Packet packet : packets) rte_prefetch0(rte_mbuf_to_priv(packet.mbuf()));
  if (fills_metadata_) return static_cast<unsigned>(packets.size());
  unsigned kept = 0;
  for (Packet packet : packets) {
    rte_mbuf* mbuf = packet.mbuf();
    if (mbuf->nb_segs > 1 && rte_pktmbuf_linearize(mbuf) != 0) [[unlikely]] {
      counters_.rx_too_long.add();
      rte_pktmbuf_free(mbuf);
      continue;
    }
    PacketMeta* meta = new (rte_mbuf_to_priv(mbuf)) PacketMeta;
    meta->wire_bytes = mbuf->data_len;
    if (finish_checksums_ && finish_checksum(packet)) counters_.rx_checksums_finished.add();
    packets[kept++] = packet;
  }
  return kept;
}

HandoverSource::HandoverSource(std::size_t number, unsigned shard, unsigned burst, ShardDevices& devices,
                               const TransmitQueues& queues, SoftwareRss& rss)
    : number_(number),
      from_(devices.port(number)),
      shard_(shard),
      burst_(burst),
      devices_(devices),
      queues_(queues),
      rss_(rss) {}

bool HandoverSource::poll(Nanos) {
  if (queues_.some_port_waits() && queues_.congested()) return false;
  const unsigned count = rss_.take(SoftwareRss::Direction::kIn, number_, shard_, {room_.data(), burst_});
  if (count == 0) return false;
  const std::span<Packet> packets{room_.data(), count};
  if (const int out = devices_.wire_out(from_); out >= 0)
    devices_.pass(from_, static_cast<Port>(out), packets);
  else
    devices_.deliver(from_, packets);
  return true;
}

}  // namespace rocebox
