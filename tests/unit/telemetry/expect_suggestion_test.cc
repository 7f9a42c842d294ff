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

// Nobody guesses the second half of a name.
TEST(ExpectSuggestion, NamesThatBeginAlikeAreOffered) {
  const Json report = Json::parse(R"({"icrc_failures": 0, "icrc_unverified": 0, "packets": 1, "tx_a_1": 1, "tx_b_1": 1,
      "tx_c_1": 1, "tx_d_1": 1, "tx_e_1": 1})");
  std::string why;
  EXPECT_FALSE(Expectation("icrc_bad == 0").may_resolve(report, why));
  EXPECT_NE(why.find("no `icrc_bad`; did you mean `icrc_failures` or `icrc_unverified`?"), std::string::npos) << why;
  EXPECT_FALSE(Expectation("tx_completely_other == 0").may_resolve(report, why));
  EXPECT_EQ(why.find("did you mean"), std::string::npos) << why;
}

// Where none is near, all are told, more than a reader of a misspelt option would like.
TEST(ExpectSuggestion, AWorkloadsMembersAreListed) {
  Json report;
  Json& workload = report["workloads"]["w"];
  for (int i = 0; i < 15; i++) workload[std::string(1, static_cast<char>('a' + i)) + "_of_all"] = 1;
  workload["goodput_bits_per_second"] = 1;
  std::string why;
  EXPECT_FALSE(Expectation("workloads.w.qqqq == 0").may_resolve(report, why));
  EXPECT_NE(why.find("there is no `qqqq`; known: a_of_all, b_of_all, "), std::string::npos) << why;
  EXPECT_FALSE(Expectation("workloads.w.goodput > 0").may_resolve(report, why));
  EXPECT_NE(why.find("no `goodput`; did you mean `goodput_bits_per_second`?"), std::string::npos) << why;
}

}  // namespace
}  // namespace rocebox
