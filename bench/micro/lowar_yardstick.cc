// SPDX-License-Identifier: BSD-3-Clause
#include "bench/micro/lowar_yardstick.h"

#include <isa-l.h>

#include <cstring>

#include "runtime/packet/wide_vectors.h"

namespace rocebox::bench {

IsalYardstick::IsalYardstick(unsigned r, unsigned c, std::size_t streams, std::size_t units, std::size_t unit_bytes)
    : r_(r),
      c_(c),
      stride_((unit_bytes + 127) / 64 * 64),
      streams_(streams),
      queue_(units),
      data_(stride_ * units, flows::Pages::kHuge) {
  for (std::size_t i = 0; i < units; i++) queue_[i] = static_cast<std::uint32_t>(i);
  for (Stream& stream : streams_) stream.units.resize(c);
}

void IsalYardstick::crc(const std::uint8_t* bytes, std::size_t count) {
  sum_ ^= crc32_gzip_refl(0, bytes, count);
  leave_wide_vectors();
}

// True when that ends a block.
bool IsalYardstick::add(const Covered& packet) {
  constexpr std::size_t kVector = 32;  // what xor_gen's lengths are multiples of
  crc(packet.ip, packet.bytes);
  Stream& stream = streams_[packet.stream];
  std::uint32_t& number = stream.units[stream.packets % c_];
  const std::uint8_t* bth = packet.ip + packet.transport;
  const std::size_t count = (packet.bytes - packet.transport) / kVector * kVector;
  if (stream.packets < c_) {
    number = queue_[head_];
    head_ = head_ + 1 == queue_.size() ? 0 : head_ + 1;
    std::memcpy(unit(number), bth, count);
  } else {
    // Where it is made for AVX2, xor_gen takes vectors at multiples of their size only: from the border before BTH,
    // then.
    const std::uint8_t* aligned = bth - reinterpret_cast<std::uintptr_t>(bth) % kVector;
    void* vectors[] = {const_cast<std::uint8_t*>(aligned), unit(number), unit(number)};
    xor_gen(3, static_cast<int>(count), vectors);
  }
  return ++stream.packets == r_;
}

void IsalYardstick::end_block(Stream& stream, std::uint32_t crc_bytes) {
  for (const std::uint32_t number : stream.units) {
    if (crc_bytes) crc(unit(number), crc_bytes);
    queue_[tail_] = number;
    tail_ = tail_ + 1 == queue_.size() ? 0 : tail_ + 1;
  }
  stream.packets = 0;
}

void IsalYardstick::encode(std::span<const Covered> packets) {
  constexpr std::uint32_t kRepairHeader = 36;  // LoWAR's header and the coded prefix
  for (const Covered& packet : packets)
    if (add(packet)) end_block(streams_[packet.stream], packet.bytes + kRepairHeader);
}

void IsalYardstick::decode(std::span<const Covered> packets) {
  for (const Covered& packet : packets) {
    if (packet.stream == Covered::kRepair)
      crc(packet.ip, packet.bytes);
    else if (add(packet))
      end_block(streams_[packet.stream], 0);
  }
}

}  // namespace rocebox::bench
