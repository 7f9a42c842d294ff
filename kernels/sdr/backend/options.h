// SPDX-License-Identifier: BSD-3-Clause
// How a queue pair of SDR is made, and what both ends of it tell each other out of band (3.2.2).
#pragma once
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/sdr/limits.h"
#include "kernels/sdr/messages/immediate.h"
#include "nic_model/host/workloads/recovery_options.h"
#include "runtime/roce/address.h"

namespace rocebox::sdr {

struct QueuePairOptions {
  ImmediateLayout layout{};
  std::uint32_t mtu = 4096;                 ///< bytes of a packet
  std::uint32_t packets_a_chunk = 1;        ///< a power of two
  std::uint32_t slots = 1024;               ///< message IDs; a power of two, at most layout.messages()
  std::uint64_t message_bytes = 16u << 20;  ///< of the longest message; a multiple of the MTU
  std::uint32_t channels = 1;
  std::uint32_t generations = 4;   ///< a power of two
  std::uint32_t root_keys = 4;     ///< a power of two: payload of late packets is kept out for as many rounds
  std::uint32_t root_entries = 1;  ///< entries of a root key, in multiples of `slots`; a power of two
  bool unreliable = true;          ///< over UC; else over RC
  bool rnr_retry = true;           ///< of RC: a receiver without a receive request is tried again without end
  std::uint32_t send_batch = 16;   ///< WQEs for one doorbell and one completion
  std::uint32_t rate_limit = 0;    ///< kbit/s of the whole queue pair; 0: none
  std::uint8_t ack_timeout = 14;   ///< of RC, the control connection included: 4.096 us times 2 to that
  /// Of the same. Both ends must recover alike, which their info does not tell.
  nic_model::RecoveryOptions recovery{};

  std::uint32_t packets_max() const { return static_cast<std::uint32_t>(message_bytes / mtu); }
  std::uint32_t chunks_max() const { return (packets_max() + packets_a_chunk - 1) / packets_a_chunk; }
  std::uint64_t chunk_bytes() const { return std::uint64_t{mtu} * packets_a_chunk; }
  std::uint32_t transports() const { return channels * generations; }
  /// Entries of one root key.
  std::uint32_t entries() const { return slots * root_entries; }
  std::uint32_t slot_of(std::uint64_t number) const { return static_cast<std::uint32_t>(number % slots); }
  std::uint32_t generation_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number / slots) & (generations - 1);
  }
  std::uint32_t entry_of(std::uint64_t number) const { return static_cast<std::uint32_t>(number % entries()); }
  std::uint32_t root_of(std::uint64_t number) const {
    return static_cast<std::uint32_t>(number / entries()) & (root_keys - 1);
  }
  /// What is wrong with it, for people; empty: nothing.
  std::string mistake() const;
  bool operator==(const QueuePairOptions&) const = default;
};

/// What a peer must know; in bytes, all numbers in network byte order:
///
///     0   "SDR2"
///     4   total length
///     8   IP address (16 bytes; IPv4 as ::ffff:a.b.c.d)
///     24  message bits, offset bits, fragment bits, 1: UC
///     28  MTU; 32 packets a chunk; 36 slots; 40 bytes of the longest message (8 bytes)
///     48  channels; 52 generations; 56 root keys; 60 entries of a root key, in multiples of the slots
///     64  queue pair of the control connection; 68 that of control datagrams
///     72  the first PSN that each of this end's queue pairs sends, the transports' too
///     76  root keys (4 bytes each), then transport queue pairs: those of generation 0 by channel, then generation 1,
///     ...
struct QueuePairInfo {
  static constexpr std::array<std::uint8_t, 4> kMagic{'S', 'D', 'R', '2'};
  roce::IpAddress address{};
  QueuePairOptions options{};
  std::uint32_t control_qpn = 0, datagram_qpn = 0;
  std::uint32_t psn = 0;
  std::vector<std::uint32_t> root_keys, qpns;

  static std::size_t bytes(const QueuePairOptions& options);
  std::vector<std::uint8_t> encode() const;
  /// Empty: that is no such thing.
  static std::optional<QueuePairInfo> decode(std::span<const std::uint8_t> bytes);
  /// Why bytes that begin so, of which there are at least 8, are none, for people; empty: they are one of `length`
  /// bytes.
  static std::string mistake_of(const std::uint8_t* bytes, std::size_t& length);
  /// Why an end that has `own` cannot be connected to this one, for people; empty: it can.
  std::string mismatch(const QueuePairOptions& own) const;
};

}  // namespace rocebox::sdr
