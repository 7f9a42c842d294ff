// SPDX-License-Identifier: BSD-3-Clause
// Exchange: hands packets between shards when ports cannot spread them by themselves.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/kernel/counter.h"
#include "runtime/packet/packet.h"

struct rte_ring;

namespace rocebox {

/// Every port has one queue, served by the shard port % shards. That shard sends each packet that arrives to the shard
/// which its addresses name, and sends out what the others hand it. One queue, one writer and one reader, for each
/// pair of shards, each port and each direction; full queues drop and count.
class Exchange {
 public:
  /// Throws ConfigError when there is no memory.
  Exchange(unsigned shards, std::size_t ports);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  unsigned shards() const { return shards_; }
  unsigned owner(std::size_t port) const { return static_cast<unsigned>(port % shards_); }

  enum class Way : std::uint8_t { kIn, kOut };
  /// From shard `from` to shard `to`; takes the packets over.
  void put(Way way, unsigned from, unsigned to, std::size_t port, std::span<Packet> packets);
  /// What waits for shard `to` from shard `from`, up to the room given.
  unsigned take(Way way, unsigned from, unsigned to, std::size_t port, std::span<Packet> room);

  /// Packets dropped because a queue was full.
  std::uint64_t full() const;

 private:
  std::size_t index(Way way, unsigned from, unsigned to, std::size_t port) const {
    return ((static_cast<std::size_t>(way) * shards_ + from) * shards_ + to) * ports_ + port;
  }
  unsigned shards_;
  std::size_t ports_;
  std::vector<rte_ring*> rings_;
  std::vector<Counter> full_;  // by writer
};

/// The shard of `shards` that a frame belongs to: a hash of both IP addresses, the same in both directions, so that a
/// QP's data and its ACKs meet; 0 for what is not IP.
unsigned shard_of(Packet packet, unsigned shards);

}  // namespace rocebox
