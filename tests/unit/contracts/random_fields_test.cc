// SPDX-License-Identifier: BSD-3-Clause
// What RandomFields draws is what a user could have written: read from its text it is the same.
#include "tests/unit/contracts/random_fields.h"

#include <gtest/gtest.h>

#include "runtime/config/fields_reader.h"

namespace rocebox::test::random_fields_test {
namespace {

struct Entry {
  std::optional<roce::IpAddress> address;
  std::int64_t number = 7;
  bool operator==(const Entry&) const = default;
  void fields(Fields& f) {
    f.address("address", address, Presence::kRequired, "x");
    f.integer("number", number, {-3, 1'000'000}, "x");
  }
};

struct Everything {
  std::optional<roce::Mac> mac, needed_mac;
  std::optional<roce::Prefix> prefix, needed_prefix;
  std::vector<Entry> entries;
  bool flag = false, rate_given = false;
  std::uint64_t rate = 0, bytes = 64;
  Nanos time = 1;
  int word = -1;
  bool operator==(const Everything&) const = default;
  void fields(Fields& f) {
    static constexpr std::string_view kWords[] = {"one", "two", "three"};
    f.mac("mac", mac, Presence::kOptional, "x");
    f.mac("needed_mac", needed_mac, Presence::kRequired, "x");
    f.group("inside", "x", [&](Fields& g) {
      g.prefix("prefix", prefix, Presence::kOptional, "x");
      g.prefix("needed_prefix", needed_prefix, Presence::kRequired, "x");
    });
    f.list("entries", entries, 8, "x");
    f.boolean("flag", flag, "x");
    f.rate("rate", rate, {0, 100'000'000'000}, "x");
    rate_given = f.given("rate");
    f.bytes("bytes", bytes, {64, 1 << 20}, "x");
    f.duration("time", time, {1, 3600 * kSecond}, "x");
    f.choice("word", word, kWords, "x");
  }
};

TEST(RandomFields, ReadsBackAsItWasDrawn) {
  unsigned v6 = 0, v4 = 0, group_macs = 0, known_hosts = 0, left_out = 0;
  for (std::uint64_t seed = 0; seed < 1000; seed++) {
    RandomFields random(seed, {.one_in = 3, .rate_min = 1'000'000, .duration_max = kSecond});
    Everything drawn;
    drawn.fields(random);
    ASSERT_FALSE(random.refused());
    ASSERT_TRUE(drawn.needed_mac && drawn.needed_prefix);
    ASSERT_TRUE(!drawn.rate_given || drawn.rate >= 1'000'000) << drawn.rate;
    ASSERT_LE(drawn.time, kSecond);

    config::Mistakes mistakes("drawn");
    const config::Node node = config::parse_yaml(random.yaml(), mistakes);
    config::FieldsReader reader(&node, mistakes);
    Everything read;
    read.fields(reader);
    reader.finish();
    ASSERT_TRUE(mistakes.none()) << mistakes.text() << random.yaml();
    ASSERT_EQ(read, drawn) << random.yaml();

    (drawn.needed_prefix->is_ipv4 ? v4 : v6)++;
    group_macs += (*drawn.needed_mac)[0] & 1;
    left_out += !drawn.prefix && !drawn.mac;
    for (const Entry& entry : drawn.entries) known_hosts += roce::address_text(*entry.address).starts_with("10.0.");
  }
  EXPECT_GT(v4, 500u);
  EXPECT_GT(v6, 50u);
  EXPECT_GT(group_macs, 50u);
  EXPECT_GT(known_hosts, 100u);
  EXPECT_GT(left_out, 200u);
}

}  // namespace
}  // namespace rocebox::test::random_fields_test
