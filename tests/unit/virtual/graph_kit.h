// SPDX-License-Identifier: BSD-3-Clause
// Graphs of topologies as they are written.
#pragma once
#include <gtest/gtest.h>

#include "runtime/config/fields_reader.h"
#include "runtime/topology/shapes.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::topology_test {

/// An odd network: a ring of five switches, three wires between two of them, one without a host.
inline constexpr const char* kRing =
    "explicit: {hosts: [a, b, c, d, e], switches: [r0, r1, r2, r3, r4], wires: [{between: [a, r0]}, {between: [r1, "
    "b]}, "
    "{between: [c, r2]}, {between: [d, r2]}, {between: [e, r4]}, {between: [r0, r1], count: 3}, {between: [r1, r2]}, "
    "{between: [r2, r3]}, {between: [r3, r4]}, {between: [r4, r0]}]}";

inline topology::Graph graph_of(const std::string& yaml) {
  config::Mistakes mistakes("");
  const config::Node node = config::parse_yaml(yaml, mistakes);
  config::FieldsReader reader(&node, mistakes);
  topology::Shapes shapes;
  shapes.fields(reader);
  reader.finish();
  EXPECT_TRUE(mistakes.none()) << mistakes.text();
  EXPECT_TRUE(shapes.given());
  return shapes.build();
}

}  // namespace rocebox::topology_test
