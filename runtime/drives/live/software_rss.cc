// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/drives/live/software_rss.h"

#include <fmt/format.h>
#include <rte_ring.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstring>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/roce/headers.h"

namespace rocebox {

SoftwareRss::SoftwareRss(unsigned shards, std::size_t ports, Readers readers)
    : shards_(shards),
      ports_(ports),
      readers_sleep_(readers == Readers::kSleep),
      writers_(shards),
      readers_(shards),
      rings_(2 * std::size_t{shards} * ports),
      full_(shards) {
  if (readers_sleep_)
    for (Reader& reader : readers_) reader.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  for (std::size_t i = 0; i < rings_.size(); i++) {
    rings_[i] = rte_ring_create(fmt::format("rb_handover_{}", i).c_str(), kHandoverPackets, SOCKET_ID_ANY,
                                RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (!rings_[i]) throw ConfigError("no memory for the queues between shards; lower `shards:` or `pool:`");
  }
}

SoftwareRss::~SoftwareRss() {
  for (rte_ring* ring : rings_) {
    void* packet = nullptr;
    while (ring && rte_ring_dequeue(ring, &packet) == 0) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    rte_ring_free(ring);
  }
  for (const Reader& reader : readers_)
    if (reader.event >= 0) ::close(reader.event);
}

void SoftwareRss::put(Direction direction, std::size_t port, unsigned shard, std::span<Packet> packets) {
  void* const* objects = reinterpret_cast<void* const*>(packets.data());
  const auto count = static_cast<unsigned>(packets.size());
  const unsigned done = rte_ring_sp_enqueue_burst(ring(direction, port, shard), objects, count, nullptr);
  if (readers_sleep_)
    writers_[direction == Direction::kIn ? owner(port) : shard].has_put |= 1u << reader(direction, port, shard);
  if (done == count) return;
  full_[direction == Direction::kIn ? owner(port) : shard].add(count - done);
  for (Packet packet : packets.subspan(done)) rte_pktmbuf_free(packet.mbuf());
}

unsigned SoftwareRss::take(Direction direction, std::size_t port, unsigned shard, std::span<Packet> room) {
  void** objects = reinterpret_cast<void**>(room.data());
  return rte_ring_sc_dequeue_burst(ring(direction, port, shard), objects, static_cast<unsigned>(room.size()), nullptr);
}

// Who hands over writes the queue and then exchanges `sleeps`; who goes to sleep exchanges `sleeps` and then reads the
// queue. Of two exchanges one is first: either the later one finds that somebody sleeps, or it sees what was written
// before the first. (Fences would do, too, but ThreadSanitizer does not know them.)
void SoftwareRss::wake_sleeping(unsigned writer) {
  for (unsigned shard = 0; shard < shards_; shard++) {
    Reader& reader = readers_[shard];
    const bool handed = writers_[writer].has_put & 1u << shard;
    if (handed && reader.sleeps.exchange(false, std::memory_order_acq_rel)) eventfd_write(reader.event, 1);
  }
  writers_[writer].has_put = 0;
}

void SoftwareRss::sleep_on(unsigned reader, bool on) {
  readers_[reader].sleeps.exchange(on, std::memory_order_acq_rel);
  eventfd_t ignored;
  if (!on) eventfd_read(readers_[reader].event, &ignored);
}

bool SoftwareRss::has_room(Direction direction, std::size_t port, unsigned shard) const {
  return rte_ring_free_count(ring(direction, port, shard)) >= 2 * kBatchMax;
}

bool SoftwareRss::empty(Direction direction, unsigned reader) const {
  for (std::size_t port = 0; port < ports_; port++)
    for (unsigned shard = 0; shard < shards_; shard++)
      if (this->reader(direction, port, shard) == reader && !rte_ring_empty(ring(direction, port, shard))) return false;
  return true;
}

std::uint64_t SoftwareRss::full() const {
  std::uint64_t sum = 0;
  for (const Counter& counter : full_) sum += counter.read();
  return sum;
}

unsigned shard_of(Packet packet, unsigned shards) {
  std::uint32_t offset = 0, type = 0;
  if (!roce::find_network(packet.data(), packet.size(), offset, type)) return 0;
  const bool v4 = type == roce::kEtherIpv4, v6 = type == roce::kEtherIpv6;
  const std::uint32_t addresses = offset + (v4 ? 12 : 8), words = v4 ? 2 : 8;
  if (!(v4 || v6) || addresses + words * 4 > packet.size()) return 0;
  std::uint32_t mixed = 0;  // the order of the addresses does not matter to a xor
  for (std::uint32_t word = 0; word < words; word++) {
    std::uint32_t value;
    std::memcpy(&value, packet.data() + addresses + 4 * word, 4);
    mixed ^= value;
  }
  mixed *= 0x9E3779B1u;  // Knuth's multiplicative hash: neighbours part
  return static_cast<unsigned>(std::uint64_t{mixed} * shards >> 32);
}

}  // namespace rocebox
