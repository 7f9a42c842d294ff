// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/settings.h"

#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::settings_test {
namespace {

using config::Setting;

// The document's scalars by path.
void flatten(const config::Node& node, const std::string& path, std::string& all) {
  if (node.kind == config::Node::Kind::kScalar) all += path + "=" + node.scalar + " ";
  for (const config::Node& item : node.items) flatten(item, path + "[]", all);
  for (const config::Entry& entry : node.entries)
    if (entry.key != "parameters") flatten(entry.value, path + (path.empty() ? "" : ".") + entry.key, all);
}

std::string applied(const std::string& yaml, const std::vector<Setting>& settings, std::string* mistakes = nullptr) {
  config::Mistakes found("f.yaml");
  config::Node root = config::parse_yaml(yaml, found);
  config::apply_settings(root, settings, found);
  if (mistakes)
    *mistakes = found.text();
  else
    EXPECT_TRUE(found.none()) << found.text();
  std::string all;
  flatten(root, "", all);
  return all;
}

TEST(Settings, ReplaceAndAddValuesByPath) {
  const std::string yaml = "seed: 1\nlinks: {haul: {delay: 5ms}}\n";
  EXPECT_EQ(applied(yaml, {}), "seed=1 links.haul.delay=5ms ");
  EXPECT_EQ(applied(yaml, {{"seed", "7"}}), "seed=7 links.haul.delay=5ms ");
  EXPECT_EQ(applied(yaml, {{"links.haul.loss", "1%"}}), "seed=1 links.haul.delay=5ms links.haul.loss=1% ");
  EXPECT_EQ(applied(yaml, {{"a.b.c", "[x, y]"}}), "seed=1 links.haul.delay=5ms a.b.c[]=x a.b.c[]=y ");
  EXPECT_EQ(applied(yaml, {{"seed", "7"}, {"seed", "8"}}), "seed=8 links.haul.delay=5ms ") << "the last one holds";
}

TEST(Settings, ParametersStandWhereTheyAreNamed) {
  const std::string yaml = "parameters: {loss: 0, name: x, all: [1, 2]}\na: $loss\nb: p$name.y\nc: $all\nd: 5$$\n";
  EXPECT_EQ(applied(yaml, {}), "a=0 b=px.y c[]=1 c[]=2 d=5$ ");
  EXPECT_EQ(applied(yaml, {{"loss", "1%"}}), "a=1% b=px.y c[]=1 c[]=2 d=5$ ");
  EXPECT_EQ(applied("a: $5\n", {}), "a=$5 ") << "without parameters it means nothing";
}

TEST(Settings, MistakesAreTold) {
  const struct Row {
    std::string yaml;
    std::vector<Setting> settings;
    std::string words;
  } rows[] = {
      {"parameters: {loss: 0}\na: $los\n", {}, "f.yaml:2:4: there is no parameter `$los`; did you mean `loss`?"},
      {"parameters: {all: [1]}\na: x$all\n", {}, "is a list, and cannot be a part of a word"},
      {"seed: 1\n", {{"seed.x", "1"}}, "f.yaml with `seed.x=1`: leads to nothing that has keys"},
      {"seed: 1\n", {{"seed", "[1"}}, "f.yaml with `seed=[1`: is no value"},
      {"seed: 1\n", {{"seed", ""}}, "is no value"},
  };
  for (const Row& row : rows) {
    std::string mistakes;
    applied(row.yaml, row.settings, &mistakes);
    EXPECT_NE(mistakes.find(row.words), std::string::npos) << row.yaml << mistakes;
  }
  EXPECT_THROW(config::parse_setting("seed", "--set"), ConfigError);
  EXPECT_THROW(config::parse_setting("=1", "--set"), ConfigError);
}

TEST(Settings, AKeyThatIsNothingIsToldWithWhatItMayMean) {
  const auto told = [](const std::string& yaml, const std::string& key) {
    Registry registry;
    config::Mistakes found("f.yaml");
    config::load_text(yaml, "f.yaml", registry, found, false, {{key, "1"}});
    return found.text();
  };
  const std::string with = "parameters: {iterations: 2}\n";
  EXPECT_EQ(told(with, "iteration"), "f.yaml with `iteration=1`: unknown key `iteration`; did you mean `iterations`?");
  EXPECT_EQ(told(with, "sed"), "f.yaml with `sed=1`: unknown key `sed`; did you mean `seed`?");
  EXPECT_EQ(told(with, "x"), "f.yaml with `x=1`: unknown key `x`; parameters: iterations");
  EXPECT_EQ(told("seed: 1\n", "xyz"),
            "f.yaml with `xyz=1`: unknown key `xyz`; there are no parameters: write `parameters: {xyz: ...}`, and "
            "`$xyz` where it stands");
}

TEST(Settings, AMistakeInWhatIsNotThereNamesWhatIs) {
  const auto told = [](const std::string& key, const std::string& value) {
    Registry registry;
    config::Mistakes found("f.yaml");
    config::load_text("devices: {left: {path: x <-> y}, right: {path: x <-> y}}\n", "f.yaml", registry, found, false,
                      {{key, value}});
    return found.text();
  };
  const std::string wrong = told("devices.lfet.pool", "1");
  EXPECT_NE(wrong.find("f.yaml with `devices.lfet.pool=1`: "), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("; there is no `lfet` in `devices`; did you mean `left`?"), std::string::npos) << wrong;
  EXPECT_EQ(told("devices.other", "{path: x <-> y}"), "") << "a new one may be";
  EXPECT_EQ(told("devices.left.pool", "1").find("there is no"), std::string::npos);
}

TEST(Settings, WithoutParametersANameOfOneIsTold) {
  const auto load = [](const std::string& yaml, config::Mistakes& found) {
    Registry registry;
    return config::load_text(yaml, "f.yaml", registry, found, false);
  };
  const std::string device = "devices: {a: {path: x <-> y}}\n";
  const std::string how = "there are no parameters: write such as `parameters: {n: 1}` at the top level";
  config::Mistakes mistakes("f.yaml");
  load(device + "seed: $n\ndrain: [1]\n", mistakes);
  EXPECT_EQ(mistakes.text(), "f.yaml:2:7: `seed` must be a whole number, found `$n`; " + how +
                                 "\nf.yaml:3:8: `drain` must be a time with a unit, such as 25ms, found a list");
  const auto notes = [&](const std::string& out) {
    config::Mistakes none("f.yaml");
    const std::vector<std::string> all = load(device + "ports: {x: {pcap: {out: " + out + "}}}\n", none).notes;
    EXPECT_TRUE(none.none()) << none.text();
    return all;
  };
  EXPECT_EQ(notes("a-$n.pcap"), std::vector<std::string>{"f.yaml:2:25: note: `$n` stands for nothing else: " + how});
  EXPECT_EQ(notes("a-$$b$n.pcap"), notes("a-$n.pcap"));
  for (const char* plain : {"a$.pcap", "a$5.pcap", "n.pcap", "a-$$n.pcap", "$$$$n.pcap"})
    EXPECT_TRUE(notes(plain).empty()) << plain;
}

// Which value is wrong, and where it stands: a parameter may be right in another place.
TEST(Settings, AMistakeNamesWhatGaveTheValueAndWhereItStands) {
  const std::string yaml =
      "parameters:\n"
      "  wait: 5\n"
      "devices:\n"
      "  a: {path: x <-> link <-> y, kernels: {link: {delay: $wait}}}\n"
      "  b: {path: x <-> link <-> y, kernels: {link: {delay: $wait}}}\n"
      "  c: {path: x <-> link <-> y, kernels: {link: {delay: $wait}}}\n"
      "drain: $wait\n";
  const std::string why = "must be a time with a unit, such as 25ms, found ";
  const struct Row {
    std::vector<Setting> settings;
    std::string text;
  } rows[] = {
      {{},
       "f.yaml:7:8 with `$wait` (line 2): `drain` " + why + "`5`\n" + "f.yaml:4:55 with `$wait` (line 2): `delay` " +
           why + "`5` (and in 2 more places)"},
      {{{"wait", "6"}},
       "f.yaml:7:8 with `wait=6`: `drain` " + why + "`6`\n" + "f.yaml:4:55 with `wait=6`: `delay` " + why +
           "`6` (and in 2 more places)"},
      {{{"wait", "1ms"}, {"drain", "6"}}, "f.yaml with `drain=6`: `drain` " + why + "`6`"},
      {{{"wait", "1ms"}, {"devices.a.kernels.link.loss", "$wait"}},
       "f.yaml with `wait=1ms`: `loss` must be a share, such as 0.01% or 0.0001, found `1ms`"},
  };
  for (const Row& row : rows) {
    Registry registry;
    config::Mistakes found("f.yaml");
    config::load_text(yaml, "f.yaml", registry, found, false, row.settings);
    EXPECT_EQ(found.text(), row.text);
  }
}

}  // namespace
}  // namespace rocebox::settings_test
