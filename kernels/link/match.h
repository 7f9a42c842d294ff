// SPDX-License-Identifier: BSD-3-Clause
// Which packets a fault may befall: by QP, addresses, opcode and kind of packet.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/component/fields.h"
#include "runtime/roce/address.h"
#include "runtime/roce/parse.h"

namespace rocebox::link {

/// Kinds of RoCE packets as bits; every known opcode has one beside kAnyRoce.
enum Kind : std::uint16_t {
  kAnyRoce = 1 << 0,  ///< BTH can be read
  kData = 1 << 1,     ///< SEND and WRITE requests, UD included
  kReadRequest = 1 << 2,
  kReadResponse = 1 << 3,
  kAtomic = 1 << 4,  ///< CmpSwap and FetchAdd
  kAtomicAck = 1 << 5,
  kAck = 1 << 6,  ///< Acknowledge whose AETH is an ACK
  kNak = 1 << 7,
  kRnrNak = 1 << 8,
  kCnp = 1 << 9,
};

/// What is written: conditions that must all hold. One that is not written holds for every packet.
struct Match {
  std::int64_t qpn = -1;          ///< destination QP; -1: any
  std::int64_t opcode = -1;       ///< of BTH; -1: any
  std::vector<std::string> kind;  ///< any of these words; empty: any packet
  std::optional<roce::IpAddress> source, destination;

  bool any() const { return qpn < 0 && opcode < 0 && kind.empty() && !source && !destination; }
  /// The words of `kind` as bits; 0 when there are none.
  std::uint16_t kinds() const;
  bool operator==(const Match&) const = default;
  void fields(Fields& fields);
};

/// What conditions look at, read once a packet.
struct Facts {
  std::uint32_t qpn = 0, psn = 0;
  std::uint16_t kinds = 0;  ///< bits of Kind
  std::uint8_t opcode = 0;
  bool has_bth = false, has_qpn_and_psn = false, has_addresses = false, is_request = false;
  roce::Addresses addresses{};
};
Facts facts_of(Packet packet);

/// A Match made ready for packets.
class Matcher {
 public:
  explicit Matcher(const Match& match);
  bool on() const { return on_; }
  bool matches(const Facts& facts) const {
    if (reads_bth_ && !bth_matches(facts)) return false;
    return !reads_addresses_ || addresses_match(facts);
  }
  bool addresses_match(const Facts& facts) const;

 private:
  bool bth_matches(const Facts& facts) const;

  std::int64_t qpn_, opcode_;
  std::uint16_t kinds_;
  bool reads_bth_, reads_addresses_, on_;
  std::optional<roce::IpAddress> source_, destination_;
};

}  // namespace rocebox::link
