// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/units.h"

#include <gtest/gtest.h>

#include <random>

namespace rocebox::config {
namespace {

TEST(Units, RandomValuesRoundTrip) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200'000; round++) {
    std::uint64_t value = random() >> (1 + random() % 62);
    for (std::uint64_t unit : {1000ull, 1024ull})
      for (unsigned i = 0; i < random() % 5 && value < (1ull << 53); i++) value *= unit;
    ASSERT_EQ(parse_duration(format_duration(static_cast<Nanos>(value))), static_cast<Nanos>(value)) << value;
    ASSERT_EQ(parse_rate(format_rate(value)), value) << value;
    ASSERT_EQ(parse_bytes(format_bytes(value)), value) << value;
    ASSERT_EQ(parse_integer(std::to_string(value)), static_cast<std::int64_t>(value));
    const double share = static_cast<double>(random() >> 11) * 0x1p-53;
    ASSERT_EQ(parse_fraction(format_fraction(share)), share) << share;
    ASSERT_EQ(parse_fraction(format_fraction(1.0 / static_cast<double>(1 + random() % 1'000'000))).has_value(), true);
  }
  for (double share : {0.0, 1.0, 0.5, 0.01, 0.0001, 1e-9, 5e-324, 0.3, 1.0 / 3})
    EXPECT_EQ(parse_fraction(format_fraction(share)), share);
}

struct UnitRow {
  const char* text;
  std::optional<std::int64_t> value;
};

TEST(Units, Durations) {
  constexpr UnitRow kRows[] = {{"0", 0},
                               {"0ns", 0},
                               {"250ns", 250},
                               {"10us", 10'000},
                               {"25ms", 25'000'000},
                               {"1.5s", 1'500'000'000},
                               {"2min", 120'000'000'000},
                               {"1.5min", 90'000'000'000},
                               {"0.1s", 100'000'000},
                               {" 1 ms ", 1'000'000},
                               {"1_000us", 1'000'000},
                               {"1.000000001s", 1'000'000'001},
                               {"9223372036854775807ns", INT64_MAX},
                               {"9223372036.854775807s", INT64_MAX},
                               {"9223372036854775808ns", {}},
                               {"9223372036.854775808s", {}},
                               {"0.5ns", {}},
                               {"1.0000000001s", {}},
                               {"5", {}},
                               {"", {}},
                               {" ", {}},
                               {"s", {}},
                               {"-1s", {}},
                               {"+1s", {}},
                               {"1 s s", {}},
                               {"1.s", {}},
                               {".5s", {}},
                               {"1.2.3s", {}},
                               {"1e3s", {}},
                               {"1S", {}},
                               {"1sec", {}},
                               {"0x10ns", {}},
                               {"1\tms", {}},
                               {"_s", {}},
                               {"99999999999999999999s", {}},
                               {"1m", {}},
                               {"1h", {}}};
  for (const UnitRow& row : kRows) EXPECT_EQ(parse_duration(row.text), row.value) << row.text;
}

TEST(Units, Rates) {
  constexpr UnitRow kRows[] = {{"unlimited", 0},
                               {"0", 0},
                               {"0bps", 0},
                               {"9600bps", 9600},
                               {"2.5Mbps", 2'500'000},
                               {"100Gbps", 100'000'000'000},
                               {"1.6Tbps", 1'600'000'000'000},
                               {"1kbps", 1000},
                               {"1Kbps", 1000},
                               {"100", {}},
                               {"100G", {}},
                               {"1gbps", {}},
                               {"0.5bps", {}},
                               {"Unlimited", {}},
                               {"-1bps", {}},
                               {"1MBps", {}}};
  for (const UnitRow& row : kRows) {
    const auto value = parse_rate(row.text);
    EXPECT_EQ(value.has_value(), row.value.has_value()) << row.text;
    if (value && row.value) {
      EXPECT_EQ(*value, static_cast<std::uint64_t>(*row.value)) << row.text;
    }
  }
}

TEST(Units, Bytes) {
  constexpr UnitRow kRows[] = {{"0", 0},
                               {"1500", 1500},
                               {"1500B", 1500},
                               {"64KiB", 65536},
                               {"1MB", 1'000'000},
                               {"1.5MB", 1'500'000},
                               {"2MiB", 2'097'152},
                               {"1GiB", 1 << 30},
                               {"1kB", 1000},
                               {"1.5", {}},
                               {"1.5B", {}},
                               {"1 K", {}},
                               {"1kb", {}},
                               {"1b", {}},
                               {"B", {}}};
  for (const UnitRow& row : kRows) {
    const auto value = parse_bytes(row.text);
    EXPECT_EQ(value.has_value(), row.value.has_value()) << row.text;
    if (value && row.value) {
      EXPECT_EQ(*value, static_cast<std::uint64_t>(*row.value)) << row.text;
    }
  }
}

TEST(Units, Integers) {
  constexpr UnitRow kRows[] = {{"17", 17},
                               {"-3", -3},
                               {"0x11", 17},
                               {"0XfF", 255},
                               {"1_000_000", 1'000'000},
                               {"-0x10", -16},
                               {" 5 ", 5},
                               {"9223372036854775807", INT64_MAX},
                               {"-9223372036854775807", -INT64_MAX},
                               {"9223372036854775808", {}},
                               {"18446744073709551616", {}},
                               {"", {}},
                               {"-", {}},
                               {"0x", {}},
                               {"_", {}},
                               {"1.0", {}},
                               {"1e3", {}},
                               {"+1", {}},
                               {"--1", {}},
                               {"0x-1", {}},
                               {"1 2", {}},
                               {"0b1", {}},
                               {"017", 17},
                               {"x", {}}};
  for (const UnitRow& row : kRows) EXPECT_EQ(parse_integer(row.text), row.value) << row.text;
}

TEST(Units, Fractions) {
  EXPECT_EQ(parse_fraction("0.01%"), 0.0001);
  EXPECT_EQ(parse_fraction("100%"), 1.0);
  EXPECT_EQ(parse_fraction("1e-4"), 1e-4);
  EXPECT_EQ(parse_fraction(" 5 % "), 0.05);
  EXPECT_EQ(parse_fraction(".5"), 0.5);
  for (const char* text :
       {"", "%", " % ", "nan", "inf", "-inf%", "1e999", "0x1p-1", "1%%", "1,5", "0.1.2", "+1", "half"})
    EXPECT_FALSE(parse_fraction(text)) << text;
}

TEST(Units, Paces) {
  EXPECT_EQ(parse_pace("as_captured"), 1.0);
  EXPECT_EQ(parse_pace(" 10x "), 10.0);
  EXPECT_EQ(parse_pace("0.5x"), 0.5);
  EXPECT_EQ(parse_pace("max"), 0.0);
  for (const char* text : {"", "x", "10", "0x", "-1x", "nanx", "infx", "1e9x", "0.0001x", "10xx", "10 x", "fast"})
    EXPECT_FALSE(parse_pace(text)) << text;
  for (double pace : {0.0, 0.001, 1.0, 2.5, 1e6}) EXPECT_EQ(parse_pace(format_pace(pace)), pace);
}

TEST(Units, ZeroAndLargest) {
  EXPECT_EQ(format_duration(0), "0ns");
  EXPECT_EQ(format_rate(0), "unlimited");
  EXPECT_EQ(format_bytes(0), "0B");
  EXPECT_EQ(format_duration(90 * 1'000'000'000ll), "90s");
  EXPECT_EQ(format_rate(100'000'000'000), "100Gbps");
  EXPECT_EQ(format_bytes(65536), "64KiB");
  EXPECT_EQ(format_duration(INT64_MAX), "9223372036854775807ns");
}

TEST(Units, SocketAddresses) {
  for (const std::string text : {"127.0.0.1:9464", "[::1]:9464", "localhost:0", "[fe80::1%eth0]:65535"}) {
    const auto address = parse_socket_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(address->text(), text);
  }
  EXPECT_EQ(parse_socket_address("[::1]:9464")->host, "::1");
  for (const std::string text : {"", ":", "9464", "127.0.0.1", "127.0.0.1:", ":9464", "::1:9464", "[]:1", "a:65536",
                                 "a:-1", "a:+1", "a:0x10", "a b:1", "a:1_0", "[::1]", "http://a:1"})
    EXPECT_FALSE(parse_socket_address(text)) << text;
}

}  // namespace
}  // namespace rocebox::config
