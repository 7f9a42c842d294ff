// SPDX-License-Identifier: BSD-3-Clause
// Pairs that cannot be.
#include <gtest/gtest.h>

#include "kernels/inspect/config.h"
#include "runtime/config/fields_reader.h"

namespace rocebox::inspect {
namespace {

std::string mistakes_of(const std::string& pairs) {
  config::Mistakes mistakes("inspect");
  const config::Node node = config::parse_yaml("{pairs: [" + pairs + "]}", mistakes);
  config::FieldsReader fields(&node, mistakes);
  Config config;
  config.fields(fields);
  fields.finish();
  return mistakes.text();
}

TEST(InspectConfig, PairsThatCannotBe) {
  const std::string one = "{a: 10.0.0.1, a_qpn: 5, b: 10.0.0.2, b_qpn: 6}";
  EXPECT_EQ(mistakes_of(one + ", {a: 10.0.0.1, a_qpn: 5, b: 10.0.0.3, b_qpn: 6}"), "");
  EXPECT_EQ(mistakes_of("{a: 10.0.0.1, a_qpn: 5, b: 10.0.0.1, b_qpn: 6}"), "") << "one NIC's";
  EXPECT_EQ(
      mistakes_of(one + ", " + one),
      "inspect:1:9: `pairs` has 10.0.0.1 QP 5 and 10.0.0.2 QP 6: one of these QPs is in another pair between these "
      "addresses");
  EXPECT_NE(mistakes_of(one + ", {a: 10.0.0.2, a_qpn: 6, b: 10.0.0.1, b_qpn: 7}").find("in another pair"),
            std::string::npos);
  EXPECT_NE(mistakes_of("{a: 10.0.0.1, a_qpn: 5, b: '2001:db8::1', b_qpn: 6}").find("IPv6"), std::string::npos);
}

}  // namespace
}  // namespace rocebox::inspect
