// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep.h"

#include <gtest/gtest.h>

namespace rocebox::sweep_test {
namespace {

using namespace cli;

TEST(Sweep, HasEveryCombinationInTheOrderOfTheOptions) {
  std::string all;
  for (const SweepPoint& point : sweep_points({"loss=0,1%", "list=[1,2],x"}, 2)) all += settings_text(point) + "; ";
  EXPECT_EQ(all, "loss=0 list=[1,2]; loss=0 list=x; loss=1% list=[1,2]; loss=1% list=x; ");
  EXPECT_EQ(sweep_points({}, 1).size(), 1u);
}

TEST(Sweep, CountsSeedsFromThatOfEachCombination) {
  std::string all;
  for (const SweepPoint& point : with_seeds({{{{"s", "5"}}, 5}, {{{"seed", "9"}}, 9}}, 2))
    all += run_text(point) + "; ";
  EXPECT_EQ(all, "s=5 seed=5; s=5 seed=6; seed=9; seed=10; ");
}

TEST(Sweep, RefusesWhatIsNone) {
  EXPECT_THROW(parse_sweep("loss"), ConfigError);
  EXPECT_THROW(parse_sweep("loss="), ConfigError);
  EXPECT_THROW(parse_sweep("loss=1,,2"), ConfigError);
  std::string many = "x=1";
  for (int i = 0; i < 400; i++) many += ",1";
  EXPECT_THROW(sweep_points({many, many}, 1), ConfigError);
}

TEST(Sweep, MeansAreOfTheSeedsOfOneCombination) {
  Json rows = Json::array();
  for (const auto& [loss, seed, time] : {std::tuple("0", 1, 10), {"0", 2, 30}, {"1%", 1, 7}, {"1%", 2, 8}})
    rows.push_back({{"loss", loss}, {"seed", seed}, {"span_ns", time}, {"end", "x"}, {"hash", "y"}});
  EXPECT_EQ(sweep_means(rows).dump(),
            R"([{"loss":"0","seeds":2,"span_ns":20.0},{"loss":"1%","seeds":2,"span_ns":7.5}])");
}

TEST(Sweep, CsvIsQuotedWhereItMustBe) {
  EXPECT_EQ(csv_text(Json::array({{{"a", "x,y"}, {"b", 1}}, {{"a", "p\"q"}, {"b", 2.5}}})),
            "a,b\r\n\"x,y\",1\r\n\"p\"\"q\",2.5\r\n");
  EXPECT_EQ(csv_text(Json::array()), "");
}

TEST(Sweep, CsvHasTheColumnsOfAllRows) {
  const Json rows = Json::array({{{"loss", "0"}, {"done", 1}, {"end", "x"}},
                                 {{"loss", "0"}, {"b.done", 2}, {"b.bytes", 3}, {"end", "y"}},
                                 {{"end", "z"}, {"loss", "1%"}, {"done", 4}}});
  EXPECT_EQ(csv_text(rows),
            "loss,done,b.done,b.bytes,end\r\n"
            "0,1,,,x\r\n"
            "0,,2,3,y\r\n"
            "1%,4,,,z\r\n");
}

}  // namespace
}  // namespace rocebox::sweep_test
