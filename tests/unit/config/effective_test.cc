// SPDX-License-Identifier: BSD-3-Clause
// The effective configuration loads to itself; the tables and schema of options name every one.
#include <gtest/gtest.h>

#include "runtime/config/config.h"
#include "runtime/config/describe.h"
#include "runtime/config/printable.h"
#include "tests/unit/config/options_kit.h"

namespace rocebox::config {
namespace {

TEST(Effective, IsItsOwnEffectiveConfiguration) {
  for (const char* text : {"devices: {tap: {path: host <-> inspect <-> wire}}\n",
                           "devices: {tap: {path: [host <-> wire]}, b: {path: [x -> k -> y, y -> k.1, k.0 -> x], "
                           "kernels: {k: {type: inspect}}}}\n",
                           "seed: 0x7fffffffffffffff\ndrain: 0\npool: {small: 64, large: 16, giant: 2}\ndevices: {a: "
                           "{path: p <-> inspect <-> q}}\n"
                           "ports: {p: {pcap: {in: [\"a b.pcap\", \"it's.pcap\", '-'], filter: 'ip src 10.0.0.1 and "
                           "not (arp)', out: '#x: y.pcapng', pace: 2.5x, loop: 0}}, q: {pcap: {in: x, pace: max}}}\n"
                           "expect: ['a.inspect.naks == 0', 'a.p.rx_packets >= 1 - 5', \"1 < 2 # no comment\"]\n"}) {
    Registry registry;
    Mistakes mistakes("f.yaml");
    const std::string once = effective_yaml(load_text(text, "f.yaml", registry, mistakes, false));
    const std::string twice = effective_yaml(load_text(once, "f.yaml", registry, mistakes, false));
    EXPECT_TRUE(mistakes.none()) << mistakes.text() << "\n" << once;
    EXPECT_EQ(once, twice);
  }
}

// It is printed: names in it must not move a terminal's cursor, and must stay what they are.
TEST(Effective, ControlCharactersAreEscaped) {
  Registry registry;
  Mistakes mistakes("f.yaml");
  const RunConfig config = load_text(
      "devices: {tap: {path: a <-> b}}\nports: {a: {pcap: {out: \"\\e[31m\\x9b1m\\u00fc'\\x7f\\\\.pcap\"}}}\n",
      "f.yaml", registry, mistakes, false);
  const std::string written = effective_yaml(config);
  EXPECT_EQ(printable_lines(written), written);
  const RunConfig again = load_text(written, "f.yaml", registry, mistakes, false);
  ASSERT_TRUE(mistakes.none()) << mistakes.text();
  EXPECT_EQ(again.captures[0].out,
            "\x1b[31m\xc2\x9b"
            "1m\xc3\xbc'\x7f\\.pcap");
  EXPECT_EQ(again.captures[0].out, config.captures[0].out);
}

TEST(Unbound, PortsThatNothingNames) {
  Registry registry;
  Mistakes mistakes("f.yaml");
  const RunConfig config = load_text(
      "devices: {one: {path: a <-> b}, two: {path: a <-> b}, three: {path: a <-> b}}\n"
      "links: {l: {between: [one.b, two.a]}}\nports: {one.a: {pcap: {in: x}}, three.b: {net_null: {}}}\n",
      "f.yaml", registry, mistakes, false);
  std::string names;
  for (const PortName& port : unbound_ports(config)) names += port.text() + " ";
  EXPECT_EQ(names, "two.b three.a ");
}

TEST(Describe, ARowForEachOption) {
  const auto rows = describe(test::kOptionsType, Registry());
  std::string names;
  for (const OptionRow& row : rows) names += row.name + ":" + row.type + ":" + row.fallback + " ";
  EXPECT_EQ(names,
            "on:boolean:false count:integer:5 delay:duration:1ms rate:rate:unlimited room:bytes:64KiB loss:share:25% "
            "station:mac: host:address: network:prefix: name:text: "
            "words:list of texts: mode:slow|fast:slow group:group: group.inner:integer:1 events:list: "
            "events[].psn:integer:0 events[].note:text: ");
  EXPECT_EQ(rows[2].range, "0ns .. 1s");
  EXPECT_EQ(rows[2].doc, "a delay");
}

TEST(Describe, SchemaOfEachOption) {
  nlohmann::ordered_json object;
  FieldsSchema visitor(object);
  test::AllOptions().fields(visitor);
  const nlohmann::json json = nlohmann::json::parse(object.dump());
  for (const char* key : {"on", "count", "delay", "rate", "room", "loss", "station", "host", "network", "name", "words",
                          "mode", "group", "events"})
    EXPECT_TRUE(json["properties"].contains(key)) << key;
  EXPECT_EQ(json["properties"].size(), 14u);
  EXPECT_EQ(json["properties"]["station"]["pattern"], "^(([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2})?$");
  EXPECT_FALSE(json.contains("required"));
  EXPECT_EQ(json["properties"]["mode"]["enum"].size(), 2u);
  EXPECT_EQ(json["properties"]["events"]["maxItems"], 3);
  EXPECT_TRUE(json["properties"]["events"]["items"]["properties"].contains("note"));
  EXPECT_EQ(json["properties"]["group"]["properties"]["inner"]["anyOf"][0]["maximum"], 9);
}

}  // namespace
}  // namespace rocebox::config
