// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/expect.h"

#include <gtest/gtest.h>

#include "runtime/kernel/kernel.h"

namespace rocebox {
namespace {

const Json& report() {
  static const Json json = Json::parse(R"({
    "seed": 7,
    "run": {"packets_in": 10, "span_ns": 25000000, "interrupted": false},
    "outputs": [{"packets": 4}, {"packets": 6}],
    "devices": {"tap": {"ports": {"host": {"rx_packets": 10}},
                        "counters": {"packets_in": 10},
                        "kernels": {"inspect": {"type": "inspect", "counters": {"naks": 0, "out-of-order": 3}, "loss": 0.25},
                                    "my-link": {"counters": {"drop_loss": 2}}}}},
    "links": {"wan": {"counters": {"packets_held": 1}}}
  })");
  return json;
}

TEST(Expectation, Conditions) {
  struct Row {
    const char* text;
    bool holds;
  };
  constexpr Row kRows[] = {{"seed == 7", true},
                           {"seed == 8", false},
                           {"seed != 8", true},
                           {"seed < 7", false},
                           {"seed <= 7", true},
                           {"seed > 6", true},
                           {"seed >= 8", false},
                           {"seed==7", true},
                           {"  seed  ==  7  ", true},
                           {"7 == seed", true},
                           {"run.packets_in == 4 + 6", true},
                           {"run.packets_in - 4 - 6 == 0", true},
                           {"3 - 5 < 0", true},
                           {"run.packets_in -4 == 6", true},
                           {"tap.inspect.naks == 0", true},
                           {"devices.tap.kernels.inspect.counters.naks == 0", true},
                           {"tap.kernels.inspect.naks == 0", true},
                           {"tap.packets_in == tap.host.rx_packets", true},
                           {"tap.my-link.drop_loss == 2", true},
                           {"tap.inspect.out-of-order == 3", true},
                           {"wan.packets_held == 1", true},
                           {"outputs.0.packets + outputs.1.packets == run.packets_in", true},
                           {"outputs.count == 2", true},
                           {"run.span == 25ms", true},
                           {"run.span_ns == 0.025s", true},
                           {"run.span < 1min", true},
                           {"run.interrupted == 0", true},
                           {"tap.inspect.loss == 25%", true},
                           {"tap.inspect.loss == 0.25", true},
                           {"tap.inspect.loss > 1e-4", true},
                           {"0x10 == 16", true},
                           {"1KiB == 1024", true},
                           {"1kbps == 1000", true}};
  for (const Row& row : kRows) {
    const Expectation expectation(row.text);
    std::string why;
    ASSERT_TRUE(expectation.resolves(report(), why)) << row.text << ": " << why;
    EXPECT_EQ(expectation.evaluate(report()).holds, row.holds) << row.text;
    EXPECT_EQ(expectation.text(), row.text);
  }
}

TEST(Expectation, ShowsBothSides) {
  const auto result = Expectation("run.packets_in + 1 < 2").evaluate(report());
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.left, "11");
  EXPECT_EQ(result.right, "2");
}

TEST(Expectation, TextsThatAreNoCondition) {
  for (const char* text :
       {"", " ", "seed", "seed = 7", "== 7", "seed ==", "seed == + 7", "seed == 7 +", "seed == 7 8", "seed == 7 == 8",
        "seed === 7", "seed <> 7", "seed == (7)", "a * b == 1", "seed == $x", "seed < 7 > 3"})
    EXPECT_THROW(Expectation{text}, ConfigError) << text;
}

TEST(Expectation, MisspeltPathsAreExplainedWithTheNearestWord) {
  struct Row {
    const char* text;
    const char* words;
  };
  constexpr Row kRows[] = {{"tap.inspect.nacks == 0", "`nacks`; did you mean `naks`?"},
                           {"1 == wann.packets_held", "did you mean `wan`?"},
                           {"tap.inspect == 0", "is not a number but a group"},
                           {"outputs.2.packets == 0", "no `2`"},
                           {"outputs.-1.packets == 0", "no `-1`"},
                           {"outputs.0x.packets == 0", "no `0x`"},
                           {"tap..naks == 0", "no ``"},
                           {"tap.inspect.type == 0", "not a number"}};
  for (const Row& row : kRows) {
    std::string why;
    EXPECT_FALSE(Expectation(row.text).resolves(report(), why)) << row.text;
    EXPECT_NE(why.find(row.words), std::string::npos) << row.text << ": " << why;
    EXPECT_NE(why.find(row.text), std::string::npos) << why;
  }
}

TEST(Expectation, EmptyReportResolvesNumbersOnly) {
  std::string why;
  EXPECT_TRUE(Expectation("1 < 2").resolves(Json(), why));
  EXPECT_FALSE(Expectation("a < 2").resolves(Json(), why));
}

}  // namespace
}  // namespace rocebox
