// SPDX-License-Identifier: BSD-3-Clause
// The bare cost of LoWAR: the CRCs and XORs that it cannot do without, by ISA-L, over the same packets and over as many
// coding units, which are bound, filled and freed in the same order.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/flows/flow_table.h"
#include "runtime/packet/packet.h"

namespace rocebox::bench {

/// A packet as the yardstick sees it.
struct Covered {
  static constexpr std::uint32_t kRepair = 0xFFFFFFFF;
  const std::uint8_t* ip;
  std::uint32_t bytes;      ///< from the IP header to the ICRC
  std::uint32_t transport;  ///< bytes before the BTH
  std::uint32_t stream;     ///< number of the data packet's stream; kRepair: a repair packet
};

class IsalYardstick {
 public:
  /// LoWAR(r, c) for so many streams with `units` units of `unit_bytes`.
  IsalYardstick(unsigned r, unsigned c, std::size_t streams, std::size_t units, std::size_t unit_bytes);
  /// CRC and XOR of data packets, and the CRCs of the repair packets that they make.
  void encode(std::span<const Covered> packets);
  /// CRC and XOR of data packets, CRC of the repair packets between them.
  void decode(std::span<const Covered> packets);
  std::uint32_t sum() const { return sum_; }

 private:
  struct Stream {
    unsigned packets = 0;
    std::vector<std::uint32_t> units;
  };
  bool add(const Covered& packet);
  void end_block(Stream& stream, std::uint32_t crc_bytes);
  std::uint8_t* unit(std::uint32_t number) { return data_.data() + number * stride_; }
  void crc(const std::uint8_t* bytes, std::size_t count);

  unsigned r_, c_;
  std::size_t stride_, head_ = 0, tail_ = 0;
  std::vector<Stream> streams_;
  std::vector<std::uint32_t> queue_;  // a ring of the free units
  flows::ZeroedArray<std::uint8_t> data_;
  std::uint32_t sum_ = 0;
};

}  // namespace rocebox::bench
