// SPDX-License-Identifier: BSD-3-Clause
// LivePort: where packets of a live run come from and go to, as a shard sees it.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/config/config.h"
#include "runtime/drives/live/link_log.h"
#include "runtime/packet/pool.h"
#include "runtime/telemetry/json_report.h"

namespace rocebox {

/// What a port can do that a run makes use of.
struct LivePortAbility {
  unsigned queues = 1;        ///< receive and transmit queues that it can have
  unsigned hash_entries = 0;  ///< of its indirection table, when it can spread packets by a key of ours; else 0
};

/// What the port's driver counted, from the start of the run.
struct LivePortCounts {
  std::uint64_t rx_missed = 0;     ///< arrived while the receive queue was full
  std::uint64_t rx_errors = 0;     ///< arrived damaged
  std::uint64_t rx_no_packet = 0;  ///< arrived while the pool was dry
  std::uint64_t rx_other_mac = 0;  ///< for another MAC address, and the port is not promiscuous
  std::uint64_t tx_errors = 0;     ///< taken over and not sent, by the driver's word; beside what send() tells
};

/// Calls are for a burst, never for a packet. receive() and send() of one queue belong to one core; the rest is called
/// from outside.
class LivePort {
 public:
  /// What became of a burst: packets that are the port's, and how many of those could not be sent and are freed.
  struct Sent {
    unsigned taken = 0, failed = 0;
  };

  /// `by`: who binds it, for messages.
  LivePort(const config::LiveBinding& binding, std::string by) : binding_(binding), by_(std::move(by)) {}
  virtual ~LivePort() = default;
  LivePort(const LivePort&) = delete;
  LivePort& operator=(const LivePort&) = delete;

  virtual LivePortAbility ability() const = 0;
  /// Packets of the pool that the port and what waits for it can hold with so many queues each way.
  virtual std::uint64_t packets_needed(unsigned queues) const = 0;
  /// Sets up `queues` queues each way. `hash_entries` is 0, or how many entries of the indirection table count, which
  /// spread packets over the queues by both IP addresses, the same in both directions. Throws ConfigError.
  virtual void set_up(unsigned queues, unsigned hash_entries, Pool& pool) = 0;
  /// Packets flow from now on. Throws ConfigError.
  virtual void start() = 0;

  /// Takes up to room.size() packets that have arrived.
  virtual unsigned receive(unsigned queue, std::span<Packet> room) = 0;
  /// Takes over as many packets as fit, from the first on.
  virtual Sent send(unsigned queue, std::span<Packet> packets) = 0;
  /// The port's number in DPDK, where receive() and send() are its bursts and nothing more; -1: they are more.
  virtual int eth_port() const { return -1; }
  /// Whether receive() fills the packets' metadata (wire_bytes and what the host left undone).
  virtual bool fills_metadata() const { return false; }

  /// Whether packets may come with what their host left to hardware (PacketMeta::offload).
  virtual bool brings_offload() const { return false; }
  /// Whether send() only reads packets' bytes, wherever they lie: they may then be other packets', too.
  virtual bool takes_shared() const { return false; }

  /// When the next packet is to be received, as far as that is known; INT64_MAX: it is not.
  virtual Nanos next_due() const { return INT64_MAX; }
  /// Whether packets that are not received now lose nothing by waiting.
  virtual bool tolerates_waiting() const { return false; }

  /// A descriptor that becomes readable when packets arrive while wake_on() holds; -1: there is none.
  virtual int wake_descriptor(unsigned /*queue*/) { return -1; }
  virtual void wake_on(unsigned /*queue*/, bool /*on*/) {}

  virtual LivePortCounts counts() const = 0;
  virtual LinkState link() const = 0;
  /// The same, with what there is to do about it: an interface that is there again is taken up again. On one thread.
  virtual LinkState look() { return link(); }
  /// Of the interface that it is bound to now, in this process' network namespace; -1: there is none.
  virtual int interface_index() const { return -1; }
  /// Whether look() takes up an interface that went away and came back.
  virtual bool returns() const { return false; }
  /// Bytes of an Ethernet frame's payload that it carries, after set_up(); 0: no limit that is known.
  virtual std::uint32_t mtu() const { return 0; }
  /// Adds what only this kind of port has to tell.
  virtual void add_to(Json& /*row*/) const {}

  const config::PortName& port() const { return binding_.port; }
  const config::LivePortOptions& settings() const { return binding_.live; }
  virtual std::string text() const { return binding_.live.text(); }
  config::Place place() const { return binding_.place; }
  /// Throws ConfigError with the port's place.
  [[noreturn]] void refuse(const std::string& why) const;

 protected:
  config::LiveBinding binding_;

 private:
  std::string by_;
};

}  // namespace rocebox
