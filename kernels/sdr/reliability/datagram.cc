// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sdr/reliability/datagram.h"

#include <algorithm>

namespace rocebox::sdr {
namespace {

constexpr std::size_t kHeadBytes = 24;

void put(std::vector<std::uint8_t>& to, std::size_t at, std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) to[at + i] = static_cast<std::uint8_t>(value >> 8 * (bytes - 1 - i));
}

std::uint64_t get(std::span<const std::uint8_t> from, std::size_t at, unsigned bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value = value << 8 | from[at + i];
  return value;
}

}  // namespace

std::vector<std::uint8_t> encode(const Datagram& d, std::uint32_t submessages) {
  const bool acks = d.kind == Datagram::Kind::kAck;
  const std::uint32_t bits = acks ? d.ack.bits : d.kind == Datagram::Kind::kNack ? submessages : 0;
  std::vector<std::uint8_t> to(kHeadBytes + (bits + 7) / 8);
  to[0] = static_cast<std::uint8_t>(d.kind);
  put(to, 4, bits, 4);
  put(to, 8, d.part, 8);
  if (acks) {
    put(to, 16, d.ack.cumulative, 4);
    put(to, 20, d.ack.missing_below, 4);
    for (std::size_t i = 0; i < (bits + 7) / 8; i++)
      to[kHeadBytes + i] = static_cast<std::uint8_t>(d.ack.selective[i / 8] >> i % 8 * 8);
  }
  for (const std::uint32_t one : d.failed)
    if (one < bits) to[kHeadBytes + one / 8] = static_cast<std::uint8_t>(to[kHeadBytes + one / 8] | 1u << one % 8);
  return to;
}

std::optional<Datagram> decode(std::span<const std::uint8_t> from) {
  if (from.size() < kHeadBytes || from[0] < 1 || from[0] > 4) return {};
  Datagram d{static_cast<Datagram::Kind>(from[0]), get(from, 8, 8)};
  const auto bits = static_cast<std::uint32_t>(get(from, 4, 4));
  if (bits > kNackBits || from.size() < kHeadBytes + (bits + 7) / 8) return {};
  const auto has = [&](std::uint32_t bit) { return from[kHeadBytes + bit / 8] >> bit % 8 & 1; };
  if (d.kind == Datagram::Kind::kAck) {
    d.ack.cumulative = static_cast<std::uint32_t>(get(from, 16, 4));
    d.ack.missing_below = static_cast<std::uint32_t>(get(from, 20, 4));
    d.ack.bits = std::min(bits, kSelectiveBits);
    for (std::uint32_t bit = 0; bit < d.ack.bits; bit++)
      if (has(bit)) d.ack.selective[bit / 64] |= std::uint64_t{1} << bit % 64;
  } else if (d.kind == Datagram::Kind::kNack) {
    for (std::uint32_t bit = 0; bit < bits; bit++)
      if (has(bit)) d.failed.push_back(bit);
  }
  return d;
}

}  // namespace rocebox::sdr
