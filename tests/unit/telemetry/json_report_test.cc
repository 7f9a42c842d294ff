// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/json_report.h"

#include <gtest/gtest.h>

namespace rocebox {
namespace {

void report_shard(Json& json, std::int64_t n, bool later) {
  JsonReport writer(json);
  writer.object("a", [&](Report& a) {
    a.count("n", n);
    a.peak("n_max", n);
    a.setting("paths", std::int64_t{4});
    a.setting("share", 0.25);
    a.flag("on", true);
    a.text("word", "x");
    a.table("rows", 1, [&](Report& row, std::size_t) { row.count("q", n); });
    if (later) a.count("new", 3);
  });
  writer.real("f", later ? 0.25 : 0.5);
  writer.duration("t", n);
}

TEST(JsonReport, OfShardsIsSummedUpAsEachNumberSays) {
  Json sum;
  report_shard(sum, 41, false);
  report_shard(sum, 1, true);
  EXPECT_EQ(sum, Json::parse(R"({"a": {"n": 42, "n_max": 41, "paths": 4, "share": 0.25, "on": true, "word": "x",
                                       "rows": [{"q": 41}, {"q": 1}], "new": 3},
                                 "f": 0.75, "t_ns": 42})"));
}

TEST(JsonReport, OfOneShardIsWhatItSaid) {
  Json json;
  report_shard(json, -7, false);
  EXPECT_EQ(json, Json::parse(R"({"a": {"n": -7, "n_max": -7, "paths": 4, "share": 0.25, "on": true, "word": "x",
                                        "rows": [{"q": -7}]},
                                  "f": 0.5, "t_ns": -7})"));
}

}  // namespace
}  // namespace rocebox
