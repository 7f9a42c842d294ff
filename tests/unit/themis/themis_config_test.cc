// SPDX-License-Identifier: BSD-3-Clause
// What can be written wrongly about Themis.
#include "tests/unit/themis/themis_kit.h"

namespace rocebox::themis {
namespace {

std::string mistakes_of(const std::string& themis) {
  return test::switch_mistakes("ports: [p0, p1, p2, p3]\nprograms: [forward, themis]\nthemis: {" + themis + "}\n");
}

constexpr const char* kOne = "{local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x12}";

TEST(ThemisConfig, NoHosts) {
  CounterSet stats;
  const auto make = [&](const char* options) {
    return test::make_switch((std::string("programs: [forward, themis]\nthemis: {") + options + "}\n").c_str(), stats);
  };
  EXPECT_THROW(make("paths: 2"), ConfigError);
  EXPECT_TRUE(make("spray: off"));
}

TEST(ThemisConfig, ConnectionsThatCannotBe) {
  const auto with = [](const std::string& rows) { return mistakes_of("hosts: [p0], connections: [" + rows + "]"); };
  EXPECT_EQ(with(kOne), "");
  EXPECT_EQ(with(std::string(kOne) + ", {local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.2, remote_qpn: 0x12}"), "")
      << "the same QP numbers of another NIC";
  for (const char* more : {", {local: 10.0.0.1, local_qpn: 0x99, remote: 10.0.1.1, remote_qpn: 0x12}",
                           ", {local: 10.0.0.1, local_qpn: 0x11, remote: 10.0.1.1, remote_qpn: 0x99}"})
    EXPECT_NE(with(std::string(kOne) + more).find("one of these QPs has another connection"), std::string::npos)
        << with(std::string(kOne) + more);
  EXPECT_NE(with("{local: 10.0.0.1, local_qpn: 2, remote: 10.0.0.1, remote_qpn: 3}").find("one address"),
            std::string::npos);
  EXPECT_NE(with("{local: 10.0.0.1, local_qpn: 2, remote: '2001:db8::1', remote_qpn: 3}").find("IPv6"),
            std::string::npos);
}

}  // namespace
}  // namespace rocebox::themis
