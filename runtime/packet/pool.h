// SPDX-License-Identifier: BSD-3-Clause
// The packet pool of a run, in four size classes, sized at start.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/packet/packet.h"
#include "runtime/packet/reserved_memory.h"

struct rte_mempool;

namespace rocebox {

/// The most bytes of a packet of the class `headers`.
inline constexpr std::uint32_t kHeaderPacketBytes = 256;

/// How many packets of each size class a pool holds.
struct PoolSizes {
  std::uint32_t headers = 0;    ///< up to 256 bytes: headers alone, where simulated packets have no payload
  std::uint32_t small = 16384;  ///< up to 2 KiB: RoCE MTU 1024 and below, TCP at MTU 1500
  std::uint32_t large = 4096;   ///< up to 9.5 KiB: RoCE MTU 4096, jumbo frames
  std::uint32_t giant = 64;     ///< up to kPacketBytesMax: segmentation-offload super-packets in captures

  /// MiB of memory that EAL must be given for such a pool.
  std::uint64_t mebibytes() const;
  /// What of that is the packets' own, which EAL need not be given for PacketsInMemory::kAlone.
  std::uint64_t packet_mebibytes() const;
  /// Throws ConfigError when that is more than `available_bytes`: the kernel would end the process without a word.
  void require_memory(std::uint64_t available_bytes) const;
};

/// How packets lie in memory. Packed ones spread over the caches better, but may lie across pages of 4 KiB, which the
/// kernel does not allow where a NIC writes them by AF_XDP without copying. With hugepages there is no difference.
enum class PacketsInMemory : std::uint8_t {
  kPacked,
  kByPages,
  kAlone,  ///< packed, in memory that is not EAL's: in transparent huge pages where the kernel has some, and touched as
           ///< packets come to be needed at once. For runs of one thread without ports: some of these give EAL's memory
           ///< to another process
};

/// Owns the mempools. All packets must be back before it is destroyed.
class Pool {
 public:
  /// Needs a running EAL. Throws ConfigError when memory is short.
  explicit Pool(const PoolSizes& sizes, PacketsInMemory how = PacketsInMemory::kPacked);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A packet of `bytes` uninitialised bytes, fresh metadata with wire_bytes = bytes. Tries the next larger class
  /// when one is dry. Empty when none fits.
  PacketPtr allocate(std::uint32_t bytes);
  /// A deep copy with its metadata.
  PacketPtr copy(Packet packet);
  /// A packet with metadata of its own and the same bytes, which neither may write from now on: see own().
  PacketPtr share(Packet packet);
  /// Puts a copy in the place of a packet that shares its bytes. False, and nothing is changed, when the pool is dry.
  bool own(Packet& packet) { return !packet.is_shared() || replace(packet); }

  std::uint32_t in_use() const;
  /// The mempool that a port's queue receives into when its frames have up to `bytes` bytes.
  rte_mempool* mempool_for(std::uint32_t bytes) const;
  /// The most packets that were ever in use at once. Exact when one thread uses the pool.
  std::uint32_t in_use_max() const { return in_use_max_.load(std::memory_order_relaxed); }
  /// How often there was no packet to be had. Exact when one thread uses the pool.
  std::uint64_t dry() const { return dry_.load(std::memory_order_relaxed); }

 private:
  bool grow(unsigned size_class);
  void look();
  bool replace(Packet& packet);

  static constexpr unsigned kClasses = 4;
  rte_mempool* mempools_[kClasses] = {};  // null: a class without packets
  ReservedMemory own_[kClasses];          // of those that grow
  // Use grows by allocating only, so it cannot exceed the maximum before as many more packets were allocated as were
  // then missing to it: the count is looked at when they were, not for each packet.
  // Several threads may lose each other's steps: a look is then late, and nothing else.
  std::atomic<std::uint32_t> in_use_max_{0};
  std::atomic<std::int64_t> until_look_{1};
  std::atomic<std::uint64_t> dry_{0};
};

}  // namespace rocebox
