// SPDX-License-Identifier: BSD-3-Clause
// Packet sequence numbers: arithmetic modulo 2^24 (IB specification, volume 1, 9.7.2).
#pragma once
#include <algorithm>
#include <cstdint>

namespace rocebox::roce {

inline constexpr std::uint32_t kPsnModulus = 1u << 24;
inline constexpr std::uint32_t kPsnMask = kPsnModulus - 1;

/// psn + n, wrapped; n may be negative.
constexpr std::uint32_t psn_add(std::uint32_t psn, std::int64_t n) {
  return static_cast<std::uint32_t>(psn + n) & kPsnMask;
}

/// The signed distance a - b, from -2^23 to 2^23 - 1: positive when a is after b.
constexpr std::int32_t psn_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>((a - b) << 8) >> 8;
}

constexpr bool psn_before(std::uint32_t a, std::uint32_t b) { return psn_distance(a, b) < 0; }
constexpr bool psn_after(std::uint32_t a, std::uint32_t b) { return psn_distance(a, b) > 0; }

/// Whether psn lies in the `count` numbers that begin with first.
constexpr bool psn_in_window(std::uint32_t psn, std::uint32_t first, std::uint32_t count) {
  return ((psn - first) & kPsnMask) < count;
}

/// The PSNs that a READ of `bytes` takes; half the PSN space at most, whatever the length field says.
constexpr std::uint32_t read_psns(std::uint32_t bytes, std::uint32_t path_mtu) {
  return std::clamp(bytes / path_mtu + (bytes % path_mtu != 0), 1u, kPsnModulus / 2);
}

}  // namespace rocebox::roce
