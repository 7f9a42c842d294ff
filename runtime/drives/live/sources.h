// SPDX-License-Identifier: BSD-3-Clause
// What a shard polls for packets and for its devices' hosts.
#pragma once
#include <array>

#include "runtime/drives/live/shard_devices.h"
#include "runtime/drives/live/source.h"

namespace rocebox {

/// Whether packets of the port get the checksums that its host has left unfinished.
inline bool finishes_checksums(const LivePort& port) {
  return port.settings().kind == config::PortKind::kAfXdp && port.settings().finish_checksums;
}

/// One receive queue of a port, captures included. Where ports cannot spread packets over shards, it deals them out to
/// all of them.
class PortSource final : public Source {
 public:
  /// Of the queue `queue` of port `number` of the run. `bare`: nothing looks at packets that can pass, their metadata
  /// included. `rss` may be null; the rest outlives this.
  PortSource(std::size_t number, unsigned queue, unsigned burst, bool bare, ShardDevices& devices,
             const TransmitQueues& queues, SoftwareRss* rss, ShardPortCounters& counters);

  bool poll(Nanos now) override;
  Nanos next_due() const override { return port_.next_due(); }
  int wake_descriptor() override { return port_.wake_descriptor(queue_); }
  void wake_on(bool on) override { port_.wake_on(queue_, on); }

 private:
  bool must_wait() const;
  unsigned prepare(std::span<Packet> packets);

  LivePort& port_;
  const std::size_t number_;
  const FabricPort to_;
  const unsigned queue_, burst_;
  const bool bare_;
  const bool fills_metadata_;    // or prepare() does
  const bool finish_checksums_;  // that a host has left unfinished
  const bool tolerates_waiting_;
  ShardDevices& devices_;
  const TransmitQueues& queues_;
  SoftwareRss* const rss_;
  ShardPortCounters& counters_;
  std::array<Packet, kBatchMax> room_;
};

/// What the owner of port `number` hands over to one shard.
class HandoverSource final : public Source {
 public:
  /// For shard `shard`. All outlive this.
  HandoverSource(std::size_t number, unsigned shard, unsigned burst, ShardDevices& devices,
                 const TransmitQueues& queues, SoftwareRss& rss);
  bool poll(Nanos now) override;
  /// One for all that is handed to the shard, packets that it sends out for others included. What waits for room, as it
  /// does where packets of some port can wait, is nothing that could wake a core.
  int wake_descriptor() override { return queues_.some_port_waits() ? -1 : rss_.wake_descriptor(shard_); }
  void wake_on(bool on) override { rss_.sleep_on(shard_, on); }

 private:
  const std::size_t number_;
  const FabricPort from_;
  const unsigned shard_, burst_;
  ShardDevices& devices_;
  const TransmitQueues& queues_;
  SoftwareRss& rss_;
  std::array<Packet, kBatchMax> room_;
};

/// The host behind device `number`: its doorbells.
class HostSource final : public Source {
 public:
  HostSource(unsigned number, HostSide& host, ShardDevices& devices)
      : number_(number), host_(host), devices_(devices) {}
  bool poll(Nanos) override {
    if (!host_.has_posted()) return false;
    devices_.wake(number_);
    return true;
  }
  int wake_descriptor() override { return host_.wake_descriptor(); }
  void wake_on(bool on) override { host_.wake_on(on); }

 private:
  const unsigned number_;
  HostSide& host_;
  ShardDevices& devices_;
};

}  // namespace rocebox
