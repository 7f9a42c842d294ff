// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/metrics.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace rocebox {
namespace {

TEST(Metrics, AreWrittenAsOpenMetricsWantsThem) {
  Metrics metrics("tor");
  metrics.counter("rocebox_rx_packets", "packets that came", {{"port", "a"}}, 12);
  metrics.counter("rocebox_rx_packets", "not said twice", {{"port", "b"}}, 9e15);
  metrics.gauge("rocebox_held_bytes", "bytes held", {}, 0.5);
  metrics.info("rocebox_run", "what runs", {{"config", "x.yaml"}});
  EXPECT_EQ(metrics.text(),
            "# TYPE rocebox_rx_packets counter\n"
            "# HELP rocebox_rx_packets packets that came\n"
            "rocebox_rx_packets_total{instance=\"tor\",port=\"a\"} 12\n"
            "rocebox_rx_packets_total{instance=\"tor\",port=\"b\"} 9000000000000000\n"
            "# TYPE rocebox_held_bytes gauge\n"
            "# UNIT rocebox_held_bytes bytes\n"
            "# HELP rocebox_held_bytes bytes held\n"
            "rocebox_held_bytes{instance=\"tor\"} 0.5\n"
            "# TYPE rocebox_run info\n"
            "# HELP rocebox_run what runs\n"
            "rocebox_run_info{instance=\"tor\",config=\"x.yaml\"} 1\n"
            "# EOF\n");
}

TEST(Metrics, OfNothingAreAnEnd) { EXPECT_EQ(Metrics("").text(), "# EOF\n"); }

TEST(Metrics, OfShardsAreAddedUpAndInfoIsNot) {
  Metrics metrics("");
  for (int shard = 0; shard < 3; shard++) {
    metrics.counter("x", "s", {{"a", "1"}}, 5);
    metrics.gauge("y", "s", {}, 2);
    metrics.info("z", "s", {});
    metrics.number(CounterKind::kCount, "count", "s", {}, 10 + shard);
    metrics.number(CounterKind::kLevel, "level", "s", {}, 10 + shard);
    metrics.number(CounterKind::kPeak, "peak", "s", {}, shard == 1 ? 12 : 10);
  }
  const std::string text = metrics.text();
  EXPECT_NE(text.find("# TYPE count counter\n# HELP count s\ncount_total 33\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE level gauge\n# HELP level s\nlevel 33\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE peak gauge\n# HELP peak s\npeak 12\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nx_total{a=\"1\"} 15\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\ny 6\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nz_info 1\n"), std::string::npos) << text;
}

TEST(Metrics, EscapeWhatWouldEndALineOrALabel) {
  Metrics metrics("a\"b");
  metrics.counter("x", "two\nlines \\ and \"words\"", {{"path", "C:\\new\n"}}, 1);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("# HELP x two\\nlines \\\\ and \\\"words\\\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("x_total{instance=\"a\\\"b\",path=\"C:\\\\new\\n\"} 1\n"), std::string::npos) << text;
}

TEST(Metrics, HaveNamesThatAreNames) {
  Metrics metrics("");
  metrics.counter("rocebox_my-kernel.x_total", "s", {}, 1);
  metrics.gauge("9x", "s", {}, 1);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("\nrocebox_my_kernel_x_total 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n_9x 1\n"), std::string::npos) << text;
}

TEST(Metrics, SummariesAreInSeconds) {
  Metrics metrics("");
  Histogram histogram;
  metrics.summary("empty_seconds", "s", {}, histogram);
  for (int i = 0; i < 100; i++) histogram.add(1'000'000);
  metrics.summary("full_seconds", "s", {{"port", "a"}}, histogram);
  const std::string text = metrics.text();
  EXPECT_NE(text.find("empty_seconds{quantile=\"0.5\"} NaN\n"), std::string::npos) << text;
  EXPECT_NE(text.find("empty_seconds_count 0\nempty_seconds_sum 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# TYPE full_seconds summary\n# UNIT full_seconds seconds\n"), std::string::npos) << text;
  EXPECT_NE(text.find("full_seconds{port=\"a\",quantile=\"0.999\"} 0.001\n"), std::string::npos) << text;
  EXPECT_NE(text.find("full_seconds_count{port=\"a\"} 100\nfull_seconds_sum{port=\"a\"} 0.1\n"), std::string::npos)
      << text;
}

TEST(Metrics, OfOneNameHaveOneKind) {
  Metrics metrics("");
  metrics.counter("x", "s", {}, 1);
  EXPECT_THROW(metrics.gauge("x", "s", {}, 1), std::logic_error);
}

}  // namespace
}  // namespace rocebox
