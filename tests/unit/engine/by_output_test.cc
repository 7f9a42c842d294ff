// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/by_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace rocebox {
namespace {

// Nothing here looks into a packet: its address tells it from others.
Packet numbered(unsigned i) { return Packet(reinterpret_cast<rte_mbuf*>(std::uintptr_t{i + 1} * 64)); }

TEST(ByOutput, PacketsOfEachOutputInTheirOrder) {
  std::mt19937 random(5);
  for (unsigned round = 0; round < 20000; round++) {
    const unsigned size = round % (kBatchMax + 1);
    const auto ports = static_cast<unsigned>(1 + random() % (round % 3 ? 4 : 256));
    std::array<Port, kBatchMax> verdicts;  // what is behind the last one is not to count
    for (Port& verdict : verdicts) verdict = static_cast<Port>(random() % ports);
    std::array<Packet, kBatchMax> packets;
    std::map<Port, std::vector<Packet>> expected;
    for (unsigned i = 0; i < size; i++) {
      packets[i] = numbered(i);
      expected[verdicts[i]].push_back(packets[i]);
    }
    const std::size_t outputs = random() % 257;
    std::erase_if(expected, [&](const auto& row) { return row.first >= outputs; });
    ByOutput sorted(verdicts.data(), packets.data(), size);
    std::vector<Port> order;
    sorted.for_each(outputs, [&](Port out) {
      order.push_back(out);
      const std::span<Packet> of = sorted.of(out);
      ASSERT_TRUE(expected.contains(out));
      EXPECT_TRUE(std::ranges::equal(of, expected[out], {}, &Packet::mbuf, &Packet::mbuf)) << unsigned{out};
    });
    EXPECT_TRUE(std::ranges::is_sorted(order));
    EXPECT_EQ(order.size(), expected.size());
  }
}

TEST(ByOutput, AnOutputWithoutPacketsMayBeUsed) {
  const std::array<Port, 8> verdicts{3, 3};
  const std::array<Packet, 2> packets{numbered(0), numbered(1)};
  ByOutput sorted(verdicts.data(), packets.data(), 2);
  sorted.use(200);
  std::vector<std::size_t> counts;
  sorted.for_each(256, [&](Port out) { counts.push_back(sorted.of(out).size()); });
  EXPECT_EQ(counts, (std::vector<std::size_t>{2, 0}));
}

}  // namespace
}  // namespace rocebox
