// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/config.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rocebox::config {
namespace {

RunConfig load(const std::string& text, std::string& found) {
  static Registry registry;
  Mistakes mistakes("dir/f.yaml");
  RunConfig config = load_text(text, "dir/f.yaml", registry, mistakes, false);
  found = mistakes.text();
  return config;
}
constexpr const char* kTap = "devices: {tap: {path: host <-> inspect <-> wire}}\n";

TEST(Config, ReadsAWholeOne) {
  std::string found;
  const RunConfig config =
      load(std::string(kTap) +
               "seed: 9\ndrain: 1s\npool: {small: 100}\nports:\n  host: {pcap: {in: a.pcap, filter: arp}}\n"
               "  tap.wire: {pcap: {in: [/b.pcap, '-'], out: ../c.pcap}}\nexpect: tap.inspect.naks == 0\n",
           found);
  ASSERT_EQ(found, "");
  EXPECT_EQ(config.seed, 9);
  EXPECT_EQ(config.drain, kSecond);
  EXPECT_EQ(config.pool.small, 100u);
  ASSERT_EQ(config.devices.size(), 1u);
  EXPECT_EQ(config.devices[0].wiring.ports, (std::vector<std::string>{"host", "wire"}));
  ASSERT_EQ(config.captures.size(), 2u);
  EXPECT_EQ(config.captures[0].in, std::vector<std::string>{"dir/a.pcap"}) << "beside the configuration";
  EXPECT_EQ(config.captures[1].in, (std::vector<std::string>{"/b.pcap", "-"}));
  EXPECT_EQ(config.captures[1].out, "c.pcap");
  EXPECT_EQ(config.expectations[0].text, "tap.inspect.naks == 0");
}

TEST(Config, MistakesWithTheirPlaces) {
  struct Row {
    std::string text;
    const char* words;
  };
  const std::string tap = kTap;
  const Row rows[] = {
      {"", "expected a mapping with `devices:`, found nothing"},
      {"5", "found a single value"},
      {"{}", "there is no device"},
      {"devics: {}\n", "f.yaml:1:1: unknown key `devics`; did you mean `devices`?"},
      {"devices: [a]\n", "`devices` must be a mapping from names, found a list"},
      {"devices: {tap: {}}\n", "device `tap` has no `path:`"},
      {"devices: {tap: 5}\n", "expected a mapping, found a single value"},
      {"devices: {tap: }\n", "device `tap` has no `path:`"},
      {"devices: {tap: {kind: swich, path: a <-> b}}\n", "`kind` must be one of bump"},
      {"devices: {tap: {path: a <-> inspekt <-> b}}\n", "unknown kernel `inspekt`"},
      {"devices: {tap: {path: a <-> x <-> b, kernels: {x: {type: inspekt}}}}\n",
       "names no kernel: `inspekt`; did you mean `inspect`?"},
      {"devices: {tap: {path: a <-> b, kernels: {x: {type: inspect}}}}\n", "kernel `x` stands in no path"},
      {tap + "seed: -1\n", "`seed` must be from 0"},
      {tap + "drain: 2\n", "a time with a unit"},
      {tap + "pool: {small: 1}\n", "from 64"},
      {tap + "ports: {hots: {pcap: {in: a}}}\n", "there is no port `hots`; known: tap.host, tap.wire"},
      {tap + "ports: {host: {}}\n", "is bound to nothing"},
      {tap + "ports: {host: {pcap: {on: a}}}\n", "unknown key `on`"},
      {tap + "ports: {host: {pcap: {in: a}}, tap.host: {pcap: {in: b}}}\n",
       "port `tap.host` is already taken by `ports:`"},
      {tap + "links: {l: {between: [host]}}\n", "needs `between:"},
      {tap + "links: {l: {}}\n", "needs `between:"},
      {tap + "links: {l: {between: [host, wier]}}\n", "there is no port `wier`; known: tap.host, tap.wire"},
      {tap + "links: {l: {between: [host, host]}}\n", "already taken by link `l`"},
      {tap + "links: {tap: {between: [host, wire]}}\n", "`tap` is already the name of a device"},
      {tap + "links: {l: {between: [host, wire]}}\nports: {wire: {pcap: {in: a}}}\n",
       "port `tap.wire` is already taken by link `l`"},
      {tap + "---\n" + tap, "more than one YAML document"},
      {tap + tap, "`devices` is given twice"}};
  for (const Row& row : rows) {
    std::string found;
    load(row.text, found);
    EXPECT_NE(found.find(row.words), std::string::npos) << row.text << "\n" << found;
    EXPECT_TRUE(found.starts_with("dir/f.yaml:")) << found;
  }
}

TEST(Config, AllMistakesAreReported) {
  std::string found;
  load(
      "sed: 1\ndrain: x\npool: {smal: 1}\ndevices:\n  a: {path: p <-> nope <-> q}\n  b: {kind: x}\nports: {zz: {pcap: "
      "{out: f}}}\n",
      found);
  for (const char* words : {":1:1: ", ":2:8: ", ":3:8: ", "nope", "`kind`", "`b` has no `path:`", "`zz`"})
    EXPECT_NE(found.find(words), std::string::npos) << words << "\n" << found;
}

TEST(Config, PortsByShortAndFullName) {
  std::string found, why;
  const RunConfig config =
      load("devices: {a: {path: host <-> inspect <-> x}, b: {path: host <-> inspect <-> y}}\n", found);
  ASSERT_EQ(found, "");
  PortName port;
  EXPECT_TRUE(resolve_port(config, "x", port, why));
  EXPECT_EQ(port.text(), "a.x");
  EXPECT_TRUE(resolve_port(config, "b.host", port, why));
  EXPECT_FALSE(resolve_port(config, "host", port, why));
  EXPECT_NE(why.find("in several devices; write `a.host`"), std::string::npos) << why;
  EXPECT_FALSE(resolve_port(config, "b.hots", port, why));
  EXPECT_NE(why.find("did you mean `b.host`?"), std::string::npos) << why;
  EXPECT_FALSE(resolve_port(config, "", port, why));
}

TEST(Config, FilesThatCannotBeRead) {
  Registry registry;
  Mistakes mistakes("/nonexistent.yaml");
  load("/nonexistent.yaml", registry, mistakes);
  EXPECT_NE(mistakes.text().find("/nonexistent.yaml: cannot be read: No such file"), std::string::npos)
      << mistakes.text();
}

TEST(Config, SchemaIsJsonWithEveryKey) {
  const Registry registry;
  const nlohmann::json json = nlohmann::json::parse(schema(registry).dump());
  for (const char* key : {"seed", "drain", "pool", "plugins", "devices", "links", "ports", "expect"})
    EXPECT_TRUE(json["properties"].contains(key)) << key;
  EXPECT_EQ(json["additionalProperties"], false);
  const auto& device = json["properties"]["devices"]["additionalProperties"]["properties"];
  for (const char* key : {"kind", "path", "kernels"}) EXPECT_TRUE(device.contains(key)) << key;
  EXPECT_EQ(device["kernels"]["additionalProperties"]["anyOf"].size(), registry.of_kind(kKernelKind).size())
      << "`switch` is a device";
  EXPECT_TRUE(json["properties"]["links"]["additionalProperties"]["properties"].contains("between"));
  for (const char* key : {"in", "out", "filter"})
    EXPECT_TRUE(json["properties"]["ports"]["additionalProperties"]["properties"]["pcap"]["properties"].contains(key))
        << key;
}

}  // namespace
}  // namespace rocebox::config
