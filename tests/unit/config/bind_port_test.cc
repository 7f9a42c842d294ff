// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "runtime/config/config.h"

namespace rocebox::config {
namespace {

RunConfig two_devices() {
  static Registry registry;
  Mistakes mistakes("f.yaml");
  RunConfig config = load_text(
      "devices: {near: {path: host <-> inspect <-> wan}, far: {path: wan <-> host}}\n"
      "links: {haul: {between: [near.wan, far.wan]}}\n"
      "ports: {near.host: {af_packet: eth0}, far.host: {pcap: {out: x.pcap}}}\n",
      "f.yaml", registry, mistakes, false);
  EXPECT_EQ(mistakes.text(), "");
  return config;
}

std::string refusal(const std::string& argument, RunConfig config = two_devices()) {
  try {
    bind_port(config, argument);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "taken";
}

TEST(BindPort, TakesThePlaceOfWhatTheConfigurationSays) {
  RunConfig config = two_devices();
  bind_port(config, "near.host={tap: tap7, mtu: 9000}");
  ASSERT_EQ(config.live_ports.size(), 1u);
  EXPECT_EQ(config.live_ports[0].port.text(), "near.host");
  EXPECT_EQ(config.live_ports[0].live.text(), "tap tap7");
  EXPECT_EQ(config.live_ports[0].live.mtu, 9000u);
  EXPECT_EQ(config.live_ports[0].place.line, 0) << "no line of the file says so";
  bind_port(config, "far.host={net_null: {}}");
  EXPECT_TRUE(config.captures.empty());
  EXPECT_EQ(config.live_ports.size(), 2u);
  const std::string effective = effective_yaml(config);
  EXPECT_NE(effective.find("  near.host:\n    tap: tap7\n"), std::string::npos) << effective;
}

TEST(BindPort, Refusals) {
  EXPECT_NE(refusal("near.host").find("write PORT=BINDING"), std::string::npos);
  EXPECT_NE(refusal("near.host=").find("write PORT=BINDING"), std::string::npos);
  EXPECT_NE(refusal("host={tap: t}").find("in several devices"), std::string::npos);
  EXPECT_NE(refusal("near.hots={tap: t}").find("did you mean `near.host`?"), std::string::npos);
  EXPECT_NE(refusal("near.wan={tap: t}").find("joined by link `haul`"), std::string::npos);
  EXPECT_NE(refusal("near.host={tpa: t}").find("did you mean `tap`?"), std::string::npos);
  EXPECT_NE(refusal("near.host={mtu: 1500}").find("bound to nothing"), std::string::npos);
  EXPECT_NE(refusal("near.host={tap: t, af_packet: e}").find("more than one thing"), std::string::npos);
  EXPECT_NE(refusal("near.host=tap0").find("expected a mapping, found a single value"), std::string::npos);
  EXPECT_NE(refusal("near.host={tap").find("--port near.host:"), std::string::npos);
  RunConfig config = two_devices();
  bind_port(config, "near.host={tap: t}");
  EXPECT_NE(refusal("near.host={tap: u}", config).find("given twice"), std::string::npos);
}

}  // namespace
}  // namespace rocebox::config
