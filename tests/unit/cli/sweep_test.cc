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

// A run that came to a standstill has no time, and its zeros are none.
TEST(Sweep, MeansAreOfRunsThatHaveValues) {
  Json rows = Json::array();
  const auto add = [&](const char* loss, int seed, bool finished, int done, int duration, int completion) {
    rows.push_back({{"loss", loss},
                    {"seed", seed},
                    {"finished", finished},
                    {"transfers_done", done},
                    {"duration_ns", duration},
                    {"completion_mean_ns", completion},
                    {"slowdown_mean", completion / 10.0},
                    {"span_ns", duration}});
  };
  add("1%", 1, false, 0, 1000, 0);
  add("1%", 2, true, 2, 100, 10);
  add("1%", 3, false, 1, 1000, 40);
  add("2%", 1, false, 0, 7, 0);
  EXPECT_EQ(sweep_means(rows).dump(),
            R"([{"loss":"1%","seeds":3,"finished_runs":1,"counted_runs":2,"transfers_done":1.0,"duration_ns":100.0,)"
            R"("completion_mean_ns":25.0,"slowdown_mean":2.5,"span_ns":700.0},)"
            R"({"loss":"2%","seeds":1,"finished_runs":0,"counted_runs":0,"transfers_done":0.0,"span_ns":7.0}])");
}

TEST(Sweep, MeansOfSeveralWorkloadsAreEachItsOwn) {
  Json rows = Json::array();
  for (const bool good : {true, false})
    rows.push_back({{"seed", good ? 1 : 2},
                    {"a.finished", true},
                    {"a.transfers_done", 1},
                    {"a.completion_p50_ns", 5},
                    {"b.finished", good},
                    {"b.transfers_done", good ? 1 : 0},
                    {"b.completion_p50_ns", good ? 9 : 0}});
  const Json means = sweep_means(rows)[0];
  EXPECT_EQ(means["a.counted_runs"], 2);
  EXPECT_EQ(means["a.completion_p50_ns"], 5.0);
  EXPECT_EQ(means["b.finished_runs"], 1);
  EXPECT_EQ(means["b.completion_p50_ns"], 9.0);
}

Json report_of(Json workload) {
  workload.update({{"finished", true},
                   {"failed", false},
                   {"transfers_done", 2},
                   {"duration_ns", 70},
                   {"goodput_bits_per_second", 8}});
  workload["completion"] = {{"mean_ns", 1}, {"p50_ns", 2}, {"p99_ns", 3}, {"p999_ns", 4}};
  workload["slowdown"] = {{"mean", 1.0}, {"p50", 1.5}, {"p99", 2.0}, {"p999", 2.5}};
  return {{"workloads", {{"w", workload}}},
          {"signals", {{"packet_seq_err", 3}, {"rx_prio0_pause_duration", 9}, {"pause_time_ns", 9000}}},
          {"run", {{"span_ns", 70}, {"end", "e"}}},
          {"hash", "h"}};
}

TEST(Sweep, ARowHasSignalsAndTheTimeOfPauses) {
  const Json row = sweep_row({{{"loss", "0"}}, 4}, report_of(Json::object()));
  EXPECT_EQ(row["packet_seq_err"], 3);
  EXPECT_EQ(row["pause_time_ns"], 9000);
  EXPECT_FALSE(row.contains("rx_prio0_pause_duration"));
  EXPECT_FALSE(row.contains("collective_mean_ns"));
}

TEST(Sweep, ARowHasTheTimesOfCollectives) {
  Json workload;
  workload["collectives"] = {
      {"count", 4},
      {"done", 4},
      {"completion", {{"mean_ns", 10}, {"p50_ns", 11}, {"p99_ns", 12}, {"p999_ns", 13}, {"max_ns", 14}}},
      {"slowdown", {{"mean", 1.1}, {"p50", 1.2}, {"p99", 1.3}, {"p999", 1.4}, {"max", 1.5}}}};
  Json row = sweep_row({{{"loss", "0"}}, 4}, report_of(workload));
  EXPECT_EQ(row["collectives_done"], 4);
  EXPECT_EQ(row["collective_max_ns"], 14) << "the last group";
  EXPECT_EQ(row["collective_slowdown_p99"], 1.3);
  // Of runs that did not finish some groups may be missing.
  Json cut = row;
  cut["seed"] = 5;
  cut["finished"] = false;
  cut["collective_max_ns"] = 1;
  EXPECT_EQ(sweep_means(Json::array({row, cut}))[0]["collective_max_ns"], 14.0);
}

TEST(Sweep, IsBrieflyWhatDiffers) {
  Json rows = Json::array();
  for (int seed = 1; seed < 4; seed++)
    rows.push_back({{"loss", "1%"},
                    {"seed", seed},
                    {"finished", true},
                    {"transfers_done", 1},
                    {"duration_ns", 100 + seed},
                    {"completion_mean_ns", 100 + seed},
                    {"slowdown_mean", 1 + 0.1 * seed},
                    {"packet_seq_err", 10 * seed},
                    {"retransmitted_packets", seed * seed},
                    {"end", "x"},
                    {"hash", std::to_string(seed)}});
  EXPECT_EQ(sweep_brief(rows, 110)[1].dump(),
            R"({"loss":"1%","seed":2,"duration_ns":102,"slowdown_mean":1.2,"retransmitted_packets":4,)"
            R"("packet_seq_err":20})");
  EXPECT_EQ(sweep_brief(rows, 50)[1].dump(), R"({"loss":"1%","seed":2,"duration_ns":102,"slowdown_mean":1.2})");
  EXPECT_EQ(sweep_brief(Json::array(), 60), Json::array());
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
