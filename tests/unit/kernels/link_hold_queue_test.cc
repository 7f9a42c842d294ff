// SPDX-License-Identifier: BSD-3-Clause
// HoldQueue against a sorted list: packets in order and out of it, few and as many as there is room for.
#include "kernels/link/hold_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "runtime/packet/pool.h"

namespace rocebox::link_hold_queue_test {
namespace {

using link::Due;
using link::HoldQueue;

// By turns it is filled and emptied, so that its ring goes round at every width.
void run_against_model(std::uint32_t capacity, std::uint32_t seed) {
  std::mt19937 random(seed);
  Pool pool({.headers = 0, .small = 2048, .large = 0, .giant = 0});
  HoldQueue queue(capacity);
  std::map<std::pair<Nanos, std::uint64_t>, Packet> model;
  std::uint64_t sequence = 0;
  std::size_t others = 0;  // out of order, so far
  Nanos last = 0;
  for (int step = 0; step < 20'000; step++) {
    const bool fills = step / 1'000 % 2 == 0;
    if (model.size() < capacity && random() % 8 < (fills ? 5u : 3u)) {
      const bool in_order = random() % 8 != 0 || others >= capacity;
      others += !in_order;
      last += static_cast<Nanos>(random() % 3);
      const Due due{in_order ? last : last + static_cast<Nanos>(random() % 50), ++sequence};
      PacketPtr packet = pool.allocate(64);
      ASSERT_TRUE(packet);
      model[{due.at, due.sequence}] = *packet;
      queue.push(due, std::move(packet), in_order);
    } else if (!model.empty()) {
      const auto first = model.begin();
      ASSERT_EQ(queue.next_at(), first->first.first);
      ASSERT_EQ(queue.next().sequence, first->first.second);
      const PacketPtr packet = queue.pop();
      ASSERT_EQ(packet->mbuf(), first->second.mbuf());
      model.erase(first);
    }
    ASSERT_EQ(queue.size(), model.size());
    if (model.empty()) {
      ASSERT_EQ(queue.next_at(), kNever);
    }
  }
}

TEST(LinkHoldQueue, IsASortedListUpToItsRoom) {
  for (const std::uint32_t capacity : {1, 15, 16, 17, 40, 64, 1000})
    for (std::uint32_t seed = 1; seed <= 3; seed++) run_against_model(capacity, seed);
}

}  // namespace
}  // namespace rocebox::link_hold_queue_test
