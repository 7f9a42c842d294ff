// SPDX-License-Identifier: BSD-3-Clause
// EthPort: one port of DPDK in a live run.
#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/drives/live/live_port.h"
#include "runtime/drives/live/ring_pairs.h"

namespace rocebox {

/// A port of DPDK, from what was written for it to queues that packets come from.
class EthPort final : public LivePort {
 public:
  /// Attaches the port; `serial` makes its name unique. Throws ConfigError with the place, the cause and the mend.
  EthPort(const config::LiveBinding& binding, const std::string& by, unsigned serial, RingPairs& rings);
  ~EthPort() override;

  LivePortAbility ability() const override { return ability_; }
  std::uint64_t packets_needed(unsigned queues) const override;
  void set_up(unsigned queues, unsigned hash_entries, Pool& pool) override;
  void start() override;
  unsigned receive(unsigned queue, std::span<Packet> room) override;
  Sent send(unsigned queue, std::span<Packet> packets) override;
  int eth_port() const override { return is_tap() ? -1 : id_; }
  bool takes_shared() const override { return takes_shared_; }
  int wake_descriptor(unsigned queue) override;
  void wake_on(unsigned queue, bool on) override;
  LivePortCounts counts() const override;
  LinkState link() const override;
  LinkState look() override;
  int interface_index() const override { return index_; }
  std::uint32_t mtu() const override { return mtu_; }

 private:
  bool is_tap() const { return binding_.live.kind == config::PortKind::kTap; }
  void attach(unsigned serial, RingPairs& rings);
  void check_permission() const;
  void probe(const std::string& devargs, const std::string& name);
  void find_ability();
  void configure(unsigned queues, bool spread, std::uint16_t mtu);
  void set_up_queues(unsigned queues, std::uint16_t mtu, Pool& pool);
  void spread_over(unsigned queues, unsigned hash_entries);

  std::uint16_t id_ = 0;
  int index_ = -1;                 // of AF_XDP: the interface
  std::atomic<int> tap_{-1};       // of a TAP: a queue of it
  std::atomic<bool> is_up_{true};  // as the last look found it
  std::uint32_t mtu_ = 0;          // of kinds whose frames are bounded by it
  std::uint16_t mtu_before_ = 0;   // of an interface that a run which does not start leaves as it was
  bool attached_ = false, started_ = false, interrupts_ = false, takes_shared_ = false;
  LivePortAbility ability_;
};

}  // namespace rocebox
