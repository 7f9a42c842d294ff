// SPDX-License-Identifier: BSD-3-Clause
// ChunkWindow: which chunks of one stream have come. A chunk's bit is its number modulo the window, so that a stream
// may begin anywhere in the receive buffer; all chunks from the lowest to the highest are told apart.
#pragma once
#include <algorithm>
#include <cstdint>

namespace rocebox::allgather {

enum class ChunkFate : std::uint8_t { kNext, kSkips, kOutOfOrder, kDuplicate, kBeyondWindow };

/// Zero bytes when new. Its memory is the caller's: `window` / 64 words of zeros, `window` a power of two.
struct ChunkWindow {
  std::uint32_t lowest = 0, highest = 0;
  std::uint32_t count = 0;  ///< that have come

  /// `skipped`: with kSkips, how many were passed over.
  ChunkFate add(std::uint64_t* words, std::uint32_t window, std::uint32_t chunk, std::uint32_t& skipped) {
    const std::uint32_t bit = chunk & (window - 1);
    std::uint64_t& word = words[bit >> 6];
    const std::uint64_t mask = std::uint64_t{1} << (bit & 63);
    if (count == 0) {
      lowest = highest = chunk;
    } else if (chunk > highest) {
      if (chunk - lowest >= window) return ChunkFate::kBeyondWindow;
      skipped = chunk - highest - 1;
      highest = chunk;
      word |= mask;
      count++;
      return skipped > 0 ? ChunkFate::kSkips : ChunkFate::kNext;
    } else if (chunk < lowest) {
      if (highest - chunk >= window) return ChunkFate::kBeyondWindow;
      lowest = chunk;
    } else if (word & mask) {
      return ChunkFate::kDuplicate;
    }
    const bool first = count++ == 0;
    word |= mask;
    return first ? ChunkFate::kNext : ChunkFate::kOutOfOrder;
  }

  bool has(const std::uint64_t* words, std::uint32_t window, std::uint32_t chunk) const {
    const std::uint32_t bit = chunk & (window - 1);
    return count > 0 && chunk >= lowest && chunk <= highest && words[bit >> 6] >> (bit & 63) & 1;
  }
  /// Chunks that have not come: of `block`, or between those that have.
  std::uint64_t missing(std::uint64_t block) const {
    const std::uint64_t span = count == 0 ? 0 : std::uint64_t{highest} - lowest + 1;
    return std::max(block, span) - count;
  }
  void clear(std::uint64_t* words, std::uint32_t window) {
    std::fill(words, words + window / 64, 0);
    *this = {};
  }
};

}  // namespace rocebox::allgather
