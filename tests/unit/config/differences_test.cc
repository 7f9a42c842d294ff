// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/config/differences.h"

#include <gtest/gtest.h>

namespace rocebox::config {
namespace {

constexpr const char* kBase =
    "devices: {bump: {path: 'a <-> wan <-> inspect <-> z', kernels: {wan: {type: link, loss: 1%}}},"
    " other: {path: 'b <-> c'}}\n"
    "links: {wire: {between: [bump.z, other.b], delay: 1ms}}\n"
    "pool: {small: 4096}\n";

RunConfig load(const std::string& text) {
  Registry registry;
  Mistakes mistakes("f.yaml");
  RunConfig config = load_text(text, "f.yaml", registry, mistakes, false);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return config;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

std::vector<Difference> after(const std::string& from, const std::string& to) {
  return differences(load(kBase), load(replaced(kBase, from, to)));
}

TEST(Differences, NoneBetweenAConfigurationAndItself) {
  EXPECT_TRUE(differences(load(kBase), load(kBase)).empty());
  EXPECT_TRUE(after("loss: 1%", "loss: 0.01").empty()) << "the same value in other words";
}

TEST(Differences, AnOptionOfAKernelNamesItsPlaceAndItsValues) {
  const auto all = after("loss: 1%", "loss: 2.5%");
  ASSERT_EQ(all.size(), 1u) << "`forward` and `reverse` were not written";
  EXPECT_EQ(all[0].path, "devices.bump.kernels.wan.loss");
  EXPECT_EQ(all[0].after, "2.5%");
  EXPECT_EQ(all[0].device, 0u);
  EXPECT_EQ(all[0].kernel, 0u);
}

TEST(Differences, ALinkComesBehindTheDevices) {
  const auto all = after("delay: 1ms", "delay: 3ms");
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0].path, "links.wire.delay");
  EXPECT_EQ(all[0].before, "1ms");
  EXPECT_EQ(all[0].after, "3ms");
  EXPECT_EQ(all[0].device, 2u);
}

TEST(Differences, WhatIsNoOptionBelongsToNoKernel) {
  for (const auto& [from, to] : {std::pair{"small: 4096", "small: 8192"},
                                 {"type: link", "type: inspect"},
                                 {"wan <-> inspect", "inspect <-> wan"},
                                 {"bump.z, other.b", "bump.z, other.c"}}) {
    std::string text = replaced(kBase, from, to);
    if (std::string(to) == "type: inspect") text = replaced(text, ", loss: 1%", "");
    const auto all = differences(load(kBase), load(text));
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const Difference& d) {
      return d.device == Difference::kElsewhere;
    })) << to;
  }
}

TEST(Differences, WhatIsNewHasNoValueBefore) {
  const auto all = after("loss: 1%", "loss: 1%, burst_loss: {enter: 1%, leave: 50%, loss_bad: 50%}");
  ASSERT_FALSE(all.empty());
  for (const Difference& d : all) {
    EXPECT_TRUE(d.path.starts_with("devices.bump.kernels.wan.burst_loss.")) << d.path;
    EXPECT_EQ(d.before, "");
    EXPECT_EQ(d.device, 0u);
    EXPECT_EQ(d.kernel, 0u);
  }
}

}  // namespace
}  // namespace rocebox::config
