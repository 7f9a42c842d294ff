// SPDX-License-Identifier: BSD-3-Clause
// Reassembly: what of a receive buffer has come: a bitmap for each subgroup, and how much of each block lies in the
// user's buffer. A chunk has come when its datagram is in staging, and has landed when its copy is done.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/allgather/model/bitmap.h"
#include "kernels/allgather/model/geometry.h"

namespace rocebox::allgather {

/// Where a chunk belongs.
enum class Arrival : std::uint8_t { kNew, kDuplicate, kOutOfRange, kOtherSubgroup };

class Reassembly {
 public:
  explicit Reassembly(const Geometry& geometry) : geometry_(geometry), landed_(geometry.blocks()) {
    for (unsigned s = 0; s < geometry.subgroups(); s++) {
      Part part{geometry.first_of(s), geometry.end_of(s) - geometry.first_of(s), ChunkBitmap(0)};
      part.bitmap = ChunkBitmap(std::uint64_t{geometry.blocks()} * part.length);
      parts_.push_back(std::move(part));
    }
  }
  const Geometry& geometry() const { return geometry_; }

  /// A datagram of a subgroup; `block` and `index` say where its chunk belongs, unless it is out of range.
  Arrival take(unsigned subgroup, std::uint32_t chunk, std::uint32_t& block, std::uint32_t& index) {
    block = geometry_.block_of(chunk);
    if (block >= geometry_.blocks()) return Arrival::kOutOfRange;
    index = chunk - block * geometry_.chunks_per_block();
    Part& part = parts_[subgroup];
    const std::uint32_t place = index - part.first;
    if (place >= part.length) return Arrival::kOtherSubgroup;
    return part.bitmap.set(std::uint64_t{block} * part.length + place) ? Arrival::kNew : Arrival::kDuplicate;
  }
  /// `count` chunks of a block lie in the user's buffer. Whether it is whole now.
  bool land(unsigned block, std::uint32_t count = 1) {
    landed_[block] += count;
    if (landed_[block] != geometry_.chunks_per_block()) return false;
    whole_blocks_++;
    return true;
  }
  /// Chunks of a block that were fetched: those that have not come land now. Whether it is whole now; it was not.
  bool fill(unsigned block, std::uint32_t index, std::uint32_t count) {
    std::uint32_t filled = 0;
    for (Part& part : parts_) {
      const std::uint32_t end = std::min(index + count, part.first + part.length);
      for (std::uint32_t i = std::max(index, part.first); i < end; i++)
        filled += part.bitmap.set(std::uint64_t{block} * part.length + i - part.first);
    }
    return filled && land(block, filled);
  }
  /// Chunks of a subgroup that have come, as another one's bitmap says.
  void merge(unsigned subgroup, const std::uint64_t* words) { parts_[subgroup].bitmap.merge(words); }
  /// A block that is this rank's own.
  void own(unsigned block) { fill(block, 0, geometry_.chunks_per_block()); }

  bool is_whole(unsigned block) const { return landed_[block] == geometry_.chunks_per_block(); }
  bool is_whole() const { return whole_blocks_ == geometry_.blocks(); }
  bool has(unsigned block, std::uint32_t index) const {
    for (const Part& part : parts_)
      if (index - part.first < part.length)
        return part.bitmap.test(std::uint64_t{block} * part.length + index - part.first);
    return false;
  }
  /// `each(index, count)` for runs of chunks of a block that have not come, the longest that there are, in order.
  template <class Each>
  void each_missing(unsigned block, Each&& each) const {
    std::uint32_t run = 0, run_end = 0;
    for (const Part& part : parts_) {
      const std::uint64_t begin = std::uint64_t{block} * part.length, end = begin + part.length;
      for (std::uint64_t at = part.bitmap.find(false, begin, end); at < end;) {
        const std::uint64_t after = part.bitmap.find(true, at, end);
        const auto first = static_cast<std::uint32_t>(at - begin) + part.first;
        if (first != run_end) {
          if (run_end > run) each(run, run_end - run);
          run = first;
        }
        run_end = first + static_cast<std::uint32_t>(after - at);
        at = part.bitmap.find(false, after, end);
      }
    }
    if (run_end > run) each(run, run_end - run);
  }

 private:
  struct Part {
    std::uint32_t first, length;  // chunks of each block that are this subgroup's
    ChunkBitmap bitmap;
  };
  Geometry geometry_;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> landed_;  // chunks, by block
  unsigned whole_blocks_ = 0;
};

}  // namespace rocebox::allgather
