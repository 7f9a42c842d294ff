// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memcpy.h>
#include <rte_memzone.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"
#include "runtime/packet/huge_pages.h"

namespace rocebox {
namespace {

constexpr std::array<std::uint32_t, 4> kRoomBytes = {kHeaderPacketBytes, 2048, 9728, kPacketBytesMax};
// Per-lcore cache of free packets: two bursts. Small classes go without, or the cache would hide most of them.
constexpr std::uint32_t kCachePackets = 128;

constexpr std::array<std::uint32_t, 4> counts(const PoolSizes& sizes) {
  return {sizes.headers, sizes.small, sizes.large, sizes.giant};
}

std::uint32_t cache_of(std::uint32_t count) { return count >= 4 * kCachePackets ? kCachePackets : 0; }

void free_zone(rte_mempool_memhdr*, void* zone) { rte_memzone_free(static_cast<const rte_memzone*>(zone)); }

// rte_pktmbuf_pool_create() lets no packet lie across a page for the sake of devices, and pages have 4 KiB without
// hugepages: each header at the start of one, all in the same set of the first-level cache, and twice the time for each
// packet. Here they lie one behind the other. With virtual addresses as IOVAs that is all the same to devices that the
// IOMMU serves; those flags, which would say that the memory is none for devices, only serve the making. Null: no
// memory.
rte_mempool* make_packed(const std::string& name, std::uint32_t count, std::uint32_t room, bool alone) {
  constexpr unsigned kWhileMaking = RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NON_IO;
  rte_mempool* mempool = rte_mempool_create_empty(
      name.c_str(), count, static_cast<unsigned>(sizeof(rte_mbuf) + sizeof(PacketMeta) + room), cache_of(count),
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (!mempool) return nullptr;
  rte_pktmbuf_pool_private about{};
  about.mbuf_data_room_size = static_cast<std::uint16_t>(room);
  about.mbuf_priv_size = sizeof(PacketMeta);
  rte_pktmbuf_pool_init(mempool, &about);
  std::size_t chunk = 0, alignment = 0;
  const ssize_t bytes = rte_mempool_op_calc_mem_size_default(mempool, count, 0, &chunk, &alignment);
  const rte_memzone* zone =
      rte_memzone_reserve_aligned(name.c_str(), static_cast<std::size_t>(bytes), SOCKET_ID_ANY, 0,
                                  static_cast<unsigned>(std::max<std::size_t>(alignment, RTE_CACHE_LINE_SIZE)));
  // Thousands of packets in flight lie in more small pages than the processor remembers the places of.
  if (zone && alone) replace_by_huge_pages(zone->addr, zone->len);
  int made = -1;
  if (zone && rte_mempool_set_ops_byname(mempool, rte_mbuf_best_mempool_ops(), nullptr) == 0)
    made = rte_mempool_populate_iova(mempool, static_cast<char*>(zone->addr), zone->iova, zone->len, free_zone,
                                     const_cast<rte_memzone*>(zone));
  if (made != static_cast<int>(count)) {
    if (zone && made <= 0) rte_memzone_free(zone);
    rte_mempool_free(mempool);
    rte_errno = ENOMEM;
    return nullptr;
  }
  mempool->flags &= ~kWhileMaking;
  rte_mempool_obj_iter(mempool, rte_pktmbuf_init, nullptr);
  return mempool;
}

}  // namespace

std::uint64_t PoolSizes::mebibytes() const {
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < kRoomBytes.size(); i++)
    bytes += counts(*this)[i] * std::uint64_t{kRoomBytes[i] + RTE_PKTMBUF_HEADROOM + 512};
  // An eighth for the mempools' own objects and rings, and what EAL takes for itself.
  return (bytes >> 20) * 9 / 8 + 64;
}

void PoolSizes::require_memory(std::uint64_t available_bytes) const {
  const std::uint64_t needed_mebibytes = mebibytes(), available_mebibytes = available_bytes >> 20;
  if (needed_mebibytes <= available_mebibytes) return;
  throw ConfigError("`pool:` of " + (headers ? std::to_string(headers) + " header, " : std::string()) +
                    std::to_string(small) + " small, " + std::to_string(large) + " large and " + std::to_string(giant) +
                    " giant packets needs " + std::to_string(needed_mebibytes) + " MiB of memory, and " +
                    std::to_string(available_mebibytes) + " MiB are available; lower it");
}

Pool::Pool(const PoolSizes& sizes, PacketsInMemory how) {
  const bool packed =
      how != PacketsInMemory::kByPages && !rte_eal_has_hugepages() && rte_eal_iova_mode() == RTE_IOVA_VA;
  static std::atomic<unsigned> serial{0};  // mempool names are process-wide; they carry no meaning
  for (unsigned i = 0; i < kClasses; i++) {
    const std::uint32_t count = counts(sizes)[i];
    if (count == 0) continue;
    const std::uint32_t room = std::min<std::uint32_t>(kRoomBytes[i] + RTE_PKTMBUF_HEADROOM, 65535);
    const std::string name = "rocebox_" + std::to_string(serial++);
    mempools_[i] = packed ? make_packed(name, count, room, how == PacketsInMemory::kAlone)
                          : rte_pktmbuf_pool_create(name.c_str(), count, cache_of(count), sizeof(PacketMeta),
                                                    static_cast<std::uint16_t>(room), SOCKET_ID_ANY);
    if (mempools_[i]) continue;
    const std::string why = rte_strerror(rte_errno);
    while (i-- > 0) rte_mempool_free(mempools_[i]);
    throw ConfigError("no memory for a pool of " + std::to_string(count) + " packets of " + std::to_string(room) +
                      " bytes: " + why + "; lower `pool:` in the configuration");
  }
}

Pool::~Pool() {
  for (rte_mempool* mempool : mempools_) rte_mempool_free(mempool);
}

PacketPtr Pool::allocate(std::uint32_t bytes) {
  for (unsigned i = 0; i < kClasses; i++) {
    if (bytes > kRoomBytes[i] || !mempools_[i]) continue;
    rte_mbuf* mbuf = rte_pktmbuf_alloc(mempools_[i]);
    if (!mbuf) continue;
    mbuf->data_len = static_cast<std::uint16_t>(bytes);
    mbuf->pkt_len = bytes;
    PacketMeta* meta = new (rte_mbuf_to_priv(mbuf)) PacketMeta;
    meta->wire_bytes = bytes;
    const std::int64_t left = until_look_.load(std::memory_order_relaxed) - 1;
    until_look_.store(left, std::memory_order_relaxed);
    if (left <= 0) look();
    return PacketPtr(Packet(mbuf));
  }
  return {};
}

PacketPtr Pool::copy(Packet packet) {
  PacketPtr made = allocate(packet.size());
  if (made) {
    rte_memcpy(made->data(), packet.data(), packet.size());
    made->meta() = packet.meta();
    made->meta().shared = made->meta().watched = 0;
  }
  return made;
}

PacketPtr Pool::share(Packet packet) {
  PacketPtr made = allocate(0);
  if (made) {
    packet.meta().shared = 1;
    made->meta() = packet.meta();
    made->meta().watched = 0;
    rte_pktmbuf_attach(made->mbuf(), packet.mbuf());
  }
  return made;
}

bool Pool::replace(Packet& packet) {
  PacketPtr made = copy(packet);
  if (!made) return false;
  rte_pktmbuf_free(packet.mbuf());
  packet = made.release();
  return true;
}

void Pool::look() {
  // Only this lcore's cache: rte_mempool_in_use_count() walks those of all lcores.
  std::uint32_t used = 0;
  for (rte_mempool* mempool : mempools_) {
    if (!mempool) continue;
    const rte_mempool_cache* cache = rte_mempool_default_cache(mempool, rte_lcore_id());
    used += mempool->size - rte_mempool_get_ops(mempool->ops_index)->get_count(mempool) - (cache ? cache->len : 0);
  }
  const std::uint32_t most = std::max(in_use_max(), used);
  in_use_max_.store(most, std::memory_order_relaxed);
  until_look_.store(std::int64_t{most} - used + 1, std::memory_order_relaxed);
}

std::uint32_t Pool::in_use() const {
  std::uint32_t sum = 0;
  for (const rte_mempool* mempool : mempools_)
    if (mempool) sum += rte_mempool_in_use_count(mempool);
  return sum;
}

rte_mempool* Pool::mempool_for(std::uint32_t bytes) const {
  for (unsigned i = 0; i < kClasses; i++)
    if (bytes <= kRoomBytes[i] && mempools_[i]) return mempools_[i];
  return mempools_[kClasses - 1];
}

}  // namespace rocebox
