// SPDX-License-Identifier: BSD-3-Clause
// EthPort: one DPDK port of a run, from what was written for it to queues that packets come from.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/drives/live/ring_pairs.h"
#include "runtime/packet/pool.h"

namespace rocebox {

/// What the port's driver can do that a run makes use of.
struct EthPortAbility {
  unsigned queues = 1;        ///< receive and transmit queues that it can have
  unsigned hash_entries = 0;  ///< of its indirection table, when it can spread packets by a key of ours; else 0
  bool interrupts = false;    ///< a core can sleep until a packet arrives
};

class EthPort {
 public:
  /// Attaches the port; `serial` makes its name unique. Throws ConfigError with the place, the cause and the mend.
  EthPort(const config::LiveBinding& binding, const std::string& file, unsigned serial, RingPairs& rings);
  ~EthPort();
  EthPort(const EthPort&) = delete;
  EthPort& operator=(const EthPort&) = delete;

  const EthPortAbility& ability() const { return ability_; }

  /// Sets up `queues` queues each way; `hash_entries` is 0, or the number of entries of the indirection table in use,
  /// which spread packets over the queues by both IP addresses, the same in both directions. Throws ConfigError.
  void set_up(unsigned queues, unsigned hash_entries, Pool& pool);
  /// Packets flow from now on. Throws ConfigError.
  void start();

  std::uint16_t id() const { return id_; }
  unsigned queues() const { return queues_; }
  const config::PortName& port() const { return binding_.port; }
  const config::LivePort& settings() const { return binding_.live; }
  std::string text() const { return binding_.live.text(); }
  /// Checksums of what arrives may be unfinished: a host on this machine left them to hardware that is not there.
  bool checksums_unfinished() const;

 private:
  void attach(unsigned serial, RingPairs& rings);
  void probe(const std::string& devargs, const std::string& name);
  void find_ability();
  [[noreturn]] void refuse(const std::string& why) const;

  config::LiveBinding binding_;
  std::string file_;
  std::uint16_t id_ = 0;
  unsigned queues_ = 0;
  bool attached_ = false, started_ = false;
  EthPortAbility ability_;
};

}  // namespace rocebox
