// SPDX-License-Identifier: BSD-3-Clause
// A switch alone, configured by YAML, with programs of the test's choice.
#pragma once
#include <gtest/gtest.h>

#include "switch_model/datapath.h"
#include "tests/unit/harness.h"
#include "tests/unit/options.h"

namespace rocebox::test {

/// The in-tree components, and programs of a test.
inline Registry with_programs(std::span<const Component> programs) {
  Registry registry;
  for (const Component& program : programs)
    if (!registry.find(program.name)) registry.add(program, "the test");
  return registry;
}

inline std::unique_ptr<Kernel> make_switch(const char* yaml, Stats& stats, std::span<const Component> programs = {}) {
  return options_of(component("switch"), yaml, nullptr, with_programs(programs))->make(stats);
}

/// What is wrong with the options of a switch; empty: nothing.
inline std::string switch_mistakes(const std::string& yaml) {
  config::Mistakes mistakes("switch");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  options_by(component("switch"), reader);
  reader.finish();
  return mistakes.text();
}

struct SwitchBox : KernelBox {
  explicit SwitchBox(const char* yaml, std::span<const Component> programs = {}, Port ports = 4)
      : KernelBox([&](Stats& s) { return make_switch(yaml, s, programs); }, 1, Shape::kOneWay, ports, ports) {}

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
  return options_of(component("switch"), yaml)->change(*box.kernel);
}

}  // namespace rocebox::test
