// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cli/sweep.h"

#include <gtest/gtest.h>

namespace rocebox::sweep_test {
namespace {

using namespace cli;

TEST(Sweep, HasEveryCombinationInTheOrderOfTheOptions) {
  std::string all;
  for (const SweepPoint& point : sweep_points({"loss=0,1%", "list=[1,2],x"}, 5, 2)) {
    for (const auto& [key, value] : point.settings) all += key + "=" + value + " ";
    all += std::to_string(point.seed) + "; ";
  }
  EXPECT_EQ(all,
            "loss=0 list=[1,2] 5; loss=0 list=[1,2] 6; loss=0 list=x 5; loss=0 list=x 6; "
            "loss=1% list=[1,2] 5; loss=1% list=[1,2] 6; loss=1% list=x 5; loss=1% list=x 6; ");
  EXPECT_EQ(sweep_points({}, 3, 1).size(), 1u);
}

TEST(Sweep, RefusesWhatIsNone) {
  EXPECT_THROW(parse_sweep("loss"), ConfigError);
  EXPECT_THROW(parse_sweep("loss="), ConfigError);
  EXPECT_THROW(parse_sweep("loss=1,,2"), ConfigError);
  std::string many = "x=1";
  for (int i = 0; i < 400; i++) many += ",1";
  EXPECT_THROW(sweep_points({many, many}, 1, 1), ConfigError);
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

}  // namespace
}  // namespace rocebox::sweep_test
