// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/settings.h"

#include <gtest/gtest.h>

#include "runtime/component/component.h"

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

}  // namespace
}  // namespace rocebox::settings_test
