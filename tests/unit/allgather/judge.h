// SPDX-License-Identifier: BSD-3-Clause
// An application whose buffers are looked at when they are released, and scribbled over.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/allgather/host/team.h"
#include "tests/unit/nic/star_kit.h"

namespace rocebox::allgather::test {

using rocebox::test::Star;

/// Runs `operations` at all ranks, those of one communicator and place one after the other.
class Judge final : public Application {
 public:
  Judge(Star& star, const TeamOptions& options, std::vector<Operation> operations)
      : star_(star), options_(options), operations_(std::move(operations)), team(star.all, options_, *this) {}

  void run(Nanos limit = 20 * kSecond) {
    team.connect();
    star_.run([this] { return left() == 0; }, limit);
    // What is still under way may come: nobody's buffer changes any more.
    star_.run([] { return false; }, star_.now + 10 * kMillisecond);
    for (const auto& [key, memory] : memory_)
      for (const std::uint8_t byte : memory) ASSERT_EQ(byte, 0xDD) << "written after it was released";
    for (const Operation& o : operations_)
      for (unsigned rank = 0; rank < team.ranks() && !team.has_bytes(); rank++)
        for (std::uint64_t i = 0; i < buffer_of(rank, o).bytes; i += 61)
          ASSERT_FALSE(team.covers(rank, buffer_of(rank, o), i, 1)) << "written after it was released";
  }
  std::size_t left() const { return operations_.size() * team.ranks() - ended; }
  static std::uint8_t right(const Operation& o, unsigned block, std::uint64_t offset) {
    return static_cast<std::uint8_t>(block * 101 + o.sequence * 37 + o.communicator * 17 + offset * 5 + offset / 256);
  }

  std::size_t ended = 0, wrong = 0, whole = 0;
  std::map<End, unsigned> failed;
  std::uint64_t hash = 0;

 private:
  void on_connected(Nanos) override {
    for (unsigned rank = 0; rank < team.ranks(); rank++)
      for (const Operation& o : operations_)
        if (o.sequence < options_.outstanding) begin(rank, o);
  }
  unsigned blocks(const Operation& o) const { return o.root >= 0 ? 1 : team.ranks(); }
  static bool owns(unsigned rank, const Operation& o, unsigned block) {
    return o.root >= 0 ? static_cast<unsigned>(o.root) == rank : block == rank;
  }
  // Registered by address: each its own. NICs without bytes keep what was written where.
  Buffer buffer_of(unsigned rank, const Operation& o) {
    const std::uint64_t address = (std::uint64_t{o.communicator} << 32 | (o.sequence + 1)) << 24;
    return {address, blocks(o) * o.block_bytes,
            team.has_bytes() ? memory_[{rank, o.communicator, o.sequence}].data() : nullptr};
  }
  void begin(unsigned rank, const Operation& o) {
    if (team.has_bytes()) {
      auto& memory = memory_[{rank, o.communicator, o.sequence}];
      memory.assign(blocks(o) * o.block_bytes, 0xEE);
      for (unsigned block = 0; block < blocks(o); block++)
        for (std::uint64_t i = 0; owns(rank, o, block) && i < o.block_bytes; i++)
          memory[block * o.block_bytes + i] = right(o, block, i);
    }
    team.start(rank, o, buffer_of(rank, o));
  }
  // Bytes that are not what they should be; without bytes, those of blocks of which not all was written.
  std::uint64_t wrong_bytes(unsigned rank, const Operation& o) {
    std::uint64_t count = 0;
    if (!team.has_bytes()) {
      const Buffer buffer = buffer_of(rank, o);
      for (unsigned block = 0; block < blocks(o); block++)
        if (!owns(rank, o, block) && !team.covers(rank, buffer, block * o.block_bytes, o.block_bytes))
          count += o.block_bytes;
      return count;
    }
    const auto& memory = memory_[{rank, o.communicator, o.sequence}];
    for (std::uint64_t i = 0; i < memory.size(); i++)
      count += memory[i] != right(o, static_cast<unsigned>(i / o.block_bytes), i % o.block_bytes);
    return count;
  }
  void on_released(unsigned rank, const Operation& o, End end, Nanos now) override {
    EXPECT_EQ((++times_[{rank, o.communicator, o.sequence}]), 1u) << "released twice";
    ended++;
    if (end == End::kWhole)
      whole++, wrong += wrong_bytes(rank, o);
    else
      failed[end]++;
    if (team.has_bytes())
      std::ranges::fill(memory_[{rank, o.communicator, o.sequence}], 0xDD);
    else
      team.forget_extents(rank, buffer_of(rank, o));
    hash = (hash ^ static_cast<std::uint64_t>(now) ^ rank << 20 ^ static_cast<unsigned>(end)) * 0x100000001B3;
    for (const Operation& next : operations_)
      if (next.communicator == o.communicator && next.sequence == o.sequence + options_.outstanding) begin(rank, next);
  }

  Star& star_;
  const TeamOptions options_;
  std::vector<Operation> operations_;
  std::map<std::tuple<unsigned, unsigned, std::uint32_t>, std::vector<std::uint8_t>> memory_;
  std::map<std::tuple<unsigned, unsigned, std::uint32_t>, unsigned> times_;

 public:
  Team team;
};

}  // namespace rocebox::allgather::test
