// SPDX-License-Identifier: BSD-3-Clause
// What the registry takes and refuses. tests/plugin has the same through plugins.
#include "runtime/component/registry.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/config/options_kit.h"

namespace rocebox::registry_test {
namespace {

std::string refusal(Registry& registry, std::span<const Component> rows) {
  try {
    registry.add(rows, "the test");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Component named(const char* name) {
  Component row = test::kOptionsType;
  row.name = name;
  return row;
}

TEST(Registry, RowsAreTakenAllOrNone) {
  Registry registry;
  const std::size_t before = registry.all().size();
  const Component right = named("right"), other = named("other");
  Component wrong = named("wrong");
  wrong.options = nullptr;
  const Component rows[] = {right, other, wrong};
  EXPECT_EQ(refusal(registry, rows), "the test: the row of `wrong` has no options function");
  EXPECT_EQ(registry.all().size(), before);
  EXPECT_FALSE(registry.find("right"));
  EXPECT_EQ(refusal(registry, std::span(rows).first(2)), "");
  EXPECT_EQ(registry.find("kernel", "right"), &rows[0]);
  EXPECT_EQ(registry.of_kind("kernel").back(), &rows[1]);
  EXPECT_FALSE(registry.find("device", "right"));
}

TEST(Registry, NamesAreOneOverAllKinds) {
  Registry registry;
  for (const Component* each : registry.all())
    for (const char* kind : component_kinds()) {
      Component row = named(each->name);
      row.kind = kind;
      EXPECT_EQ(refusal(registry, {&row, 1}), "the test: there is already a " + std::string(each->kind) + " named `" +
                                                  each->name + "`, from the in-tree registry");
    }
}

// A guest may stand before its host, and a host is no guest.
TEST(Registry, HostsAreComponents) {
  Registry registry;
  Component guest = named("guest"), host = named("host");
  guest.host = "host";
  guest.host_options = [](const Component&) -> std::string { return "{}"; };
  EXPECT_EQ(refusal(registry, {&guest, 1}), "the test: `guest` runs in `host`, and there is no component of that name");
  const Component both[] = {guest, host};
  EXPECT_EQ(refusal(registry, both), "");
  Component self = guest;
  self.name = self.host = "self";
  EXPECT_NE(refusal(registry, {&self, 1}).find("in which nothing runs"), std::string::npos);
}

TEST(Registry, EveryKindInTheTreeIsKnown) {
  for (const Component& row : in_tree_components())
    EXPECT_NE(std::ranges::find(component_kinds(), std::string_view(row.kind)), component_kinds().end()) << row.kind;
}

}  // namespace
}  // namespace rocebox::registry_test
