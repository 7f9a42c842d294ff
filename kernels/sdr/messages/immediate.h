// SPDX-License-Identifier: BSD-3-Clause
// The 32 bits of immediate data that each SDR packet carries (3.2.4), and the user's own immediate in fragments of it.
#pragma once
#include <algorithm>
#include <cstdint>

namespace rocebox::sdr {

/// What the immediate of a packet says.
struct Immediate {
  std::uint32_t message;   ///< ID of the message: its slot
  std::uint32_t offset;    ///< of the packet in the message, in packets
  std::uint32_t fragment;  ///< of the user's immediate
};

/// How the 32 bits are split; on the wire they are in network byte order, the message ID in the highest bits:
///
///     31        22 21                    4 3    0
///     | message   | packet offset        | frag |     the split 10 + 18 + 4
///
/// Fragment f of the user's immediate, its bits [f b, f b + b) for b bits a fragment, goes with each packet whose
/// offset is f modulo 32 / b.
struct ImmediateLayout {
  unsigned message_bits = 10, offset_bits = 18, fragment_bits = 4;
  constexpr bool operator==(const ImmediateLayout&) const = default;

  /// All 32 bits are taken, there is an ID and an offset, and fragments (if any) make up 32 bits.
  constexpr bool valid() const {
    return message_bits >= 1 && offset_bits >= 1 && message_bits <= 31 && offset_bits <= 31 &&
           message_bits + offset_bits + fragment_bits == 32 && (fragment_bits == 0 || 32 % fragment_bits == 0);
  }
  constexpr std::uint32_t messages() const { return 1u << message_bits; }
  constexpr std::uint32_t packets_max() const { return 1u << offset_bits; }
  /// Into how many fragments the user's immediate is cut; 0: it has no room.
  constexpr unsigned fragments() const { return fragment_bits == 0 ? 0 : 32 / fragment_bits; }

  constexpr std::uint32_t pack(const Immediate& parts) const {
    return parts.message << (32 - message_bits) | parts.offset << fragment_bits | parts.fragment;
  }
  constexpr Immediate unpack(std::uint32_t word) const {
    return {word >> (32 - message_bits), word >> fragment_bits & (packets_max() - 1),
            word & ((1u << fragment_bits) - 1)};
  }
  /// The fragment that goes with a packet; fragments() is not 0.
  constexpr std::uint32_t fragment_of(std::uint32_t user, std::uint32_t offset) const {
    return user >> (offset % fragments() * fragment_bits) & ((1u << fragment_bits) - 1);
  }
};

/// The Writes of one message, one a packet (3.2.4).
class MessageWrites {
 public:
  struct Write {
    std::uint64_t offset;  ///< in the message, in bytes; where nothing is written: 0
    std::uint32_t bytes;   ///< 0: it only carries a fragment
    std::uint32_t immediate;
  };

  /// `bytes` is at least 1. With `user`, and where the split has room for it, the user's immediate goes along, and a
  /// message of fewer packets than there are fragments has empty Writes behind them for the rest.
  MessageWrites(const ImmediateLayout& layout, std::uint32_t mtu, std::uint32_t message, std::uint64_t bytes,
                const std::uint32_t* user)
      : layout_(layout),
        bytes_(bytes),
        mtu_(mtu),
        message_(message),
        user_(user ? *user : 0),
        has_user_(user && layout.fragments() != 0) {
    packets_ = static_cast<std::uint32_t>((bytes + mtu - 1) / mtu);
  }

  std::uint32_t packets() const { return packets_; }
  std::uint32_t count() const { return has_user_ ? std::max(packets_, layout_.fragments()) : packets_; }
  Write write(std::uint32_t number) const {
    const bool empty = number >= packets_;
    const std::uint64_t at = empty ? 0 : std::uint64_t{number} * mtu_;
    return {at, empty ? 0 : static_cast<std::uint32_t>(std::min<std::uint64_t>(mtu_, bytes_ - at)),
            layout_.pack({message_, number, has_user_ ? layout_.fragment_of(user_, number) : 0})};
  }

 private:
  ImmediateLayout layout_;
  std::uint64_t bytes_;
  std::uint32_t mtu_, message_, packets_, user_;
  bool has_user_;
};

}  // namespace rocebox::sdr
