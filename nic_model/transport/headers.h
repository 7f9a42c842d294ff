// SPDX-License-Identifier: BSD-3-Clause
// Headers: the layers below BTH of one path, written once; a packet then costs a copy and its own fields.
#pragma once
#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/packet/packet.h"
#include "runtime/roce/build.h"
#include "runtime/roce/opcodes.h"

namespace rocebox::nic_model {

/// What a packet says of itself.
struct PacketFields {
  std::uint8_t opcode = 0;
  bool ack_req = false, solicited_event = false;
  std::uint32_t psn = 0, destination_qp = 0;
  std::uint32_t payload_bytes = 0;
  std::uint16_t udp_source_port = 0;
};

class Headers {
 public:
  Headers() = default;
  /// Those of `underlay`, whose ICRC the NIC stores, or leaves to the port.
  explicit Headers(const roce::Underlay& underlay, std::uint16_t pkey = 0xFFFF);

  /// How long a packet is, without FCS.
  struct Length {
    std::uint32_t head;   ///< bytes before the payload
    std::uint32_t frame;  ///< all, with pad and ICRC
  };
  Length length(std::uint8_t opcode, std::uint32_t payload_bytes) const {
    const std::uint32_t head =
        bth_offset_ + std::uint32_t{sizeof(roce::Bth)} + roce::opcode_info(opcode).extension_bytes;
    return {head, head + ((payload_bytes + 3) & ~3u) + roce::kIcrcBytes};
  }
  /// Writes the headers up to BTH into a packet of length().frame bytes, or, where it has length().head and a digest
  /// alone, makes it one of which these are held. The extended headers' bytes are not written: what is there is
  /// undefined. Sets all metadata that parsing would. The packet's buffer has kRoomBytes at least.
  void write(Packet packet, const PacketFields& fields, const Length& length) const;
  static constexpr std::uint32_t kRoomBytes = 96;
  roce::Mac destination_mac() const {
    roce::Mac mac;
    std::memcpy(mac.data(), bytes_.data(), mac.size());
    return mac;
  }
  /// The extended headers of a packet that was written.
  static std::uint8_t* extension(Packet packet) { return packet.data() + packet.meta().bth_offset + sizeof(roce::Bth); }
  static std::uint8_t* payload(Packet packet) { return packet.data() + packet.meta().payload_offset; }

  /// Bytes behind the headers of a packet that has these alone: a digest in the place of its ICRC, which covers what
  /// that does of BTH and the extended headers.
  static constexpr std::uint32_t kDigestBytes = 4;
  static void store_digest(Packet packet) {
    const std::uint32_t value = digest(packet);
    std::memcpy(payload(packet), &value, kDigestBytes);
  }
  static bool digest_is_right(Packet packet) {
    std::uint32_t stored;
    if (packet.size() < packet.meta().payload_offset + kDigestBytes) return false;
    std::memcpy(&stored, payload(packet), kDigestBytes);
    return stored == digest(packet);
  }

 private:
  static std::uint32_t digest(Packet packet);

  static constexpr std::uint32_t kUsualBytes = 56;  // IPv4 without a VLAN tag: all is in one cache line
  static_assert(kUsualBytes >= 14 + 20 + 8 + 12 && kRoomBytes >= 14 + 2 * 4 + 40 + 8 + 12);

  std::uint32_t bytes_sum_ = 0;  // of the IPv4 header without its length
  std::uint8_t l3_offset_ = 0, bth_offset_ = 0;
  std::uint8_t ip_version_ = 4;
  alignas(8) std::array<std::uint8_t, kRoomBytes> bytes_{};
};

}  // namespace rocebox::nic_model
