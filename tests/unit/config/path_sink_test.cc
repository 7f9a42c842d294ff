// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <unistd.h>

#include "runtime/config/path.h"

namespace rocebox::config {
namespace {

// The registry admits kernels without outputs; naming one in the middle of a chain must be a mistake, not undefined.
TEST(PathSink, AKernelWithoutOutputsInTheMiddle) {
  auto run = [] {
    Mistakes mistakes("f");
    wire({"a -> sink -> b"}, {{"sink", Shape::kOneWay, 1, 0}}, {}, mistakes);
    _exit(mistakes.none() ? 4 : 0);
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace rocebox::config
