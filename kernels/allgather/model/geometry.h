// SPDX-License-Identifier: BSD-3-Clause
// Geometry: how a receive buffer is cut: into the blocks of its roots, those into chunks of one datagram, and these
// among the subgroups, each of which has a run of every block (IV-C).
#pragma once
#include <algorithm>
#include <cstdint>

namespace rocebox::allgather {

class Geometry {
 public:
  /// `blocks`: ranks that broadcast, of a Broadcast one. `block_bytes` of each, at least 1. `chunk_bytes`: payload of a
  /// chunk; the last one of a block may be shorter.
  Geometry(unsigned blocks, std::uint64_t block_bytes, std::uint32_t chunk_bytes, unsigned subgroups)
      : blocks_(blocks),
        subgroups_(subgroups),
        chunk_bytes_(chunk_bytes),
        chunks_per_block_(static_cast<std::uint32_t>((block_bytes + chunk_bytes - 1) / chunk_bytes)),
        block_bytes_(block_bytes) {}

  unsigned blocks() const { return blocks_; }
  unsigned subgroups() const { return subgroups_; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }
  std::uint32_t chunks_per_block() const { return chunks_per_block_; }
  std::uint64_t block_bytes() const { return block_bytes_; }
  std::uint64_t chunks() const { return std::uint64_t{blocks_} * chunks_per_block_; }
  std::uint64_t bytes() const { return std::uint64_t{blocks_} * block_bytes_; }

  // Of a chunk, by its number in the receive buffer.
  unsigned block_of(std::uint32_t chunk) const { return chunk / chunks_per_block_; }
  std::uint32_t chunk_of(unsigned block, std::uint32_t index) const { return block * chunks_per_block_ + index; }
  std::uint64_t offset_of(unsigned block, std::uint32_t index) const {
    return block * block_bytes_ + std::uint64_t{index} * chunk_bytes_;
  }
  /// Bytes of `count` chunks of a block from `index` on.
  std::uint64_t bytes_of(std::uint32_t index, std::uint32_t count = 1) const {
    const std::uint64_t begin = std::uint64_t{index} * chunk_bytes_;
    return std::min(block_bytes_, begin + std::uint64_t{count} * chunk_bytes_) - begin;
  }

  // Of subgroups: the chunks [first, end) of each block.
  std::uint32_t first_of(unsigned subgroup) const {
    return static_cast<std::uint32_t>(std::uint64_t{subgroup} * chunks_per_block_ / subgroups_);
  }
  std::uint32_t end_of(unsigned subgroup) const { return first_of(subgroup + 1); }

 private:
  unsigned blocks_, subgroups_;
  std::uint32_t chunk_bytes_, chunks_per_block_;
  std::uint64_t block_bytes_;
};

}  // namespace rocebox::allgather
