// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/config/document.h"

namespace rocebox::config {
namespace {

// yaml-cpp 0.7 takes a quoted text that the end of the file ends, when the last line is whole: a forgotten quote
// swallows the rest of a configuration, its `expect:` too, and nothing is said.
TEST(UnclosedQuote, AQuoteThatIsNeverClosed) {
  for (const char* text : {"a: 'x\n", "a: \"x\n", "a: 'x\nexpect:\n  - b == 0\n"}) {
    Mistakes mistakes("f");
    const Node root = parse_yaml(text, mistakes);
    EXPECT_FALSE(mistakes.none()) << text;
  }
}

}  // namespace
}  // namespace rocebox::config
