// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

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
      {R"({"rows": [{"a": 1, "t_ns": 5}, {"a": 22, "z": 3}]})", "rows (2)\n  a   t     z\n  1   5 ns\n  22        3\n"},
      {R"({"psn": 9524366, "first_psn": 0, "last_psn": 16777215, "a_qpn_number": 4660})",
       "psn 9524366   first_psn 0   last_psn 16777215   a_qpn_number 4660\n"},
      {R"({"qpn": 57, "b_qpn": 0, "c_qpn": 16777215})", "qpn 0x000039   b_qpn 0x000000   c_qpn 0xffffff\n"},
      {R"({"qpn": -1, "psn": -1, "packet": 0})", ""},
      {R"({"rows": [{"qpn": -1, "psn": -1, "packet": 1234}, {"qpn": 17, "psn": 0, "packet": 0}]})",
       "rows (2)\n  qpn       psn  packet\n  -         -    1234\n  0x000011  0    -\n"},
      {R"({"packets": 1234, "number_of": 1234, "xpsn": 1234})", "packets 1,234   number_of 1,234   xpsn 1,234\n"},
      {R"({"a_bits_per_second": 22786800.0, "b_bits_per_second": 999.4, "c_bits_per_second": 100000000000})",
       "a 22.79 Mbps   b 999.4 bps   c 100.0 Gbps\n"},
      {R"({"a_bits_per_second": 999960, "b_bits_per_second": 9.9996e6, "c_bits_per_second": 0.0})",
       "a 1.000 Mbps   b 10.00 Mbps\n"},
      {R"({"words": ["x", 5]})", "words (2)\n  x\n  5\n"},
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
