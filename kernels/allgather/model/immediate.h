// SPDX-License-Identifier: BSD-3-Clause
// The 32 bits of immediate data of a multicast chunk: which chunk, of which collective, of which use of its number
// (III-A, Figure 7). From the lowest bit: chunk, collective, generation.
#pragma once
#include <cstdint>

namespace rocebox::allgather {

/// What an immediate says. `chunk` counts within the receive buffer: block by block, in each from 0.
struct ChunkName {
  std::uint32_t chunk = 0, collective = 0, generation = 0;
  bool operator==(const ChunkName&) const = default;
};

/// How the bits are divided; they are 32 together, at least one of them the chunk's.
struct ImmediateLayout {
  unsigned chunk_bits = 24, collective_bits = 3, generation_bits = 5;

  constexpr bool is_valid() const {
    return chunk_bits >= 1 && chunk_bits <= 32 && collective_bits <= 16 && generation_bits <= 31 &&
           chunk_bits + collective_bits + generation_bits == 32;
  }
  constexpr std::uint64_t chunks_max() const { return std::uint64_t{1} << chunk_bits; }
  constexpr std::uint32_t collectives() const { return 1u << collective_bits; }
  constexpr std::uint32_t generations() const { return 1u << generation_bits; }

  /// All three are in range.
  constexpr std::uint32_t encode(const ChunkName& name) const {
    const std::uint64_t high = std::uint64_t{name.generation} << collective_bits | name.collective;
    return static_cast<std::uint32_t>(high << chunk_bits | name.chunk);
  }
  constexpr ChunkName decode(std::uint32_t immediate) const {
    const auto high = static_cast<std::uint32_t>(std::uint64_t{immediate} >> chunk_bits);
    return {static_cast<std::uint32_t>(immediate & (chunks_max() - 1)), high & (collectives() - 1),
            high >> collective_bits};
  }
  /// The immediate without its chunk: equal for all chunks of one collective.
  constexpr std::uint32_t tag(std::uint32_t immediate) const {
    return static_cast<std::uint32_t>(std::uint64_t{immediate} >> chunk_bits);
  }
};

/// Figure 7: what `chunk_bits` bits of chunk number address.
struct AddressLimits {
  std::uint64_t chunks, bitmap_bytes, receive_bytes;
};
constexpr AddressLimits limits_of(unsigned chunk_bits, std::uint64_t chunk_bytes) {
  const std::uint64_t chunks = std::uint64_t{1} << chunk_bits;
  return {chunks, (chunks + 7) / 8, chunks * chunk_bytes};
}
/// The largest receive buffer whose bitmap has that many bytes. Of 64 KiB and 4 KiB chunks 2 GiB: III-D says 16 GB,
/// which would want bytes for bits.
constexpr std::uint64_t receive_bytes_of(std::uint64_t bitmap_bytes, std::uint64_t chunk_bytes) {
  return bitmap_bytes * 8 * chunk_bytes;
}

}  // namespace rocebox::allgather
