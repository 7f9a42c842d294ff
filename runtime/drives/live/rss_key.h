// SPDX-License-Identifier: BSD-3-Clause
// The key with which NICs spread packets over queues.
#pragma once
#include <array>
#include <cstdint>

namespace rocebox {

inline constexpr unsigned kRssKeyBytes = 52;  ///< the longest that drivers ask for; most use the first 40

/// A Toeplitz key of one repeated pair of bytes gives the same hash when source and destination change places
/// (Woo and Park, "Scalable TCP Session Monitoring with Symmetric Receive-side Scaling", 2012).
constexpr std::array<std::uint8_t, kRssKeyBytes> symmetric_rss_key() {
  std::array<std::uint8_t, kRssKeyBytes> key{};
  for (unsigned i = 0; i < kRssKeyBytes; i++) key[i] = i % 2 ? 0x5A : 0x6D;
  return key;
}

}  // namespace rocebox
