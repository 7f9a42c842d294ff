// SPDX-License-Identifier: BSD-3-Clause
// SoftwareRss: receive-side scaling for ports that cannot do it: hands packets between shards.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel/counter.h"
#include "runtime/limits.h"
#include "runtime/packet/packet.h"

struct rte_ring;

namespace rocebox {

/// Every port has one queue, served by the shard port % shards, its owner. The owner sends each packet that arrives to
/// the shard which its addresses name, and sends out what the others hand it. For each port and each shard there is one
/// queue each way, with one writer and one reader; full queues drop and count.
class SoftwareRss {
 public:
  /// Whether shards that find nothing sleep until they are woken. Those that do not cost nobody a fence.
  enum class Readers : std::uint8_t { kAwake, kSleep };
  /// Throws ConfigError when there is no memory.
  SoftwareRss(unsigned shards, std::size_t ports, Readers readers = Readers::kAwake);
  ~SoftwareRss();
  SoftwareRss(const SoftwareRss&) = delete;
  SoftwareRss& operator=(const SoftwareRss&) = delete;

  unsigned shards() const { return shards_; }
  unsigned owner(std::size_t port) const { return static_cast<unsigned>(port % shards_); }

  /// In: from the owner of a port to a shard. Out: from a shard to the owner of a port.
  enum class Direction : std::uint8_t { kIn, kOut };
  /// Takes the packets over.
  void put(Direction direction, std::size_t port, unsigned shard, std::span<Packet> packets);
  /// What waits, up to the room given.
  unsigned take(Direction direction, std::size_t port, unsigned shard, std::span<Packet> room);
  /// Whether two bursts fit.
  bool has_room(Direction direction, std::size_t port, unsigned shard) const;

  /// What a shard calls behind its put()s, once in each of its loops: those of their readers that sleep wake.
  void wake_readers(unsigned writer) {
    if (writers_[writer].has_put != 0) wake_sleeping(writer);
  }
  /// A descriptor that becomes readable when wake_readers() was called for shard `reader` while sleep_on() held; -1:
  /// readers do not sleep, or the system has none to give.
  int wake_descriptor(unsigned reader) const { return readers_[reader].event; }
  /// Shard `reader` is about to sleep, and looks at its queues once more behind this; or it has woken.
  void sleep_on(unsigned reader, bool on);

  /// The end of a run: a shard says that it puts nothing more in that direction.
  void close(Direction direction) { closed_[static_cast<unsigned>(direction)].fetch_add(1, std::memory_order_release); }
  /// Whether all shards have said so.
  bool closed(Direction direction) const {
    return closed_[static_cast<unsigned>(direction)].load(std::memory_order_acquire) == shards_;
  }
  /// Whether nothing waits for shard `reader`.
  bool empty(Direction direction, unsigned reader) const;

  /// Packets dropped because a queue was full.
  std::uint64_t full() const;

 private:
  rte_ring* ring(Direction direction, std::size_t port, unsigned shard) const {
    return rings_[(static_cast<std::size_t>(direction) * ports_ + port) * shards_ + shard];
  }
  unsigned reader(Direction direction, std::size_t port, unsigned shard) const {
    return direction == Direction::kIn ? shard : owner(port);
  }
  void wake_sleeping(unsigned writer);

  struct alignas(64) Writer {
    std::uint32_t has_put = 0;  // a bit for each shard that was handed something, and perhaps sleeps
  };
  struct alignas(64) Reader {
    int event = -1;
    std::atomic<bool> sleeps{false};
  };
  static_assert(kShardsMax <= 32);

  unsigned shards_;
  std::size_t ports_;
  const bool readers_sleep_;
  std::vector<Writer> writers_;
  std::vector<Reader> readers_;
  std::vector<rte_ring*> rings_;
  std::vector<Counter> full_;  // by writer
  std::atomic<unsigned> closed_[2] = {};
};

/// The shard of `shards` that a frame belongs to: a hash of both IP addresses, the same in both directions, so that a
/// QP's data and its ACKs meet; 0 for what is not IP.
unsigned shard_of(Packet packet, unsigned shards);

}  // namespace rocebox
