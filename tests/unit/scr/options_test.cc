// SPDX-License-Identifier: BSD-3-Clause
// What is said of options of Software-Controlled RDMA.
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::scr {
namespace {

TEST(ScrOptions, WithoutAPolicyOthersHaveNoEffect) {
  const auto notes_of = [](const std::string& options) {
    Registry registry;
    config::Mistakes mistakes("f.yaml");
    const auto config = config::load_text(
        "devices: {a: {nic: {rate: 1Gbps, congestion_control: scr_control, scr_control: {" + options + "}}}}\n",
        "f.yaml", registry, mistakes, false);
    EXPECT_TRUE(mistakes.none()) << mistakes.text();
    return config.notes;
  };
  EXPECT_EQ(notes_of("trace: 9"),
            std::vector<std::string>{"f.yaml:1:88: note: `trace` has no effect without a policy"});
  EXPECT_EQ(notes_of("trace: 9, policy: fair").size(), 0u);
}

}  // namespace
}  // namespace rocebox::scr
