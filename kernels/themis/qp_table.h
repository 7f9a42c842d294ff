// SPDX-License-Identifier: BSD-3-Clause
// QpTable: the two directions of each connection, as ingress matches them, and as egress reads them by number.
#pragma once
#include <array>
#include <cstring>

#include "kernels/themis/destination.h"
#include "runtime/flows/pairing.h"
#include "switch_model/tables/exact_table.h"
#include "switch_model/tables/index_table.h"

namespace rocebox::themis {

using flows::DirectionKey;
using switch_model::kMiss;

/// A DirectionKey as the match table has it: what tells IPv4's apart comes first, so that little of it is looked at.
struct QpKey {
  std::uint64_t near;    ///< IPv4: both addresses; IPv6: the last four bytes of each
  std::uint32_t qp;      ///< destination QP; of IPv6 with kIpv6
  std::uint32_t far[7];  ///< IPv6: the first twelve bytes of each, and 0; IPv4: 0

  static constexpr std::uint32_t kIpv6 = 1u << 24;
  static constexpr unsigned kBits = 128 + 128 + 24;

  /// Writes the key of an RC packet that goes to this QP.
  void read(Packet packet, std::uint32_t destination_qp) {
    if (packet.meta().ip_version != 4) [[unlikely]] {
      *this = of({roce::addresses(packet), destination_qp});
      return;
    }
    std::memcpy(&near, packet.data() + packet.meta().l3_offset + offsetof(roce::Ipv4, source), sizeof near);
    qp = destination_qp;
    std::memset(far, 0, sizeof far);
  }
  static QpKey of(const DirectionKey& direction) {
    const auto& [source, destination] = direction.addresses;
    QpKey key{0, direction.destination_qp, {}};
    std::memcpy(&key.near, &source[12], 4);
    std::memcpy(reinterpret_cast<std::uint8_t*>(&key.near) + 4, &destination[12], 4);
    if (is_mapped(source) && is_mapped(destination)) return key;
    key.qp |= kIpv6;
    std::memcpy(key.far, source.data(), 12);
    std::memcpy(key.far + 3, destination.data(), 12);
    return key;
  }

  std::uint32_t hash() const {
    const std::uint32_t hash = switch_model::key_hash(&near, sizeof near + sizeof qp);
    return qp & kIpv6 ? switch_model::key_hash(far, sizeof far, hash) : hash;
  }
  bool same_as(const QpKey& other) const {
    if (near != other.near || qp != other.qp) return false;
    return !(qp & kIpv6) || std::memcmp(far, other.far, sizeof far) == 0;
  }

 private:
  static bool is_mapped(const std::array<std::uint8_t, 16>& address) {
    constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
    return std::memcmp(address.data(), kMapped, sizeof kMapped) == 0;
  }
};

/// By port, kNoPort too: whether it leads to a NIC of this rack.
using HostPorts = std::array<bool, 256>;

/// One direction of a connection, in both controls. `outbound`: from the NIC in this rack.
struct QpEntry {
  std::uint32_t connection;  ///< number in the control plane
  std::uint32_t generation;  ///< of the connection: none has that of another one; 0: there is none
  Slot slot;                 ///< of Themis-S and Themis-D alike
  Port port;                 ///< of the NIC in this rack
  std::uint8_t pipe;         ///< of that port: where its registers are
  std::uint16_t path_mtu;    ///< bytes; 0: not seen yet
  bool outbound;
  bool begun;    ///< inbound: Themis-D has its first PSN
  bool watched;  ///< the control plane looks at each packet: whether the pair is right, or where its NIC is

  // What a chip's action data have of it: numbers and generation, slot and origin, port, pipe, path MTU, flags. In
  // ingress the number of the row comes with the connection's and the direction.
  static constexpr unsigned kBits = 32 + 32 + (32 + 24) + 9 + 2 + 16 + 3;
};

/// Of the ingress control.
using QpTable = switch_model::ExactTable<QpKey, QpEntry>;
/// Of the egress control, by the entry of QpTable, which packets bring along.
struct alignas(32) QpRow : QpEntry {};  // in one cache line
using QpIndex = switch_model::IndexTable<QpRow>;

}  // namespace rocebox::themis
