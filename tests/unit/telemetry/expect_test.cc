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
                           {"run.interrupted == false", true},
                           {"run.interrupted != true", true},
                           {"true == run.interrupted", false},
                           {"tap.inspect.loss == 25%", true},
                           {"tap.inspect.loss == 0.25", true},
                           {"tap.inspect.loss > 1e-4", true},
                           {"0x10 == 16", true},
                           {"1KiB == 1024", true},
                           {"1kbps == 1000", true}};
  for (const Row& row : kRows) {
    const Expectation expectation(row.text);
    std::string why;
    ASSERT_TRUE(expectation.may_resolve(report(), why)) << row.text << ": " << why;
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
  for (const char* text : {"",
                           " ",
                           "seed",
                           "seed = 7",
                           "== 7",
                           "seed ==",
                           "seed == + 7",
                           "seed == 7 +",
                           "seed == 7 8",
                           "seed == 7 == 8",
                           "seed === 7",
                           "seed <> 7",
                           "seed > true",
                           "seed == 1 + true",
                           "seed == -true",
                           "seed == (7)",
                           "a * b == 1",
                           "tap..naks == 0",
                           "seed == $x",
                           "seed < 7 > 3"})
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
                           {"tap.inspect.type == 0", "not a number"}};
  for (const Row& row : kRows) {
    std::string why;
    EXPECT_FALSE(Expectation(row.text).may_resolve(report(), why)) << row.text;
    EXPECT_NE(why.find(row.words), std::string::npos) << row.text << ": " << why;
    EXPECT_NE(why.find(row.text), std::string::npos) << why;
  }
}

TEST(Expectation, EmptyReportResolvesNumbersOnly) {
  std::string why;
  EXPECT_TRUE(Expectation("1 < 2").may_resolve(Json(), why));
  EXPECT_FALSE(Expectation("a < 2").may_resolve(Json(), why));
}

const Json& tables() {
  static const Json json = Json::parse(R"({"devices": {"tap": {"kernels": {"inspect": {"flows": [
    {"source": "10.0.0.1", "qpn": "0x000011", "service": "RC", "packets": 5, "requests": {"lost": 2}},
    {"source": "10.0.0.2", "qpn": "0x000011", "service": "RC", "packets": 7, "paired": true},
    {"source": "10.0.0.2", "qpn": "0x000012", "service": "UD", "packets": 9, "requests": {"lost": 1}}],
    "connections": []}}}}})");
  return json;
}

TEST(Expectation, RowsOfTablesAreChosenByWhatStandsInThem) {
  for (const char* text :
       {"tap.inspect.flows[source=10.0.0.1].requests.lost == 2", "tap.inspect.flows[ qpn = 0x12 ].packets == 9",
        "tap.inspect.flows[qpn=18].packets == 9", "tap.inspect.flows[qpn=0x11, source=10.0.0.2].packets == 7",
        "tap.inspect.flows[paired=true].packets == 7", "tap.inspect.flows[packets=5].requests.lost == 2",
        "tap.inspect.flows[*].packets - 1 == 20", "tap.inspect.flows[*].requests.lost == 3",
        "tap.inspect.flows.1.packets == 7", "tap.inspect.flows.count == 3", "tap.inspect.connections.count == 0"})
    EXPECT_TRUE(Expectation(text).evaluate(tables()).holds) << text;
}

TEST(Expectation, ARowThatIsNotThereMakesItFalseAndSaysWhy) {
  struct Row {
    const char* text;
    const char* words;
  };
  constexpr Row kRows[] = {
      {"tap.inspect.flows[qpn=0x99].packets >= 0",
       "no row matches `qpn=0x99`; there is `qpn=0x000011`, `qpn=0x000012`"},
      {"tap.inspect.flows[qpn=0x11, service=UD].packets >= 0", "no row matches `qpn=0x11, service=UD`"},
      {"tap.inspect.flows[qpm=0x11].packets >= 0", "the rows have no `qpm`; did you mean `qpn`?"},
      {"tap.inspect.flows[qpn=0x11].packets >= 0",
       "2 rows match `qpn=0x11`: add `source=10.0.0.1` or `source=10.0.0.2`"},
      {"tap.inspect.flows[service=RC].packets >= 0", "2 rows match `service=RC`: add `source="},
      {"tap.inspect.flows.3.packets >= 0", "no `3`: it has 3 row(s)"},
      {"tap.inspect.flows[*].pakets == 0", "no `pakets`; did you mean `packets`?"},
      {"tap.inspect.flows[*].requests.icrc_bad == 0", "no `icrc_bad`"},
      {"tap.inspect.flows[*].source == 0", "is not a number but `10.0.0.1`"},
      {"tap.inspect.flows[paired=true].requests.lost == 0", "no `requests`"},
      {"tap.inspect.flows[qpn=18].requests.lots == 1", "did you mean `lost`?"},
      {"tap.inspect[qpn=18].packets == 1", "this is no table"}};
  for (const Row& row : kRows) {
    const Expectation expectation(row.text);
    const auto result = expectation.evaluate(tables());
    EXPECT_FALSE(result.holds) << row.text;
    EXPECT_NE(result.left.find(row.words), std::string::npos) << result.left;
    std::string why;
    EXPECT_FALSE(expectation.may_resolve(tables(), why)) << row.text;
  }
}

TEST(Expectation, AFailureNamesTheValuesOfBothSides) {
  struct Row {
    const char *text, *told;
  };
  constexpr Row kRows[] = {
      {"run.packets_in + 1 < 2", "expected `run.packets_in + 1 < 2`: `run.packets_in + 1` is 11"},
      {"seed == run.packets_in", "expected `seed == run.packets_in`: `seed` is 7, `run.packets_in` is 10"},
      {"run.interrupted == true", "expected `run.interrupted == true`: `run.interrupted` is false"},
      {"seed == true", "expected `seed == true`: `seed` is 7"},
      {"run.span>1min", "expected `run.span>1min`: `run.span` is 25000000, `1min` is 60000000000"}};
  for (const Row& row : kRows) {
    const Expectation expectation(row.text);
    EXPECT_EQ(expectation.failure(expectation.evaluate(report())), row.told);
  }
  const Expectation none("2 == tap.inspect.flows[qpn=0x11].packets");
  EXPECT_EQ(
      none.failure(none.evaluate(tables())),
      "expected `2 == tap.inspect.flows[qpn=0x11].packets`, which has no value: `tap.inspect.flows[qpn=0x11].packets`: "
      "2 rows match `qpn=0x11`: add `source=10.0.0.1` or `source=10.0.0.2`");
}

TEST(Expectation, TheRowsOfAnEmptyTableMayComeLater) {
  std::string why;
  EXPECT_TRUE(Expectation("tap.inspect.connections[a=1].confirmed == 1").may_resolve(tables(), why));
  EXPECT_TRUE(Expectation("tap.inspect.connections.0.confirmed == 1").may_resolve(tables(), why));
  EXPECT_FALSE(Expectation("tap.inspect.conections[a=1].confirmed == 1").may_resolve(tables(), why));
  EXPECT_FALSE(Expectation("tap.inspect.connections[a=1].confirmed == 1").evaluate(tables()).holds);
}

TEST(Expectation, TextsThatAreNoRow) {
  for (const char* text : {"a[b == 1", "a[] == 1", "a[b] == 1", "a[=1] == 1", "a[b=] == 1", "a[b=1,] == 1",
                           "a[b=1]c == 1", "[b=1] == 1", "a. == 1", ".a == 1"})
    EXPECT_THROW(Expectation{text}, ConfigError) << text;
}

}  // namespace
}  // namespace rocebox
