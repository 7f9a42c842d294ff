// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/telemetry/top.h"

#include <gtest/gtest.h>

namespace rocebox {
namespace {

// A run with one port, device and kernel, after `seconds` at 1000 packets of 100 bytes a second.
Json sample(std::int64_t seconds) {
  const std::int64_t packets = 1000 * seconds, now = seconds * 1'000'000'000;
  const Json latency = {{"samples", 3}, {"p50_ns", 1500}, {"p99_ns", 2'000'000}, {"p999_ns", 3'000'000'000}};
  Json all;
  all["run"] = {{"instance", "tor"}, {"config", "tor.yaml"}, {"elapsed_ns", now},
                {"pool_in_use", 7},  {"pool_idle", 5},       {"drop_unbound", 30 * seconds}};
  all["run"]["shards"]["0"] = {{"shard", 0}, {"core", 3}, {"busy_ns", now / 4}};
  all["ports"]["bump.a"] = {
      {"elapsed_ns", now},
      {"live", {{"link", "up"}, {"rx_missed", 10 * seconds}, {"tx_full", 0}, {"latency_p50_ns", 1500}}},
      {"device", {{"rx_packets", packets}, {"rx_bytes", 100 * packets}, {"tx_packets", 0}, {"tx_bytes", 0}}}};
  all["ports"]["bump.z"] = {{"elapsed_ns", now}, {"device", {{"rx_packets", 0}}}};
  all["devices"]["bump"] = {{"elapsed_ns", now},
                            {"counters", {{"packets_in", packets}, {"packets_out", packets}, {"packets_held", 2}}},
                            {"latency", latency}};
  all["kernels"]["bump.link"] = {
      {"elapsed_ns", now},
      {"packets_in", 1500 * seconds},
      {"counters",
       {{"forward_packets", packets}, {"reverse_packets", 500 * seconds}, {"forward_drop_loss", 100 * seconds}}},
      {"latency", latency}};
  all["kernels"]["bump.fec"] = {{"elapsed_ns", now},
                                {"packets_in", 12'000 * seconds},
                                {"counters",
                                 {{"encode_packets", 9000 * seconds},
                                  {"encode_bytes", 9'000'000 * seconds},
                                  {"encode_units_max", seconds},
                                  {"decode_recovered", 0},
                                  {"encode_repairs", 10 * seconds}}},
                                {"kinds", {{"encode_units_max", "peak"}}},
                                {"latency", latency}};
  all["links"] = Json::object();
  return all;
}

TEST(Top, RatesAreThoseOfTheTimeBetween) {
  const Json block = top_block(sample(10), sample(12));
  EXPECT_EQ(block["elapsed_ns"], 12'000'000'000);
  EXPECT_EQ(block["interval_ns"], 2'000'000'000);
  EXPECT_DOUBLE_EQ(block["shards"][0]["busy"].get<double>(), 0.25);
  const Json& port = block["ports"][0];
  EXPECT_EQ(port["rx_packets_per_second"], 1000);
  EXPECT_EQ(port["rx_bits_per_second"], 800'000);
  EXPECT_EQ(port["tx_packets_per_second"], 0);
  EXPECT_EQ(port["latency_p50_ns"], 1500);
  EXPECT_EQ(block["ports"][1]["link"], "-") << "bound to nothing";
  EXPECT_EQ(block["devices"][0]["in_packets_per_second"], 1000);
  EXPECT_EQ(block["devices"][0]["packets_held"], 2);
  EXPECT_EQ(block["kernels"][0]["packets_per_second"], 1500);
  EXPECT_EQ(block["kernels"][1]["packets_per_second"], 12'000) << "whatever its own counters are called";
  const Json moving = {{{"at", "bump.link"}, {"counter", "forward_packets"}, {"total", 12'000}, {"per_second", 1000}},
                       {{"at", "bump.link"}, {"counter", "reverse_packets"}, {"total", 6000}, {"per_second", 500}},
                       {{"at", "bump.fec"}, {"counter", "encode_packets"}, {"total", 108'000}, {"per_second", 9000}},
                       {{"at", "bump.fec"}, {"counter", "encode_repairs"}, {"total", 120}, {"per_second", 10}}};
  EXPECT_EQ(block["counters"], moving);
  const Json drops = {
      {{"at", "run"}, {"reason", "drop_unbound"}, {"packets", 360}, {"packets_per_second", 30}},
      {{"at", "bump.a"}, {"reason", "rx_missed"}, {"packets", 120}, {"packets_per_second", 10}},
      {{"at", "bump.link"}, {"reason", "forward_drop_loss"}, {"packets", 1200}, {"packets_per_second", 100}}};
  EXPECT_EQ(block["drops"], drops);
}

TEST(Top, NoTimeIsNoRate) {
  const Json block = top_block(sample(10), sample(10));
  EXPECT_EQ(block["interval_ns"], 0);
  EXPECT_EQ(block["ports"][0]["rx_packets_per_second"], 0);
  EXPECT_EQ(block["shards"][0]["busy"], 0);
}

TEST(Top, WhatWasNotThereBeforeCountsFromNothing) {
  Json before = sample(10);
  before["kernels"] = Json::object();
  EXPECT_EQ(top_block(before, sample(12))["kernels"][0]["packets_per_second"], 1500);
}

TEST(Top, TextIsForPeople) {
  EXPECT_EQ(top_text(top_block(sample(10), sample(12))),
            "tor  tor.yaml  up 12.0 s  packets in use 7 (idle 5)\n"
            "\n"
            "shard  core    busy\n"
            "    0     3  25.0 %\n"
            "\n"
            "port    link         rx               tx            p50  p99  p99.9\n"
            "bump.a  up    1.00 kpps  800 kbps  0 pps  0 bps  1.5 us    -      -\n"
            "bump.z  -         0 pps     0 bps  0 pps  0 bps       -    -      -\n"
            "\n"
            "device         in        out  dropped  held     p50     p99  p99.9\n"
            "bump    1.00 kpps  1.00 kpps    0 pps     2  1.5 us  2.0 ms  3.0 s\n"
            "\n"
            "kernel       packets     p50     p99  p99.9\n"
            "bump.link  1.50 kpps  1.5 us  2.0 ms  3.0 s\n"
            "bump.fec   12.0 kpps  1.5 us  2.0 ms  3.0 s\n"
            "\n"
            "drops at   reason             packets      now\n"
            "run        drop_unbound           360   30 pps\n"
            "bump.a     rx_missed              120   10 pps\n"
            "bump.link  forward_drop_loss     1200  100 pps\n"
            "\n"
            "moving at  counter           total       now\n"
            "bump.link  forward_packets   12000  1.00 k/s\n"
            "bump.link  reverse_packets    6000    500 /s\n"
            "bump.fec   encode_packets   108000  9.00 k/s\n"
            "bump.fec   encode_repairs      120     10 /s\n");
}

}  // namespace
}  // namespace rocebox
