// SPDX-License-Identifier: BSD-3-Clause
// What a go-back-N sender would have sent again, from the times at which PSNs come.
#include "tests/unit/kernels/inspect_box.h"

namespace rocebox::inspect {
namespace {

using namespace test_box;

Config five_microseconds() {
  Config config;
  config.go_back_n_rtt = 5 * kUs;
  return config;
}

// One packet a microsecond; PSNs of `lost` are left out, their time passes.
void stream(Box& box, std::uint32_t from, std::uint32_t to, std::initializer_list<std::uint32_t> lost) {
  for (std::uint32_t psn = from; psn <= to; psn++) {
    if (std::find(lost.begin(), lost.end(), psn) == lost.end())
      box.only(psn, static_cast<int>(psn));
    else
      box.clock += kUs;
  }
}

TEST(InspectGoBack, FromTheFirstLostToTheLastBeforeTheRoundTripIsOver) {
  for (const std::uint32_t shift : {0u, roce::kPsnMask - 12}) {  // the same across the wrap of the PSN
    Box box(five_microseconds());
    stream(box, shift + 5, shift + 40, {shift + 12});
    // 13 shows it; 17 comes 4 us later, 18 would meet what was sent again.
    EXPECT_EQ(box.requests()["go_back_n_packets"], 6) << shift;
    EXPECT_EQ(box.requests()["go_backs"], 1);
    EXPECT_EQ(box.report()["totals"]["go_back_n_packets"], 6);
    EXPECT_EQ(box.report()["totals"]["go_backs"], 1);
  }
}

TEST(InspectGoBack, LossesMeanwhileAreAmongThose) {
  Box box(five_microseconds());
  stream(box, 5, 40, {12, 15, 16});
  EXPECT_EQ(box.requests()["go_back_n_packets"], 6);  // 12 to 17
  EXPECT_EQ(box.requests()["go_backs"], 1);
  stream(box, 41, 60, {50, 57});  // 51 to 55; 58 to 60
  EXPECT_EQ(box.requests()["go_back_n_packets"], 6 + 6 + 4);
  EXPECT_EQ(box.requests()["go_backs"], 3);
}

TEST(InspectGoBack, ASenderThatGoesBackItselfEndsIt) {
  Box box(five_microseconds());
  stream(box, 5, 14, {12});
  box.only(12, 100);
  box.only(13, 101);
  box.only(14, 102);
  box.only(15, 103);
  EXPECT_EQ(box.requests()["retransmissions"], 3);
  EXPECT_EQ(box.requests()["go_back_n_packets"], 3);  // 12, 13, 14
}

TEST(InspectGoBack, OfReadResponsesTooAndNotOfUc) {
  Box box(five_microseconds());
  box.at(box.clock, box.read(100, 10 * 1024));
  for (std::uint32_t psn : {100, 101, 102, 104, 105, 106, 107, 108, 109}) {
    const std::uint8_t opcode = psn == 100   ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_FIRST
                                : psn == 109 ? IBV_OPCODE_RC_RDMA_READ_RESPONSE_LAST
                                             : IBV_OPCODE_RC_RDMA_READ_RESPONSE_MIDDLE;
    box.check(box.response(opcode, psn, 0, 1024));
  }
  EXPECT_EQ(box.flow(1)["read_responses"]["go_back_n_packets"], 6);  // 103 to 108
  Box uc(five_microseconds());
  for (std::uint32_t psn : {5, 6, 8, 9}) uc.check(uc.data(IBV_OPCODE_UC_SEND_ONLY, psn, 100));
  EXPECT_FALSE(uc.requests().contains("go_back_n_packets"));
  EXPECT_EQ(uc.report()["totals"]["go_back_n_packets"], 0);
}

TEST(InspectGoBack, NotShownWhereNoRoundTripIsGiven) {
  Box box;
  stream(box, 5, 20, {12});
  EXPECT_FALSE(box.requests().contains("go_backs"));
  EXPECT_FALSE(box.report()["totals"].contains("go_back_n_packets"));
}

}  // namespace
}  // namespace rocebox::inspect
