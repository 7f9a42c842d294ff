// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/telemetry/json_report.h"

namespace rocebox {
namespace {

TEST(ReportText, JsonInTextOut) {
  struct Row {
    const char* json;
    const char* text;
  };
  constexpr Row kRows[] = {
      {"{}", ""},
      {R"({"a": 1})", "a 1\n"},
      {R"({"a": 0, "b": "", "c": false, "d": null, "e": 0.0, "f": {}, "g": []})", ""},
      {R"({"a": 1234567, "b": -1234, "c": 999, "d": 1000})", "a 1,234,567   b -1,234   c 999   d 1,000\n"},
      {R"({"a_ns": 9999, "b_ns": 10000, "c_ns": 25000000, "d_ns": 90000000000, "e_ns": -5})",
       "a 9999 ns   b 10.000 us   c 25.000 ms   d 90.000000 s   e -5 ns\n"},
      {R"({"a": true, "b": "x y", "c": 0.25})", "a yes   b x y   c 0.25\n"},
      {R"({"a": {"b": 1, "c": 0}, "d": 2})", "d 2\na\n  b 1\n"},
      {R"({"a": {"b": 0, "c": 0}})", ""},
      {R"({"rows": [{"a": 1, "t_ns": 5}, {"a": 22, "z": 3}]})",
       "rows (2)\n   a  t [ns]  z\n   1       5  -\n  22       -  3\n"},
      {R"({"psn": 9524366, "first_psn": 0, "last_psn": 16777215, "a_qpn_number": 4660})",
       "psn 9524366   first_psn 0   last_psn 16777215   a_qpn_number 4660\n"},
      {R"({"qpn": 57, "b_qpn": 0, "c_qpn": 16777215})", "qpn 0x000039   b_qpn 0x000000   c_qpn 0xffffff\n"},
      {R"({"qpn": -1, "psn": -1, "packet": 0})", ""},
      {R"({"rows": [{"qpn": -1, "psn": -1, "packet": 1234}, {"qpn": 17, "psn": 0, "packet": 0}]})",
       "rows (2)\n       qpn  psn  packet\n         -    -    1234\n  0x000011    0       -\n"},
      {R"({"packets": 1234, "number_of": 1234, "xpsn": 1234})", "packets 1,234   number_of 1,234   xpsn 1,234\n"},
      {R"({"a_bits_per_second": 22786800.0, "b_bits_per_second": 999.4, "c_bits_per_second": 100000000000})",
       "a 22.79 Mbps   b 999.4 bps   c 100.0 Gbps\n"},
      {R"({"a_bits_per_second": 999960, "b_bits_per_second": 9.9996e6, "c_bits_per_second": 0.0})",
       "a 1.000 Mbps   b 10.00 Mbps\n"},
      {R"({"words": ["x", 5]})", "words (2)\n  x\n  5\n"},
      // One unit a column, the one that the largest reads well in; zeros where others have values.
      {R"({"rows": [{"t_ns": 338000, "r_bits_per_second": 1562000000.0}, {"t_ns": 9175000, "r_bits_per_second": 22790000.0},
                    {"t_ns": 25000000, "r_bits_per_second": 0.0}]})",
       "rows (3)\n  t [ms]  r [Gbps]\n   0.338     1.562\n   9.175     0.023\n  25.000         0\n"},
      {R"({"rows": [{"name": "a", "lost": 0}, {"name": "long", "lost": 1200}]})",
       "rows (2)\n  name   lost\n  a         0\n  long  1,200\n"},
      {R"({"ports": {"a": {"rx": 1, "tx": 0, "bad": 0}, "bb": {"rx": 0, "tx": 2000, "bad": 0}}})",
       "ports  rx     tx\n  a     1      0\n  bb    0  2,000\n"},
      {R"({"ports": {"a": {"rx": 1}}})", "ports\n  a\n    rx 1\n"},
      {R"({"a": "x\u001b[31m", "rows": [{"b\u001b": "\u0007"}]})", "a x\\x1b[31m\nrows (1)\n  b\\x1b\n  \\x07\n"},
      {R"({"rows": [{"a": {"b": 1}}]})", "rows (1)\n  #1\n    a\n      b 1\n"},
  };
  for (const Row& row : kRows) EXPECT_EQ(report_text(Json::parse(row.json)), row.text) << row.json;
}

TEST(ReportText, LongLinesFlow) {
  Json json;
  for (int i = 0; i < 50; i++) json["counter_number_" + std::to_string(i)] = i + 1;
  const std::string text = report_text(json);
  std::size_t at = 0, lines = 0;
  for (std::size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1, lines++)
    EXPECT_LE(end - at, 110u);
  EXPECT_GT(lines, 5u);
  for (int i = 0; i < 50; i++) EXPECT_NE(text.find("counter_number_" + std::to_string(i) + " "), std::string::npos);
}

std::string rows_of(const Json& report, bool full) { return report_text(report, {full, false, 110}); }

TEST(ReportText, ATableShowsItsFirstRowsByWeightAndHowManyThereAre) {
  Json flows, events, nested, expectations;
  for (int i = 0; i < 100; i++) {
    flows["flows"].push_back({{"name", "f" + std::to_string(i)}, {"packets", i}, {"bytes", 100 - i}});
    events["events"].push_back({{"at_ns", i}, {"packets", i}});
    nested["flows"].push_back({{"packets", i}, {"requests", {{"lost", 1}}}});
    expectations["expectations"].push_back({{"holds", i != 60}, {"expect", "e" + std::to_string(i)}});
  }
  const std::string heaviest = rows_of(flows, false);
  EXPECT_TRUE(heaviest.starts_with(
      "flows (100; the 20 with the most packets, --full: all)\n  name  packets  bytes\n  f99        99      1\n"));
  EXPECT_EQ(std::count(heaviest.begin(), heaviest.end(), '\n'), 22);
  EXPECT_NE(heaviest.find("f80 "), std::string::npos);
  EXPECT_EQ(heaviest.find("f79 "), std::string::npos);
  const std::string all = rows_of(flows, true);
  EXPECT_TRUE(all.starts_with("flows (100)\n  name  packets  bytes\n  f0          0    100\n"));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 102);
  EXPECT_TRUE(rows_of(events, false)
                  .starts_with("events (100; the first 20, --full: all)\n  at [ns]  packets\n        0        0\n"));
  const std::string blocks = rows_of(nested, false);
  EXPECT_TRUE(blocks.starts_with("flows (100; the 4 with the most packets, --full: all)\n  #100\n    packets 99\n"));
  EXPECT_EQ(blocks.find("#96\n"), std::string::npos);
  EXPECT_TRUE(
      rows_of(expectations, false)
          .starts_with("expectations (100; the first 20, --full: all)\n  holds  expect\n  no     e60\n  yes    e0\n"));
}

TEST(ReportText, ColumnsThatSayNothingMakeRoomInALineThatIsTooLong) {
  Json json;
  json["inputs"].push_back(
      {{"file", std::string(90, 'f')}, {"packets", 5}, {"snapped", 0}, {"cut", 0}, {"skipped", 1}});
  EXPECT_TRUE(rows_of(json, false).find("snapped") == std::string::npos);
  EXPECT_TRUE(rows_of(json, false).find("skipped") != std::string::npos);
  EXPECT_TRUE(rows_of(json, true).find("snapped") != std::string::npos);
}

TEST(ReportText, ColorsAreAroundWordsAndChangeNoOther) {
  const Json json =
      Json::parse(R"({"a": {"b": 1, "drop_loss": 2}, "expectations": [{"holds": false, "expect": "x"}]})");
  EXPECT_EQ(report_text(json, {true, true, 110}),
            "\033[1ma\033[0m\n  b 1   \033[33mdrop_loss 2\033[0m\n\033[1mexpectations (1)\033[0m\n"
            "  \033[2mholds  expect\033[0m\n  \033[31mno     x\033[0m\n");
}

// The weight of a row may be missing, or be no number.
TEST(ReportText, RowsOfAnyKindAreShown) {
  Json json;
  for (int i = 0; i < 30; i++)
    json["rows"].push_back(i % 3 == 0 ? Json(i) : i % 3 == 1 ? Json{{"packets", "x"}} : Json{{"holds", 1}});
  EXPECT_NE(rows_of(json, false), "");
  std::swap(json["rows"][0], json["rows"][2]);
  EXPECT_NE(rows_of(json, false), "");
}

TEST(JsonReport, WritesWhatTheKernelSays) {
  Json json;
  JsonReport report(json);
  report.count("n", -5);
  report.real("r", 0.5);
  report.flag("f", true);
  report.text("t", "x");
  report.duration("d", 7);
  report.object("o", [](Report& r) { r.count("inner", 1); });
  report.table("rows", 2, [](Report& r, std::size_t row) { r.count("row", static_cast<std::int64_t>(row)); });
  EXPECT_EQ(json.dump(), R"({"n":-5,"r":0.5,"f":true,"t":"x","d_ns":7,"o":{"inner":1},"rows":[{"row":0},{"row":1}]})");
}

}  // namespace
}  // namespace rocebox
