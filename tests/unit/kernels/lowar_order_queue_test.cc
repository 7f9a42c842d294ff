// SPDX-License-Identifier: BSD-3-Clause
// The queue of what waits alone: what leaves before what, where a repair packet finds its share, how long is waited.
#include <gtest/gtest.h>

#include "kernels/lowar/order_queue.h"
#include "kernels/lowar/stream.h"
#include "tests/unit/kernels/lowar_packets.h"

namespace rocebox::lowar {
namespace lowar_order_queue_test {
namespace {

class LowarOrderQueue : public testing::Test {
 protected:
  ~LowarOrderQueue() override {
    while (!order.empty()) order.take_first(buffer);
    while (order.has_repairs()) order.take_repair(buffer, order.first_repair());
  }
  void hold(std::uint32_t psn, ReorderingBuffer::Kind kind = {.usable = true}) {
    order.hold(buffer, made.middle(psn), psn, now++, kind);
  }
  // The PSNs of what waits, as it leaves.
  std::vector<std::uint32_t> leave() {
    std::vector<std::uint32_t> psns;
    while (!order.empty()) psns.push_back(psn_of(*order.take_first(buffer)));
    return psns;
  }
  static RepairHeader header(Coding coding, std::uint32_t base, unsigned packets, unsigned isn) {
    RepairHeader header;
    header.block.coding = coding, header.block.base_psn = base;
    header.block.packets = static_cast<std::uint16_t>(packets), header.isn = static_cast<std::uint8_t>(isn);
    return header;
  }
  using Psns = std::vector<std::uint32_t>;

  kit::Packets made;
  ReorderingBuffer buffer{32};
  OrderQueue order;
  Nanos now = 1;
};

TEST_F(LowarOrderQueue, LeavesByPsnAndOfOnePsnAsItCame) {
  for (const std::uint32_t psn : {5u, 2u, 0xFFFFFEu, 9u, 0u}) hold(psn);
  EXPECT_EQ(order.last_psn(buffer), 9u);
  EXPECT_TRUE(order.has_before(buffer, 0xFFFFFE));
  EXPECT_FALSE(order.has_before(buffer, 0xFFFFFD));
  EXPECT_TRUE(order.came_before(buffer, 1)) << "0 came last";
  EXPECT_FALSE(order.came_before(buffer, 10));
  order.hold(buffer, made.one(IBV_OPCODE_RC_ACKNOWLEDGE, 77), 5, now++, {.unsequenced = true});
  order.hold_last(buffer, made.one(IBV_OPCODE_RC_ACKNOWLEDGE, 88), now++);
  order.hold(buffer, made.one(IBV_OPCODE_RC_ACKNOWLEDGE, 99), 12, now++, {.unsequenced = true});
  hold(6);
  EXPECT_EQ(order.last_psn(buffer), 9u) << "an ACK has no place in the sequence";
  EXPECT_EQ(buffer.used(), 9u);
  EXPECT_EQ(leave(), (Psns{0xFFFFFE, 0, 2, 5, 77, 6, 9, 88, 99}));
  EXPECT_EQ(buffer.used(), 0u);
  EXPECT_FALSE(order.last_psn(buffer));
}

TEST_F(LowarOrderQueue, ARepairPacketFindsItsShare) {
  hold(13), hold(15), hold(19);
  const Share share = order.share_of(buffer, header({8, 2}, 10, 8, 1), 12);  // 11, 13, 15, 17
  EXPECT_EQ(share.delivered, 1u);
  ASSERT_EQ(share.held, 2u);
  EXPECT_EQ(buffer[share.slots[0]].psn, 13u);
  EXPECT_EQ(buffer[share.slots[1]].psn, 15u);
  EXPECT_EQ(share.missing, 1u);
  EXPECT_EQ(share.missing_psn, 17u);
  EXPECT_TRUE(share.usable);
  hold(17, {.usable = false});
  const Share snapped = order.share_of(buffer, header({8, 2}, 10, 8, 1), 12);
  EXPECT_EQ(snapped.missing, 0u);
  EXPECT_FALSE(snapped.usable) << "one that waits is not held whole";
  EXPECT_TRUE(order.share_of(buffer, header({8, 2}, 10, 8, 0), 12).usable) << "of 10, 12, 14, 16 none waits";
}

TEST_F(LowarOrderQueue, AnAckIsNoDataPacketOfItsPsn) {
  order.hold(buffer, made.one(IBV_OPCODE_RC_ACKNOWLEDGE, 12), 12, now, {.unsequenced = true});
  const Share share = order.share_of(buffer, header({4, 1}, 10, 4, 0), 10);
  EXPECT_EQ(share.missing, 4u);
}

TEST_F(LowarOrderQueue, AnOriginalTakesThePlaceOfItsRebuiltPacketOnce) {
  PacketPtr rebuilt = made.middle(7), original = made.middle(7);
  Packet late = *original;
  order.hold(buffer, std::move(rebuilt), 7, now, {.usable = true, .rebuilt = true});
  EXPECT_FALSE(order.replace_rebuilt(buffer, *made.middle(8)));
  kit::Sender other(7);
  EXPECT_FALSE(order.replace_rebuilt(buffer, *made.of(other.one(IBV_OPCODE_RC_RDMA_WRITE_MIDDLE, 100))))
      << "another packet of this PSN";
  EXPECT_TRUE(order.replace_rebuilt(buffer, late));
  EXPECT_FALSE(order.replace_rebuilt(buffer, late)) << "a duplicate";
}

TEST_F(LowarOrderQueue, RepairPacketsSayWhereBlocksEnd) {
  kit::Gateway near(kit::coding(8, 2));
  kit::Sender sender(100);
  const auto all = near.encode(sender.write(20));
  for (const std::uint32_t base : {108u, 100u, 116u})
    order.hold_repair(buffer, made.of(all[kit::repair_of(all, base)].bytes), base, now++);
  EXPECT_TRUE(order.empty()) << "of data packets";
  EXPECT_FALSE(order.idle());
  EXPECT_EQ(order.end_of_block(buffer, 107), 108u);
  EXPECT_EQ(order.end_of_block(buffer, 108), 116u);
  EXPECT_EQ(order.end_of_block(buffer, 119), 120u);
  EXPECT_FALSE(order.end_of_block(buffer, 120));
  ASSERT_TRUE(order.last_end(buffer, 101));
  EXPECT_EQ(order.last_end(buffer, 101)->psn, 120u);
  EXPECT_TRUE(order.last_end(buffer, 101)->message_ended);
  EXPECT_FALSE(order.last_end(buffer, 120));
  order.take_repair(buffer, OrderQueue::repair_after(buffer, OrderQueue::repair_after(buffer, order.first_repair())));
  EXPECT_FALSE(order.last_end(buffer, 101)->message_ended) << "116 is amid the message";
  kit::Gateway other(kit::coding(2, 1));
  kit::Sender within(112);
  const auto shorter = other.encode(within.write(2));
  order.hold_repair(buffer, made.of(shorter[kit::repair_of(shorter, 112)].bytes), 112, now++);
  EXPECT_EQ(order.last_end(buffer, 101)->psn, 116u) << "of a block that begins later, but ends before";
}

TEST_F(LowarOrderQueue, TheOldestPacketOfEitherKindSaysHowLongIsWaited) {
  now = 500;
  hold(5);
  EXPECT_EQ(order.oldest(buffer), 500);
  kit::Gateway near(kit::coding(4, 1));
  kit::Sender sender(0);
  const auto all = near.encode(sender.write(4));
  order.hold_repair(buffer, made.of(all[kit::repair_of(all, 0)].bytes), 0, 400);
  EXPECT_EQ(order.oldest(buffer), 400);
  order.take_repair(buffer, order.first_repair());
  now = 600;
  hold(3);
  EXPECT_EQ(order.oldest(buffer), 500) << "not the first by PSN";
}

TEST_F(LowarOrderQueue, PatienceFollowsDistancesWithinMessages) {
  constexpr Nanos kMin = 100, kMax = kSecond;
  order.note_arrival(false, now = kMillisecond, kMax);
  for (unsigned i = 1; i < kGapsMin; i++) order.note_arrival(true, now += 1000, kMax);
  EXPECT_EQ(order.patience(10, kMin, kMax), kMax) << "too few";
  order.note_arrival(false, now += kSecond / 2, kMax);
  EXPECT_EQ(order.patience(10, kMin, kMax), kMax) << "between messages";
  order.interrupt_arrivals();
  order.note_arrival(true, now += kSecond / 2, kMax);
  EXPECT_EQ(order.patience(10, kMin, kMax), kMax) << "the host went back";
  order.note_arrival(true, now += 1000, kMax);
  EXPECT_EQ(order.patience(10, kMin, kMax), 2 * (10 * 1000 + 1000));
  EXPECT_EQ(order.patience(10, kMin, 5000), 5000);
  order.note_arrival(true, now += 160'000, kMax);
  EXPECT_GT(order.patience(0, kMin, kMax), 2 * 159'000) << "a stall";
}

TEST_F(LowarOrderQueue, WaitsOnceForAFarEndThatNobodyHasHeardOf) {
  EXPECT_TRUE(order.keeps_order());
  EXPECT_TRUE(order.waited_in_vain());
  order.far_end_heard();
  EXPECT_TRUE(order.keeps_order());
  EXPECT_FALSE(order.waited_in_vain());
  order.stop();
  order.far_end_heard();
  EXPECT_FALSE(order.keeps_order()) << "uncoded, as it says";
  EXPECT_FALSE(order.waited_in_vain());
  order.keep_order();
  EXPECT_TRUE(order.keeps_order());
}

}  // namespace
}  // namespace lowar_order_queue_test
}  // namespace rocebox::lowar
