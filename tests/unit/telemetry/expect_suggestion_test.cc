// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/telemetry/expect.h"

namespace rocebox {
namespace {

// The words offered come from the transparent level that was searched last, not from all of them.
TEST(ExpectSuggestion, SuggestionsLookThroughEveryTransparentLevel) {
  const Json report =
      Json::parse(R"({"devices": {"tap": {"ports": {"host": {"rx_packets": 1}}, "counters": {"packets_in": 1},
      "kernels": {"inspect": {"counters": {"naks": 0}}}}}, "links": {"wan": {"counters": {"packets_held": 1}}}})");
  struct Row {
    const char* text;
    const char* words;
  };
  constexpr Row kRows[] = {{"tap.inspct.naks == 0", "did you mean `inspect`?"},
                           {"tup.inspect.naks == 0", "did you mean `tap`?"}};
  for (const Row& row : kRows) {
    std::string why;
    EXPECT_FALSE(Expectation(row.text).may_resolve(report, why));
    EXPECT_NE(why.find(row.words), std::string::npos) << why;
  }
}

}  // namespace
}  // namespace rocebox
