// SPDX-License-Identifier: BSD-3-Clause
// What the decoder takes for lost, and what only for late.
#include <gtest/gtest.h>

#include "tests/unit/kernels/lowar_kit.h"

namespace rocebox::lowar {
namespace {

using namespace kit;

class LowarLosses : public testing::Test {
 protected:
  Gateway near{coding(8, 1)}, far{coding(8, 1)};
  Sender sender{10};
};

TEST_F(LowarLosses, ALostLastResponseIsOneLossHoweverFarTheNextMessageIs) {
  std::vector<Frame> frames = sender.read_response(8, 256);
  sender.psn = 1000;
  append(frames, sender.read_response(8, 256));
  const std::vector<Crossing> all = near.encode(frames);
  const std::vector<Crossing> came = without(all, {at_psn(all, 17), repair_of(all, 10)});
  EXPECT_EQ(far.decode(came), data_frames(came));
  EXPECT_EQ(far.count("decode_released"), 1u);
}

}  // namespace
}  // namespace rocebox::lowar
