// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/fields_reader.h"

#include <gtest/gtest.h>

#include "tests/unit/config/options_kit.h"

namespace rocebox::config {
namespace {

test::AllOptions read(const std::string& text, std::string* mistakes_text = nullptr) {
  Mistakes mistakes("f");
  const Node root = parse_yaml(text, mistakes);
  FieldsReader reader(&root, mistakes);
  test::AllOptions options;
  options.fields(reader);
  reader.finish();
  if (mistakes_text)
    *mistakes_text = mistakes.text();
  else
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return options;
}

TEST(FieldsReader, ReadsEveryKind) {
  const auto o = read(
      "on: yes\ncount: -0x3\ndelay: 2.5ms\nrate: 10Gbps\nroom: 4KiB\nloss: 1%\nname: x y\nwords: [a, b]\n"
      "mode: fast\nstation: 02:00:00:00:AB:01\nhost: 10.1.2.3\nnetwork: '2001:db8::/32'\ngroup: {inner: 3}\nevents:\n- "
      "{psn: 1}\n- {psn: 2, note: z}\n");
  EXPECT_TRUE(o.on);
  EXPECT_EQ(o.count, -3);
  EXPECT_EQ(o.delay, 2'500'000);
  EXPECT_EQ(o.rate, 10'000'000'000u);
  EXPECT_EQ(o.room, 4096u);
  EXPECT_EQ(o.loss, 0.01);
  EXPECT_EQ(o.station, (roce::Mac{2, 0, 0, 0, 0xAB, 1}));
  EXPECT_EQ(o.host, roce::parse_address("10.1.2.3"));
  EXPECT_EQ(o.network, (roce::Prefix{roce::parse_address("2001:db8::").value(), false, 32}));
  EXPECT_EQ(o.name, "x y");
  EXPECT_EQ(o.words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(o.mode, test::AllOptions::Mode::kFast);
  EXPECT_EQ(o.inner, 3);
  ASSERT_EQ(o.events.size(), 2u);
  EXPECT_EQ(o.events[1].note, "z");
  EXPECT_EQ(read("words: one\n").words, std::vector<std::string>{"one"});
  EXPECT_EQ(read("").delay, kMillisecond);
  EXPECT_EQ(read("rate: unlimited\n").rate, 0u);
}

TEST(FieldsReader, MistakesWithPlaceAndWords) {
  struct Row {
    const char* text;
    const char* words;
  };
  constexpr Row kRows[] = {
      {"on: maybe", "f:1:5: `on` must be true or false, found `maybe`"},
      {"count: many", "f:1:8: `count` must be a whole number, found `many`"},
      {"count: 11", "f:1:8: `count` must be from -10 to 10, found `11`"},
      {"count: -11", "from -10 to 10"},
      {"count: 99999999999999999999", "whole number"},
      {"count: [1]", "f:1:8: `count` must be a whole number, found a list"},
      {"count:", "`count` has no value"},
      {"count: 7", "f:1:8: `count` is unlucky"},
      {"delay: 5", "a time with a unit"},
      {"delay: 2s", "from 0ns to 1s"},
      {"rate: 1Tbps", "100Gbps"},
      {"room: 1", "from 64B to 1MiB"},
      {"loss: 101%", "from 0% to 100%"},
      {"loss: -0.1", "from 0% to 100%"},
      {"loss: nan", "a share"},
      {"station: 02:00:00:00:00", "f:1:10: `station` must be a MAC address, such as "},
      {"station: [1]", "f:1:10: `station` must be a MAC address, such as 02:00:00:00:00:01, found a "},
      {"host: 10.0.0", "f:1:7: `host` must be an IPv4 or IPv6 address, such as "},
      {"host: 10.0.0.1/8", "found `10.0.0.1/8`"},
      {"network: 10.0.0.0", "`network` must be a prefix, such as 10.0.0.0/24 or 2001:db8::/64, found "},
      {"network: 10.0.0.0/33", "`network` must have a length from 0 to 32, found `10.0.0.0/33`"},
      {"network: 10.0.0.1/24", "`network` has address bits behind its length: `10.0.0.1/24`"},
      {"name: {a: b}", "`name` must be a text, found a mapping"},
      {"words: {a: b}", "a text or a list of texts, found a mapping"},
      {"words: [a, [b]]", "f:1:12: an entry of `words` must be a text, found a list"},
      {"mode: fost", "must be one of slow, fast, found `fost`; did you mean `fast`?"},
      {"group: 5", "f:1:8: `group` must be a mapping, found a single value"},
      {"group: {iner: 5}", "f:1:9: unknown key `iner`; did you mean `inner`?"},
      {"events: {psn: 1}", "`events` must be a list, found a mapping"},
      {"events: [5]", "f:1:10: expected a mapping, found a single value"},
      {"events: [{psn: 1}, {psn: 101}]", "f:1:26: `psn` must be from 0 to 100"},
      {"events: [{}, {}, {}, {}]", "`events` has 4 entries, at most 3"},
      {"dely: 1ms", "f:1:1: unknown key `dely`; did you mean `delay`?"},
      {"[1]", "expected a mapping, found a list"},
      {"5", "expected a mapping"}};
  for (const Row& row : kRows) {
    std::string found;
    read(row.text, &found);
    EXPECT_NE(found.find(row.words), std::string::npos) << row.text << "\n" << found;
    EXPECT_EQ(found.find('\n'), std::string::npos) << "one mistake: " << found;
  }
}

TEST(FieldsReader, AllMistakesAreReported) {
  std::string found;
  const auto o = read(
      "on: 1\ncount: x\ndelay: 5\nrate: 5\nroom: 5\nloss: 5\nmode: x\ngroup: {inner: 10, x: 1}\nevents: [{psn: -1, y: "
      "2}]\nz: 1\n",
      &found);
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n') + 1, 12) << found;
  EXPECT_EQ(o.delay, kMillisecond) << "a refused value leaves the default";
}

// An address that must come out: one mistake, where the mapping stands or where nothing was written.
TEST(FieldsReader, AddressesThatMustBeThere) {
  struct Ends {
    std::optional<roce::IpAddress> from, to = roce::parse_address("10.0.0.2");
    std::string mistakes;
    OptionValues values;
  };
  const auto ends_of = [](const char* text) {
    Mistakes mistakes("f");
    const Node root = parse_yaml(text, mistakes);
    FieldsReader reader(&root, mistakes);
    Ends ends;
    reader.address("from", ends.from, Presence::kRequired, "an end");
    reader.address("to", ends.to, Presence::kRequired, "the other");
    reader.finish();
    ends.mistakes = mistakes.text();
    ends.values = reader.values();
    return ends;
  };
  const std::string must = "must be given: an IPv4 or IPv6 address, such as 10.0.0.1 or 2001:db8::1";
  EXPECT_EQ(ends_of("{}").mistakes, "f:1:1: `from` " + must);
  EXPECT_EQ(ends_of("from: ''").mistakes, "f:1:7: `from` " + must);
  EXPECT_EQ(ends_of("{from: '::1', to: ''}").mistakes, "f:1:19: `to` " + must);
  for (const char* text : {"from: {}", "from: here", "from:"}) {
    const std::string found = ends_of(text).mistakes;
    EXPECT_TRUE(found.find('\n') == std::string::npos && found.find("must be given") == std::string::npos) << found;
  }
  const Ends right = ends_of("from: 2001:DB8:0::1");
  EXPECT_EQ(right.mistakes, "");
  EXPECT_EQ(right.values[0].text, "2001:db8::1");
  EXPECT_EQ(right.values[1].text, "10.0.0.2");
}

// A default is taken back by writing nothing.
TEST(FieldsReader, AnAddressWrittenAsNothingIsNone) {
  Mistakes mistakes("f");
  const Node root = parse_yaml("a: ''", mistakes);
  FieldsReader reader(&root, mistakes);
  std::optional<roce::Mac> mac = roce::parse_mac("02:00:00:00:00:01");
  reader.mac("a", mac, Presence::kOptional, "");
  EXPECT_TRUE(mistakes.none());
  EXPECT_FALSE(mac);
}

TEST(FieldsReader, GivenSaysWhatWasWritten) {
  Mistakes mistakes("f");
  const Node root = parse_yaml("a: 1\nb:\n", mistakes);
  FieldsReader reader(&root, mistakes), nothing(nullptr, mistakes);
  EXPECT_TRUE(reader.given("a"));
  EXPECT_FALSE(reader.given("c"));
  EXPECT_FALSE(nothing.given("a"));
  EXPECT_EQ(reader.place_of("a").column, 4);
}

}  // namespace
}  // namespace rocebox::config
