// SPDX-License-Identifier: BSD-3-Clause
// A switch alone, configured by YAML, with programs of the test's choice.
#pragma once
#include <gtest/gtest.h>

#include "runtime/config/fields_reader.h"
#include "switch_model/datapath.h"
#include "switch_model/switch.h"
#include "tests/unit/harness.h"

namespace rocebox::test {

inline std::unique_ptr<Kernel> make_switch(const char* yaml, Stats& stats,
                                           std::span<const switch_model::ProgramType> types) {
  config::Mistakes mistakes("switch");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  switch_model::SwitchConfig config(types);
  config.fields(reader);
  reader.finish();
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return std::make_unique<switch_model::Datapath>(config, stats);
}

/// What is wrong with the options of a switch; empty: nothing.
inline std::string switch_mistakes(const std::string& yaml) {
  config::Mistakes mistakes("switch");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  switch_model::SwitchConfig config(switch_model::in_tree_programs());
  config.fields(reader);
  reader.finish();
  return mistakes.text();
}

struct SwitchBox : KernelBox {
  explicit SwitchBox(const char* yaml,
                     std::span<const switch_model::ProgramType> types = switch_model::in_tree_programs(),
                     Port ports = 4)
      : KernelBox([&](Stats& s) { return make_switch(yaml, s, types); }, 1, Shape::kOneWay, ports, ports) {}

  /// Ports by which packets have left since the last call, in order.
  std::vector<int> ports() {
    std::vector<int> all;
    for (; seen < out.size(); seen++) all.push_back(out[seen].port);
    return all;
  }
  std::size_t seen = 0;
};

/// New options for a switch of the in-tree programs that runs, as `rocebox reload` makes them.
inline std::unique_ptr<Change> prepare_change(KernelBox& box, const std::string& yaml) {
  config::Mistakes mistakes("new");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  std::unique_ptr<Change> change = switch_kernel_type().change(reader, *box.kernel);
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  return change;
}

}  // namespace rocebox::test
