// SPDX-License-Identifier: BSD-3-Clause
// The order of two ports of one device must be that of the present arrivals, not of those of earlier rounds.
#include <gtest/gtest.h>

#include "tests/unit/engine/fabric_kit.h"

namespace rocebox {
namespace {

using Log = std::vector<std::string>;

TEST(FabricOrder, PortsOfOneInstantAreInOrderOfArrival) {
  test::FabricBox box;
  const unsigned x = box.add("x");
  box.inject(x, 1, 1);  // the only packet of the first instant
  box.fabric.run(1);
  box.take();
  for (Nanos now = 2; now < 6; now++) {
    box.inject(x, 0, 10);
    box.inject(x, 1, 20);
    box.fabric.run(now);
    const std::string at = " @" + std::to_string(now);
    EXPECT_EQ(box.take(), (Log{"x in0 10" + at, "out 0.1 10" + at, "x in1 20" + at, "out 0.0 20" + at}));
  }
}

}  // namespace
}  // namespace rocebox
