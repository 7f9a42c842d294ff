// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/packet/pool.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memcpy.h>
#include <rte_memzone.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>

#include "runtime/kernel/kernel.h"
#include "runtime/limits.h"

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

// Those flags, which would say that the memory is none for devices, only serve the making.
constexpr unsigned kWhileMaking = RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NON_IO;
// A pool that grows does so by a huge page, for those that no packet was ever in need not be cleared.
constexpr std::size_t kGrowthBytes = std::size_t{2} << 20;

std::size_t bytes_of_one(const rte_mempool* mempool) {
  return std::size_t{mempool->header_size} + mempool->elt_size + mempool->trailer_size;
}

// Makes the next packets of the mempool, which lie at `memory` one behind the other; at most `count`. Returns how many.
std::uint32_t populate(rte_mempool* mempool, std::byte* memory, std::size_t count, const rte_memzone* zone = nullptr) {
  const std::uint32_t before = mempool->populated_size;
  const std::size_t one = bytes_of_one(mempool);
  std::byte* const at = memory + before * one;
  count = std::min<std::size_t>(count, mempool->size - before);
  mempool->flags |= kWhileMaking;
  const int made = rte_mempool_populate_iova(mempool, reinterpret_cast<char*>(at), reinterpret_cast<rte_iova_t>(at),
                                             count * one, zone ? free_zone : nullptr, const_cast<rte_memzone*>(zone));
  mempool->flags &= ~kWhileMaking;
  if (made <= 0) return 0;
  for (std::uint32_t i = before; i < mempool->populated_size; i++)
    rte_pktmbuf_init(mempool, nullptr, memory + i * one + mempool->header_size, i);
  return static_cast<std::uint32_t>(made);
}

// How many a pool that grows has more of at once.
std::size_t packets_at_once(const rte_mempool* mempool) {
  return std::max<std::size_t>(kGrowthBytes / bytes_of_one(mempool), 1);
}

std::uint32_t populate_all(rte_mempool* mempool, const std::string& name) {
  const rte_memzone* zone = rte_memzone_reserve_aligned(name.c_str(), mempool->size * bytes_of_one(mempool),
                                                        SOCKET_ID_ANY, 0, RTE_MEMPOOL_ALIGN);
  if (!zone) return 0;
  const std::uint32_t made = populate(mempool, static_cast<std::byte*>(zone->addr), mempool->size, zone);
  if (made == 0) rte_memzone_free(zone);
  return made;
}

// The first packets, in memory that is not EAL's. Advice: without huge pages all works as before; with them thousands
// of packets in flight lie in no more pages than the processor remembers the places of.
std::uint32_t populate_first(rte_mempool* mempool, ReservedMemory& own) {
  const std::size_t bytes = mempool->size * bytes_of_one(mempool);
  try {
    own = ReservedMemory(bytes, kGrowthBytes, false);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  (void)madvise(own.get(), bytes, MADV_HUGEPAGE);
  return populate(mempool, static_cast<std::byte*>(own.get()), packets_at_once(mempool));
}

// rte_pktmbuf_pool_create() lets no packet lie across a page for the sake of devices, and pages have 4 KiB without
// hugepages: each header at the start of one, all in the same set of the first-level cache, and twice the time for each
// packet. Here they lie one behind the other. With virtual addresses as IOVAs that is all the same to devices that the
// IOMMU serves. Null: no memory. With `own` only the first packets are made, in memory that is not EAL's.
rte_mempool* make_packed(const std::string& name, std::uint32_t count, std::uint32_t room, ReservedMemory* own) {
  rte_mempool* mempool = rte_mempool_create_empty(
      name.c_str(), count, static_cast<unsigned>(sizeof(rte_mbuf) + sizeof(PacketMeta) + room), cache_of(count),
      sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_IOVA_CONTIG);
  if (!mempool) return nullptr;
  rte_pktmbuf_pool_private about{};
  about.mbuf_data_room_size = static_cast<std::uint16_t>(room);
  about.mbuf_priv_size = sizeof(PacketMeta);
  rte_pktmbuf_pool_init(mempool, &about);
  bool is_made = rte_mempool_set_ops_byname(mempool, rte_mbuf_best_mempool_ops(), nullptr) == 0;
  if (is_made) is_made = own ? populate_first(mempool, *own) != 0 : populate_all(mempool, name) == count;
  if (is_made) return mempool;
  rte_mempool_free(mempool);
  rte_errno = ENOMEM;
  return nullptr;
}

std::uint32_t not_free(const rte_mempool* mempool) {
  return mempool->populated_size - rte_mempool_avail_count(mempool);
}

}  // namespace

std::uint64_t PoolSizes::packet_mebibytes() const {
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < kRoomBytes.size(); i++)
    bytes += counts(*this)[i] * std::uint64_t{kRoomBytes[i] + RTE_PKTMBUF_HEADROOM + 512};
  return bytes >> 20;
}

std::uint64_t PoolSizes::mebibytes() const {
  // An eighth for the mempools' own objects and rings, and what EAL takes for itself.
  return packet_mebibytes() * 9 / 8 + 64;
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
    mempools_[i] = packed ? make_packed(name, count, room, how == PacketsInMemory::kAlone ? &own_[i] : nullptr)
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
    if (!mbuf && grow(i)) [[unlikely]]
      mbuf = rte_pktmbuf_alloc(mempools_[i]);
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
  dry_.store(dry() + 1, std::memory_order_relaxed);
  return {};
}

bool Pool::grow(unsigned size_class) {
  rte_mempool* mempool = mempools_[size_class];
  if (!own_[size_class].get() || mempool->populated_size == mempool->size) return false;
  return populate(mempool, static_cast<std::byte*>(own_[size_class].get()), packets_at_once(mempool)) != 0;
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
  // Only this lcore's cache: not_free() walks those of all lcores.
  std::uint32_t used = 0;
  for (rte_mempool* mempool : mempools_) {
    if (!mempool) continue;
    const rte_mempool_cache* cache = rte_mempool_default_cache(mempool, rte_lcore_id());
    used += mempool->populated_size - rte_mempool_get_ops(mempool->ops_index)->get_count(mempool) -
            (cache ? cache->len : 0);
  }
  const std::uint32_t most = std::max(in_use_max(), used);
  in_use_max_.store(most, std::memory_order_relaxed);
  until_look_.store(std::int64_t{most} - used + 1, std::memory_order_relaxed);
}

std::uint32_t Pool::in_use() const {
  std::uint32_t sum = 0;
  for (const rte_mempool* mempool : mempools_)
    if (mempool) sum += not_free(mempool);
  return sum;
}

rte_mempool* Pool::mempool_for(std::uint32_t bytes) const {
  for (unsigned i = 0; i < kClasses; i++)
    if (bytes <= kRoomBytes[i] && mempools_[i]) return mempools_[i];
  return mempools_[kClasses - 1];
}

}  // namespace rocebox
