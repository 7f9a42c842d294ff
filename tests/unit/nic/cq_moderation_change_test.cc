// SPDX-License-Identifier: BSD-3-Clause
// ibv_modify_cq while completions wait for their event: by the new rule it may be due at once, or at another time.
#include <gtest/gtest.h>

#include "tests/unit/nic/nic_kit.h"

namespace rocebox::test::moderation_change {
namespace {

// Two completions wait for a third, or for `period_us`.
class Waiting : public NicBox {
 public:
  explicit Waiting(std::uint32_t count, std::uint32_t period_us) {
    connect();
    modify(count, period_us);
    for (std::uint64_t i = 0; i < 2; i++) EXPECT_EQ(0, post(0, i, IBV_WR_RDMA_WRITE, 0, 64));
    run(10 * kMicrosecond);
    EXPECT_TRUE(completions(0).empty());
  }
  void modify(std::uint32_t count, std::uint32_t period_us) {
    on(0, [&](nic_model::Host& host) { EXPECT_EQ(0, host.modify_cq(*sides[0].cq, count, period_us)); });
  }
  std::size_t told(Nanos after = 0) {
    run(after);
    return completions(0).size();
  }
};

TEST(CqModerationChange, WhatIsDueByTheNewRuleIsToldAtOnce) {
  for (const std::uint32_t period_us : {0u, 1000u})
    for (const std::uint32_t count : {1u, 2u}) {
      Waiting box(100, period_us);
      box.modify(count, 0);
      EXPECT_EQ(box.told(), 2u) << count;
    }
  Waiting box(100, 0);
  box.modify(0, 0);
  EXPECT_EQ(box.told(), 2u) << "nothing is moderated any more";
  EXPECT_EQ(0, box.post(0, 5, IBV_WR_RDMA_WRITE, 0, 64));
  EXPECT_EQ(box.told(10 * kMicrosecond), 3u);
}

// Of a period that was 0 the first completion's time is not known any more: the period begins with the change.
TEST(CqModerationChange, ANewPeriodTellsOfThem) {
  Waiting box(100, 0);
  box.modify(100, 50);
  EXPECT_EQ(box.told(49 * kMicrosecond), 0u);
  EXPECT_EQ(box.told(2 * kMicrosecond), 2u);
}

// A period that was running began with the first completion.
TEST(CqModerationChange, AnotherPeriodGoesOnFromTheFirstCompletion) {
  for (const std::uint32_t before_us : {40u, 1000u}) {
    Waiting box(100, before_us);
    box.run(10 * kMicrosecond);
    box.modify(100, 60);
    EXPECT_EQ(box.told(30 * kMicrosecond), 0u);
    EXPECT_EQ(box.told(16 * kMicrosecond), 2u);
  }
  Waiting box(100, 1000);
  box.run(100 * kMicrosecond);
  box.modify(100, 60);
  EXPECT_EQ(box.told(), 2u) << "it is over";
}

TEST(CqModerationChange, WithoutAPeriodTheCountAloneTells) {
  Waiting box(100, 40);
  box.modify(3, 0);
  EXPECT_EQ(box.told(kMillisecond), 0u);
  EXPECT_EQ(0, box.post(0, 5, IBV_WR_RDMA_WRITE, 0, 64));
  EXPECT_EQ(box.told(10 * kMicrosecond), 3u);
}

// What came while it was not armed is not told of, whatever changes (verbs' rule).
TEST(CqModerationChange, TellsOfNothingThatNobodyAskedFor) {
  NicBox box;
  PairOptions options;
  options.solicited_only = true;
  box.connect(options);
  EXPECT_EQ(0, box.post(0, 1, IBV_WR_RDMA_WRITE, 0, 64));
  box.run(10 * kMicrosecond);
  box.on(0, [&](nic_model::Host& host) { EXPECT_EQ(0, host.modify_cq(*box.sides[0].cq, 0, 0)); });
  box.run(kMillisecond);
  EXPECT_TRUE(box.completions(0).empty());
}

}  // namespace
}  // namespace rocebox::test::moderation_change
