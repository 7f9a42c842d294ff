// SPDX-License-Identifier: BSD-3-Clause
// Graphs of topologies as they are written.
#pragma once
#include <gtest/gtest.h>

#include "runtime/config/fields_reader.h"
#include "runtime/topology/shapes.h"
#include "tests/unit/virtual/sim_kit.h"

namespace rocebox::topology_test {

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
